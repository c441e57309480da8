"""podman 5 itself: every pair of tests/engines/podman before and after, containers, setup, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import trees

from .container_image import write_image
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .typed import Typed
from .typist import BY_CDI, BY_RUNTIME, PLAIN, Asked, Typist
from .workload import MODEST_RUNC, STUB_LOG

IMAGE = "docker.io/library/busybox:lab"
PAIRS = trees.pairs(Path(__file__).parents[1] / "engines" / "podman")
# A container takes a second, and what differs between these is who says where the runtime is.
RUN = (
    "nothing-anywhere",
    "main-crun",
    "late-names-crun",
    "root-names-runc",
    "known-early",
    "handler-gpu",
    "path-elsewhere",
)
PLACES = "/etc/containers/containers.conf /etc/containers/containers.conf.d /root/.config/containers"
NVIDIA = "/usr/bin/nvidia-container-runtime"
STUB = (Path(__file__).parent / "stubs" / "files" / "nvidia-container-runtime").read_text()
SETUP = ("setup", "--yes", "--only", "runtime", "--runtime", "podman")
# Lab hosts have no cgroup controllers for the limits that podman asks for.
MODEST = {
    "/usr/local/sbin/runc": MODEST_RUNC,
    "/usr/bin/crun": MODEST_RUNC.replace("/usr/sbin/runc", "/usr/libexec/crun").replace('"runc"', '"crun"'),
}
# What users type. podman 5 takes --gpus for the CDI device.
BY_GPUS = Asked("--gpus all", BY_CDI.holds)
ASKED = {
    "`podman run`": BY_RUNTIME,
    "`podman run --device nvidia.com/gpu=all`": BY_CDI,
    "`podman run --gpus all`": BY_GPUS,
}
CDI_MADE = Asked(BY_CDI.options, "[ -s /etc/lab-gpus ]")  # podman exec has no variables of CDI's
OLD, SINCE, NONE = "a container from before", "a container made since", "none yet"
# One that no command of podman's made, as compose does it: only its devices tell of CDI.
BY_API = f"""
podman system service --time 0 unix:///run/lab-podman.sock >/dev/null 2>&1 &
until [ -S /run/lab-podman.sock ]; do sleep 0.1; done
call() {{ curl -sS --fail-with-body --unix-socket /run/lab-podman.sock -X POST "$@"; }}
at=http://podman/v5.0.0/libpod/containers
call -H 'Content-Type: application/json' "$at/create" \\
  -d '{{"name": "api", "image": "{IMAGE}", "netns": {{"nsmode": "none"}}, \
    "devices": [{{"path": "nvidia.com/gpu=all"}}]}}'
call "$at/api/start"
code=$?
kill $!
exit $code
"""
MAIN = "/etc/containers/containers.conf"
DROP_IN = "/etc/containers/containers.conf.d/99-nvidia.conf"
# One line of JSON per pair: what podman says before and after, and whether a container went through the stub.
LOOP = f"""
ask() {{ podman "$@" info --format '{{{{.Host.OCIRuntime.Name}}}}' 2>/dev/null || echo broken; }}
put() {{ rm -rf {PLACES} /usr/share/containers/containers.conf; cp -a "$1/." /; }}
cd /root/pairs
for name in *; do
  put "$name/before"; was=$(ask)
  put "$name/after"; now=$(ask); handler=$(cat "$name/handler"); known=$now
  if [ "$now" != "$handler" ]; then known=$(ask --runtime "$handler"); fi
  ran=-
  if [ -e "$name/run" ]; then
    : >{STUB_LOG}
    podman run --rm --network none --pids-limit -1 {IMAGE} true >"/root/$name.out" 2>&1
    ran="$? $(grep -c ' create ' {STUB_LOG})"
  fi
  printf '["%s", "%s", "%s", "%s", "%s"]\\n' "$name" "$was" "$now" "$known" "$ran"
done
put /root/as-it-was
"""


@pytest.fixture(scope="module")
def host(lab_session: Lab) -> Iterator[Host]:
    """One host for all: podman has no daemon that a test could leave in a bad state."""
    made = lab_session.host("debian13", gpu="h100", runtime="podman")
    made.write("/opt/gpu/nvidia-container-runtime", STUB, 0o755)
    made.nsrun("mv /usr/bin/crun /usr/libexec/crun", check=True)
    for path, program in MODEST.items():
        made.write(path, program, 0o755)
    write_image(made.path("/root/image.tar"), IMAGE, command=("/bin/sleep", "6000"))
    made.nsrun("podman load -q -i /root/image.tar", check=True)
    made.nsrun("mkdir -p /root/as-it-was/usr/share/containers", check=True)
    made.nsrun("cp -a /usr/share/containers/containers.conf /root/as-it-was/usr/share/containers/", check=True)
    yield made
    lab_session.reset()


@pytest.fixture
def clean(host: Host) -> Host:
    host.nsrun(f"rm -rf {PLACES} /usr/local/bin/podman", check=True)
    host.write(NVIDIA, STUB, 0o755)
    return host


def default(host: Host) -> str:
    return host.nsrun("podman info --format '{{.Host.OCIRuntime.Name}}'", check=True).stdout.strip()


def state(host: Host) -> str:
    return host.nsrun(f"find {PLACES} -type f -exec sha256sum {{}} + 2>/dev/null | sort; ls -A /etc/containers").stdout


# The first one: it finds the host as it was made.
def test_what_users_type(host: Host, lab_session: Lab, tmp_path: Path) -> None:
    me, setup = Controller("ssh", tmp_path), ("setup", "--yes", "--trust-key", lab_session.repo_fingerprint)
    podman = Typist(host.nsrun, "podman", IMAGE, "--network none --pids-limit -1")
    podman.start("old", PLAIN)
    before = {**podman.fresh(ASKED), **podman.there("old", OLD)}

    expect(me.gpunode(host, *setup), 0)
    podman.start("gpus", BY_GPUS)
    host.nsrun(BY_API, check=True)
    by_cdi = until_undone(
        host, me, podman, Typed("podman 5.4"), (f"{SINCE} with the CDI device", CDI_MADE), also=("gpus", "api")
    )
    expect(me.gpunode(host, *setup, "--runtime", "podman"), 0)
    by_default = until_undone(host, me, podman, Typed("podman 5.4, `--runtime podman`"), (SINCE, BY_RUNTIME))

    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    after = {**podman.fresh(ASKED), **podman.there("old", OLD)}
    podman.remove("old")
    for table in (by_cdi, by_default):
        since = table.seen["after `undo`"].keys() - before.keys()
        table.seen["before `setup`"] = {**before, **dict.fromkeys(since, NONE)}
        table.seen["after `undo --packages`"].update(after)
        table.hold()


def until_undone(
    host: Host, me: Controller, podman: Typist, table: Typed, made: tuple[str, Asked], also: tuple[str, ...] = ()
) -> Typed:
    """From after setup until after undo: containers that were `made` since keep what they need until they are gone."""

    def since() -> dict[str, str]:
        return podman.there("since", *made)

    def seen() -> dict[str, str]:
        return {**podman.fresh(ASKED), **podman.there("old", OLD)}

    podman.start("since", made[1])
    table.note("after `setup`", {**seen(), **since()})
    host.reboot()
    table.note("after a reboot", {**seen(), **since()})
    told = expect(me.gpunode(host, "undo", "--yes"), 6).stdout
    assert all(name in told for name in ("since", *also)), told
    table.note("after `undo`", {**seen(), **since()})
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 6)
    table.note("after `undo --packages`", since())
    podman.remove("since", *also)
    expect(me.gpunode(host, "undo", "--yes"), 0)
    return table


def test_every_pair_in_podman_itself(clean: Host) -> None:
    host = clean
    for pair in PAIRS:
        for tree, files in (("before", pair.before), ("after", pair.after)):
            host.write(f"/root/pairs/{pair.name}/{tree}/.keep", "")
            for path, text in files.items():
                host.write(f"/root/pairs/{pair.name}/{tree}{path}", text)
        host.write(f"/root/pairs/{pair.name}/handler", "gpu\n" if pair.said.get("want") == "gpu" else "nvidia\n")
        if pair.name in RUN:
            host.write(f"/root/pairs/{pair.name}/run", "")
    answers = [json.loads(line) for line in host.nsrun(LOOP, check=True).stdout.splitlines()]
    seen = {name: tuple(rest) for name, *rest in answers}
    assert seen == {pair.name: _expected(pair) for pair in PAIRS}


def _expected(pair: trees.Pair) -> tuple[str, str, str, str]:
    """was, now, the handler when asked for by name, and a container's exit code with its passes through the stub."""
    handler = "gpu" if pair.said.get("want") == "gpu" else "nvidia"
    now = pair.said["was"] if pair.said.get("want") == "no" else handler
    return pair.said["was"], now, handler, "0 1" if pair.name in RUN else "-"


def test_setup_makes_it_the_default_once_and_plain_setup_leaves_podman_to_cdi(clean: Host, tmp_path: Path) -> None:
    control, before = Controller("ssh", tmp_path), state(clean)
    plan = expect(control.gpunode(clean, "plan", "--only", "runtime"), 0)
    assert "podman is served by CDI" in " ".join(plan.stdout.split())
    expect(control.gpunode(clean, *SETUP), 0)
    assert default(clean) == "nvidia"
    after = state(clean)
    again = expect(control.gpunode(clean, *SETUP), 0)
    assert "no changes" in again.stdout
    assert state(clean) == after
    expect(control.gpunode(clean, "undo", "--yes"), 0)
    assert (state(clean), default(clean)) == (before, "crun")


def test_a_drop_in_that_was_broken_before_is_named_and_nothing_is_touched(clean: Host, tmp_path: Path) -> None:
    clean.write("/etc/containers/containers.conf.d/10-broken.conf", "[engine\n")
    before = state(clean)
    result = expect(Controller("ssh", tmp_path).gpunode(clean, *SETUP), 1)
    assert "10-broken.conf:1:8" in result.stderr
    assert state(clean) == before


def test_a_missing_program_is_found_before_the_file_is_written(clean: Host, tmp_path: Path) -> None:
    clean.nsrun(f"rm {NVIDIA}", check=True)
    before = state(clean)
    result = expect(Controller("ssh", tmp_path).gpunode(clean, *SETUP), 1)
    assert f"{NVIDIA} is not there" in " ".join((result.stdout + result.stderr).split())
    assert state(clean) == before
    assert default(clean) == "crun"


@pytest.mark.parametrize("runc_before", [False, True], ids=["no file before", "runc in containers.conf before"])
def test_a_podman_that_does_not_take_it_gets_its_old_file_back(clean: Host, tmp_path: Path, runc_before: bool) -> None:
    """It takes the candidate, and fails once the file is in its place."""
    if runc_before:
        clean.write(MAIN, '# ours\n[engine]\nruntime = "runc"\n', 0o640)
    guard = f"grep -qs nvidia {DROP_IN} {MAIN} && {{ echo refused by the test guard >&2; exit 125; }}"
    clean.write("/usr/local/bin/podman", f'#!/bin/sh\n{guard}\nexec /usr/bin/podman "$@"\n', 0o755)
    before = state(clean)
    result = expect(Controller("ssh", tmp_path).gpunode(clean, *SETUP), 1)
    assert "refused by the test guard" in result.stdout + result.stderr
    assert state(clean) == before
    assert default(clean) == ("runc" if runc_before else "crun")


def test_a_default_that_podman_does_not_know_is_mended(clean: Host, tmp_path: Path) -> None:
    clean.write(MAIN, '[engine]\nruntime = "nope"\n')
    expect(Controller("ssh", tmp_path).gpunode(clean, *SETUP), 0)
    assert default(clean) == "nvidia"
