"""What users type at containerd 1.6, 1.7 and 2.1, against the tables of docs/reference/engines.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .container_image import write_image
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .test_undo import PACKAGES, difference, tree
from .test_undo_containers import rebooted, words
from .typed import Typed
from .wide import cases
from .workload import MODEST_RUNC, PAUSE, SOCKET

ENGINES = {"debian12": "containerd 1.6", "debian13": "containerd 1.7, `setup --cdi`", "debian-sid": "containerd 2.1"}
IMAGE = PAUSE[0]
# What containerd and ctr say of what they cannot do; whatever else they say is on no page.
REFUSALS = (
    'no runtime for "nvidia" is configured',
    "unresolvable CDI devices nvidia.com/gpu=0",
    '"nvidia-container-cli": executable file not found in $PATH',
)


class Users:
    """What they, and kubelet for them, ask of a host's containerd. `kept`: a pod from before setup, its container."""

    def __init__(self, host: Host) -> None:
        self.host = host
        host.nsrun("systemctl is-system-running --wait")
        write_image(host.path("/root/lab-image.tar"), *PAUSE, command=("/bin/sleep", "3600"))
        host.write("/usr/local/sbin/runc", MODEST_RUNC, 0o755)
        for name in ("cri_pod.py", "cri_typed.py"):
            host.write(f"/root/{name}", (Path(__file__).parent / name).read_text())
        host.nsrun("for n in default k8s.io; do ctr -n $n images import /root/lab-image.tar; done", check=True)
        self.kept: list[str] = self.cri("keep")

    def cri(self, deed: str, *ids: str) -> Any:
        typed = f"python3 /root/cri_typed.py {SOCKET} {deed} {IMAGE} {' '.join(ids)}"
        return json.loads(self.host.nsrun(typed, check=True).stdout)

    def drain(self) -> None:
        self.kept = self.cri("drain", self.kept[0])

    def outcomes(self) -> dict[str, str]:
        answer = self.cri("type", *self.kept)
        self.kept = answer["kept"]
        return {row: shown(outcome) for row, outcome in answer["rows"].items()}


def shown(outcome: str) -> str:
    """As the tables have it."""
    return next((f"`{refusal}`" for refusal in REFUSALS if refusal in outcome), outcome)


def cdi(outcomes: dict[str, str]) -> list[str]:
    return [outcome for row, outcome in outcomes.items() if "CDI" in row]


@pytest.mark.parametrize("distribution", cases(ENGINES))
def test_what_comes_of_it_is_what_the_page_says(lab: Lab, tmp_path: Path, distribution: str) -> None:
    host, me = lab.host(distribution, gpu="h100", runtime="containerd"), Controller("ssh", tmp_path / "home")
    users, typed = Users(host), Typed(ENGINES[distribution])
    before, packages = tree(host), host.nsrun(PACKAGES, check=True).stdout
    typed.note("before `setup`", users.outcomes())

    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *setup), 0)
    if distribution == "debian13":  # has CDI, and not by default
        assert cdi(users.outcomes()) == cdi(typed.seen["before `setup`"]) == ["runs", "runs"]
        expect(me.gpunode(host, *setup, "--cdi"), 0)
    typed.note("after `setup`", users.outcomes())

    rebooted(host)
    expect(me.gpunode(host, "check"), 0)
    users.drain()
    typed.note("after a reboot", users.outcomes())

    told = words(expect(me.gpunode(host, "undo", "--yes"), 6))
    assert "create anew or remove default/old" in told
    typed.note("after `undo`", users.outcomes())

    users.drain()
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    typed.note("after `undo --packages`", users.outcomes())
    assert difference(before, tree(host)) == []
    assert host.nsrun(PACKAGES, check=True).stdout == packages
    typed.hold()
