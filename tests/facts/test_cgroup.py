"""The cgroup hierarchy, and whether the kubelet is told to start on v1, as the probe tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.kubernetes import parse_kubernetes
from tests.facts.hosts import make_root, run_probe

V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
TMPFS = "tmpfs /sys/fs/cgroup tmpfs ro 0 0\n"
MEMORY = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
UNIFIED = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "found"),
    [(V2, "v2"), (TMPFS + MEMORY, "v1"), (TMPFS + UNIFIED + MEMORY, "hybrid"),
     ("cgroup2 /mnt/cgroup cgroup2 rw 0 0\n", None), ("", None)],
    ids=["unified", "v1", "hybrid", "elsewhere", "none"],
)  # fmt: skip
def test_the_hierarchy_is_what_is_mounted(tmp_path: Path, mounts: str, found: str | None) -> None:
    root = make_root(tmp_path)
    (root / "proc" / "mounts").write_text(mounts)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").cgroup == found


@pytest.mark.parametrize(
    ("line", "starts"),
    [("failCgroupV1=false", True), ("failCgroupV1=false # for now", True), ("failCgroupV1=true", False), ("", False)],
)
def test_a_kubelet_may_be_told_to_start_on_v1(line: str, starts: bool) -> None:
    assert parse_kubernetes(f"running=1\n{line}\n", ()).starts_on_cgroup_v1 is starts


def test_the_kubelets_file_is_read_for_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "var/lib/kubelet").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/kubelet/config.yaml").write_text("cgroupDriver: systemd\nfailCgroupV1: false\n")
    kubernetes = assemble(run_probe(("sh",), root).stdout, "gpu07").kubernetes
    assert kubernetes.starts_on_cgroup_v1
    assert kubernetes.kubelet_cgroup_driver == "systemd"
