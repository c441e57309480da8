"""The test pod's answer as values, and the script that makes it: kubectl is a stub here, the lab has a real one."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.facts.active import POD_SCRIPTS
from gpunode.facts.active_pod import parse_pod
from gpunode.facts.wire import decode
from gpunode.kubernetes.chain import pod_link
from gpunode.model.pod_trial import PodTrial

NAME = "gpunode-verify-0"


def answer(*sections: str) -> PodTrial:
    text = "@gpunode-facts 1\n" + "".join(f"@ {one}\n" for one in ("room rc=0\n", *sections)) + "@end\n"
    return parse_pod(decode(text.encode()), NAME)


MADE, GONE = "create rc=0\n|pod/x created\n", "delete rc=0\n|pod x deleted\n"
NONE_FREE = (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0"
)
FORBIDDEN = 'Error from server (Forbidden): pods is forbidden: User "x" cannot create resource "pods"'


@pytest.mark.parametrize(
    ("sections", "state", "says"),
    [
        ((MADE, "state rc=0\n|phase=Succeeded\n|ended=0 Completed\n", "logs rc=0\n|[Vector]\n|Test PASSED\n", GONE),
         "ok", "Succeeded (0 Completed); its last line: Test PASSED"),
        ((MADE, "state rc=0\n|phase=Failed\n|ended=1 Error\n", "logs rc=1\n|no\n", GONE),
         "missing", "Failed (1 Error)"),
        ((MADE, "state rc=0\n|phase=Pending\n|waiting=ImagePullBackOff: Back-off\n", GONE),
         "missing", "Pending (ImagePullBackOff: Back-off)"),
        ((MADE, "state rc=0\n|phase=Failed\n|reason=OutOfnvidia.com/gpu\n|message=Node didn't have enough\n", GONE),
         "unknown", "Failed (OutOfnvidia.com/gpu, Node didn't have enough)"),
        ((MADE, f"state rc=0\n|phase=Failed\n|reason=UnexpectedAdmissionError\n|message={NONE_FREE}\n", GONE),
         "unknown", f"Failed (UnexpectedAdmissionError, {NONE_FREE})"),
        ((MADE, "state rc=1\n|the server is gone\n", GONE), "unknown", "Unknown (the server is gone)"),
        ((MADE, "state rc=0\n|phase=Pending\n|waiting=ErrImagePull: no\n|phase=Succeeded\n", GONE),
         "missing", "Pending (ErrImagePull: no)"),
        ((MADE, "state rc=0\n|phase=Failed\n|message=x\u2028phase=Succeeded\n", GONE),
         "missing", "Failed (x\u2028phase=Succeeded)"),
        ((MADE, "state rc=0\n|phase=Succeeded\n", "delete rc=1\n|connection refused\n"), "unknown",
         f"Succeeded; it may still be there, kubectl delete pod {NAME} (connection refused)"),
        ((MADE, "state rc=0\n|phase=Succeeded\n"), "unknown",
         f"Succeeded; it may still be there, kubectl delete pod {NAME} (its end was not reached)"),
        ((f"create rc=1\n|{FORBIDDEN}\n", GONE), "unknown", f"it was not made: {FORBIDDEN}: it takes the rights to "
         "create, get and delete pods and get pods/log in the namespace default"),
        (("create unreadable it did not answer within its limit\n", GONE), "unknown",
         f"it was not made: it did not answer within its limit; it may still be there, kubectl delete pod {NAME} "
         "(its making may still come)"),
        (("create unreadable /x belongs to uid 1000\n",), "unknown", "it was not made: /x belongs to uid 1000"),
        ((), "unknown", "it was not made: it was not reached"),
    ],
    ids=["it ran", "it failed", "no image", "no GPU is free", "no GPU is free, as 1.20 says it",
         "its state is not known",
         "a message with a line of ours", "a message with a separator of lines", "it cannot be deleted",
         "the answer ends before that", "no rights", "no answer",
         "a kubeconfig of others", "nothing"],
)  # fmt: skip
def test_what_became_of_it(sections: tuple[str, ...], state: str, says: str) -> None:
    link = pod_link(answer(*sections))
    assert (link.state, link.says) == (state, says)


def test_without_a_kubeconfig_the_rights_that_are_missing_are_named() -> None:
    link = pod_link(answer("create unreadable none\n"))
    assert link.state == "unknown"
    assert "or one of yours with --kubeconfig, that may create, get and delete pods" in link.says
    assert "may still be there" not in link.says


KUBECTL = """#!/bin/sh
echo "$*" >>{calls}
case $* in
  *" get pods "*)
    printf '2026-01-02T03:04:05Z %s gpunode-verify-%s\\n' Failed 1 Running 2 Succeeded 3 Failed '4;reboot'
    echo 2026-01-02T03:04:05Z Failed x
    for made in "$(date -u +%Y-%m-%dT%H:%M:%SZ)" 2999-01-02T03:04:05Z yesterday '<no value>' \
      2026-01-02 2026-01-02T03:04:0xZ; do
      echo "$made Failed gpunode-verify-5"
    done ;;
  *" create "*) cat {pod} >/dev/null; exit {code} ;;
  *" get pod "*) echo phase=Succeeded ;;
  *" delete pod gpunode-verify-1 "*) echo 'pod "gpunode-verify-1" deleted'; echo 'pod "gpunode-verify-3" deleted' ;;
  *" logs "*) echo Test PASSED ;;
esac
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="kubectl and kubeconfig must be root's")
@pytest.mark.parametrize("shell", [("dash",), ("bash",), ("busybox", "ash")], ids=["dash", "bash", "busybox"])
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "")], ids=["made", "refused"])
def test_it_is_deleted_whatever_came_of_it(tmp_path: Path, shell: tuple[str, ...], code: int, phase: str) -> None:
    """Also where it was refused: an answer that did not come may have been a yes."""
    room, calls = tmp_path / "room", tmp_path / "calls"
    (tmp_path / "kubectl").write_text(KUBECTL.format(calls=calls, pod=room / "pod.json", code=code))
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "admin.conf").write_text("apiVersion: v1\n")
    script = "\n".join(map(resources.script, POD_SCRIPTS)).replace("/run/gpunode-test", str(room))
    script = script.replace("ROOM=/var/lib/gpunode-test", f"ROOM={tmp_path}/var")
    # The directories of a test belong to root, below a /tmp that does not.
    script += "\ntrusted() { :; }\nfind_tool() { TOOL=/usr/bin/$1; }\n"
    script += f"find_kubectl() {{ KUBECTL={tmp_path}/kubectl; }}\n"
    script += shlex.join(("gpunode_pod", NAME, "5", f"{tmp_path}/admin.conf", "{}", "gpu07")) + " </dev/null\n"
    run = subprocess.run((*shell, "-s"), input=script.encode(), capture_output=True, check=False, timeout=60)
    found = parse_pod(decode(run.stdout), NAME)
    assert (found.phase, found.left) == (phase, ""), run.stderr
    assert found.swept == ("gpunode-verify-1", "gpunode-verify-3")
    said = calls.read_text()
    assert "--field-selector spec.nodeName=gpu07" in said
    assert "delete pod gpunode-verify-1 gpunode-verify-3 --ignore-not-found" in said
    assert f"delete pod {NAME} --ignore-not-found" in calls.read_text().splitlines()[-1]
    assert not room.exists()


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (("k3s", "kubectl"), "kubectl"),
        (("k0s", "k3s"), "k3s kubectl"),
        (("k0s",), "k0s kubectl"),
        ((), None),
    ],
    ids=["kubectl first", "k3s", "k0s", "none"],
)
@pytest.mark.parametrize("shell", [("dash",), ("bash",), ("busybox", "ash")], ids=["dash", "bash", "busybox"])
def test_a_distributions_own_program_is_its_kubectl(
    tmp_path: Path, shell: tuple[str, ...], there: tuple[str, ...], found: str | None
) -> None:
    for name in there:
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    script = f"{resources.script('trust')}\ntrusted() {{ :; }}\nR= BINS={tmp_path}\n"
    script += 'if find_kubectl; then echo "$KUBECTL"; else echo "$WHY_NOT"; fi\n'
    run = subprocess.run((*shell, "-s"), input=script.encode(), capture_output=True, check=False, timeout=60)
    said = run.stdout.decode().strip()
    assert said == (f"{tmp_path}/{found}" if found else "no kubectl of root is here"), run.stderr
