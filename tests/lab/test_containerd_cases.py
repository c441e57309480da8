"""Every pair of tests/engines/containerd in the daemons themselves: nvidia is in force, what was there still is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.editing import toml_text
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import release
from tests.engines.test_containerd import NAMES, PATH, pair, rewrite
from tests.engines.test_containerd_schemas import TREES, done
from tests.engines.test_containerd_validate import ROWS

from . import containerd_generated, workload
from .container_image import write_image
from .host import Host
from .lab import Lab

HERE = Path(__file__).parent
VERSION_1 = [name for name in NAMES if toml_text.load(name, pair(name)[2][PATH]).get("version", 1) == 1]
PROGRAM = "/usr/bin/nvidia-container-runtime"
VERSIONS = {"debian12": "1.6.20", "debian13": "1.7.24", "debian-sid": "2.1.9"}
# The first word of a pair's name says for which daemon it was written; a later one reads it as well.
MAY_READ = {"1.6.20": ("16", "17"), "1.7.24": ("16", "17"), "2.1.9": ("17", "21")}
# 1.6 has no CDI, so gpunode refuses what asks for it; that is shown where the refusal is tested.
NOT_FOR = {"1.6.20": {name for name in NAMES if name.startswith("17-cdi")}}
WITH_A_POD = ("16-debian-packaged", "17-default-gvisor", "21-config-default", "21-imports-of-others")


def cases(version: str) -> dict[str, tuple[RuntimeSpec, dict[str, str], dict[str, str]]]:
    """name -> what is wanted, the files before, the files as gpunode writes them for this daemon."""
    found = {}
    for name in NAMES:
        if name[:2] not in MAY_READ[version] or name in NOT_FOR.get(version, ()):
            continue
        _, want, before, _ = pair(name)
        if name[:2] != "21":
            want = replace(want, drop_in=None)  # what suits this daemon
        edits = rewrite(before[PATH], version, want).edits
        found[name] = (want, before, {**before, **{edit.path: edit.after for edit in edits}})
    trees = [tree for tree in TREES if version in tree.versions]
    return found | {tree.claim: (RuntimeSpec(), tree.files, done(tree, version)[1]) for tree in trees}


@pytest.mark.parametrize("distribution", VERSIONS)
def test_every_pair_in_the_running_daemon(lab: Lab, distribution: str) -> None:
    host = lab.host(distribution, runtime="containerd")
    host.nsrun("systemctl stop containerd", check=True)
    furnish(host)
    version = VERSIONS[distribution]
    said = host.nsrun("containerd --version").stdout
    assert release(said) == release(version), said
    wanted = cases(version)
    started = start(host, wanted)
    for row in ROWS:
        assert (started[row.claim]["config"] is None) is (version in row.dies), (row.claim, started[row.claim]["log"])
    faults = [fault for name, (want, *_) in wanted.items() for fault in judged(name, want, started)]
    for tree in TREES:
        nvidia = (
            started[f"{tree.claim} after"]["config"]["containerd"]["runtimes"]["nvidia"] if tree.claim in wanted else {}
        )
        if nvidia and nvidia["options"].get("SystemdCgroup", False) is not bool(tree.cgroup):
            faults.append(f"{tree.claim}: nvidia is {nvidia}")
    assert not faults, "\n".join(faults)
    assert len(wanted) >= 60
    created = host.nsrun(f"grep -c ' create ' {workload.STUB_LOG}").stdout.strip()
    assert int(created) == sum(name in wanted for name in WITH_A_POD), "pods that went through the stub runtime"
    outcomes, faults = containerd_generated.put_to(host, version)
    print(f"containerd {version}, configurations by chance: {dict(outcomes)}")
    assert not faults, "\n".join(faults)
    assert outcomes["loaded before and after"]


def furnish(host: Host) -> None:
    host.write("/root/starts/__init__.py", "")
    for name in ("cri_pod.py", "containerd_starts.py"):
        host.write(f"/root/starts/{name}", (HERE / name).read_text())
    host.write(PROGRAM, (HERE / "stubs/files/nvidia-container-runtime").read_text(), 0o755)
    host.write("/usr/local/sbin/runc", workload.MODEST_RUNC, 0o755)
    write_image(host.path("/root/lab-image.tar"), *workload.PAUSE, command=("/bin/sleep", "600"))


def start(host: Host, wanted: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the daemon said on each configuration, by "NAME before" and "NAME after"."""
    asked = []
    for name, (_, before, after) in wanted.items():
        asked.append({"name": f"{name} before", "files": before})
        asked.append({"name": f"{name} after", "files": after, "pod": name in WITH_A_POD})
    asked += [{"name": row.claim, "files": {PATH: row.whole}} for row in ROWS]
    done = host.nsrun("cd /root && python3 -m starts.containerd_starts", input=json.dumps(asked), timeout=280)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def judged(name: str, want: RuntimeSpec, started: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with a pair, in sentences."""
    after = started[f"{name} after"]
    if after["config"] is None:
        return [f"{name}: CRI does not answer afterwards: {after['log'][-600:]}"]
    old, new = (started[f"{name} before"]["config"] or {}).get("containerd", {}), after["config"]["containerd"]
    faults = [f"{name}: no pod: {after['log'][-600:]}"] if (after["pod"] or "").startswith("failed") else []
    default = "nvidia" if want.default else old.get("defaultRuntimeName", "runc")
    if new["defaultRuntimeName"] != default:
        faults.append(f"{name}: the default is {new['defaultRuntimeName']}, not {default}")
    # 1.x makes a handler `default` of the legacy table, which gpunode takes out.
    lost = {"runc", *old.get("runtimes", {})} - {"default"} - set(new["runtimes"])
    if lost:
        faults.append(f"{name}: {', '.join(lost)} is gone")
    # Of a version 1 file 2.x read nothing, which gpunode's conversion changes, and says.
    kept = (
        ()
        if name in VERSION_1 and "sandboxer" in new["runtimes"]["runc"]
        else set(old.get("runtimes", {})) - {"nvidia", "default"}
    )
    for handler in kept:
        was, now = said(old["runtimes"][handler]), said(new["runtimes"].get(handler, {}))
        if was != now:
            faults.append(f"{name}: {handler} was {was} and is {now}")
    nvidia = new["runtimes"].get("nvidia", {})
    own = (old.get("runtimes", {}).get("nvidia", {}).get("options") or {}).get("BinaryName")
    if nvidia.get("options", {}).get("BinaryName") not in (own or PROGRAM, PROGRAM, "nvidia-container-runtime"):
        faults.append(f"{name}: nvidia is {nvidia}")
    if want.cdi and after["config"].get("enableCDI") is not True:
        faults.append(f"{name}: CDI is off")
    return faults


def said(entry: dict[str, Any]) -> dict[str, Any]:
    """What a handler's entry sets, without the values that it has when nothing is said."""
    usual: tuple[object, ...] = ("", 0, False, None, [], {}, "podsandbox", "io.containerd.runc.v2")
    inner = {k: said(v) if isinstance(v, dict) else v for k, v in entry.items()}
    return {k: v for k, v in inner.items() if v not in usual}
