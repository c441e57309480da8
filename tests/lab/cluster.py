"""A lab host that gpunode set up, joined to a control plane; and what a test asks of the two."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from . import images, kubelet
from .control_plane import ControlPlane
from .lab import Lab
from .product_runs import Controller, expect

GPUS = "nvidia.com/gpu"
LIMIT_S = 60.0
Found = TypeVar("Found")


class Cluster:
    """One node, not yet registered: its kubelet is set up and does not run."""

    def __init__(self, lab: Lab, directory: Path, engine: str, *, gpu: str, controllers: bool = False) -> None:
        self.plane = ControlPlane(lab, directory / "pki", controllers=controllers)
        self.host = lab.host("debian12", gpu=gpu, runtime=engine, above=(images.KUBERNETES,), name="gpu01")
        self.engine = engine
        self.me = Controller("ssh", directory / "home")
        kubelet.furnish(self.host, self.plane, engine=engine)
        expect(self.me.gpunode(self.host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)

    def join(self, flags: str = "") -> None:
        """Start the kubelet until the node is ready."""
        self.host.write(kubelet.DEFAULTS, f"KUBELET_EXTRA_ARGS={flags}\n")
        self.host.nsrun("systemctl restart kubelet", check=True)
        self.wait(self.is_ready, "a node that is ready")

    def node(self) -> dict[str, Any]:
        return self.plane.get("node", self.host.name)

    def is_ready(self) -> bool:
        conditions = self.node().get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def gpus(self) -> tuple[int, int]:
        """Capacity and allocatable of the node's object."""
        status = self.node()["status"]
        return int(status["capacity"].get(GPUS, 0)), int(status["allocatable"].get(GPUS, 0))

    def said(self, pod: str) -> list[str]:
        """The lines of a pod's containers, from the files that the kubelet keeps."""
        text = self.host.nsrun(f"cat /var/log/pods/*_{pod}_*/*/*.log").stdout
        if self.engine == "docker":
            return [json.loads(line)["log"].rstrip("\n") for line in text.splitlines()]
        return [line.split(" ", 3)[3] for line in text.splitlines()]

    def checked(self, *options: str) -> dict[str, dict[str, Any]]:
        """Results of `gpunode check` by their ids."""
        answer = self.me.gpunode(self.host, "check", "--json", *options)
        assert answer.returncode in (0, 1), answer.stdout + answer.stderr
        return {one["id"]: one for one in json.loads(answer.stdout)["hosts"][0]["checks"]}

    def facts(self) -> dict[str, Any]:
        answer = expect(self.me.gpunode(self.host, "detect", "--json"), 0)
        found: dict[str, Any] = json.loads(answer.stdout)["hosts"][0]["facts"]
        return found

    def wait(self, found: Callable[[], Found], what: str, limit_s: float = LIMIT_S) -> Found:
        """Until there is something; else the kubelet's log says why not."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if seen := found():
                return seen
            time.sleep(0.2)
        log = self.host.nsrun("journalctl -u kubelet --no-pager -o cat | grep '^[FEW][0-9]' | tail -n 30").stdout
        raise AssertionError(f"no {what} within {limit_s:.0f} s; {log}")
