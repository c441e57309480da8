"""What the engines' logs say of one toolkit's hook, and whose root a container's is, as the probe tells it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.release import parse_identity
from tests.facts.hosts import make_root, run_probe
from tests.facts.test_setting import root_with

SHELLS = [
    pytest.param(shell, id=" ".join(shell), marks=pytest.mark.skipif(not shutil.which(shell[0]), reason="not here"))
    for shell in (("sh",), ("bash", "--posix"), ("busybox", "ash"))
]
CTK = "#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version {}'\necho 'commit: 1'\n"
SAYS = "mkdirat etc/nvidia/nvidia-application-profiles-rc.d: read-only file system"
LOG = f"""#!/bin/sh
echo '1795.1 gpu07 containerd[812]: level=error msg="StartContainer failed" error="{SAYS}: unknown"'
echo '1795.2 gpu07 kubelet[900]: E1124 pod_workers.go "{SAYS}"'
echo '1795.3 gpu07 kubelet[900]: I1124 all is well'
"""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("version", "journalctl", "found"),
    [("1.20.0", LOG, "kubelet"), ("1.20.0", "#!/bin/sh\necho '1 h x[1]: y'\n", ""), ("1.20.0", "#!/bin/sh\n", ""),
     ("1.20.1", LOG, None), ("1.19.1", LOG, None)],
    ids=["said", "not said", "empty", "mended", "without the hook"],
)  # fmt: skip
def test_the_logs_are_read_for_one_version(
    tmp_path: Path, shell: tuple[str, ...], version: str, journalctl: str, found: str | None
) -> None:
    root = make_root(tmp_path, {"nvidia-ctk": CTK.format(version), "journalctl": journalctl})
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert (host.toolkit.version, host.toolkit.hook_refused) == (version, found)


def test_without_a_journal_it_is_not_known(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-ctk": CTK.format("1.20.0")})
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").toolkit.hook_refused is None


@pytest.mark.parametrize(
    ("line", "found"),
    [("uid_map=0          0 4294967295", False), ("uid_map=0     100000      65536", True), ("uid_map=-", None),
     ("uid_map=0 x 1", None), ("uid_map=1000 1000 1", True), ("", None)],
)  # fmt: skip
def test_root_of_a_container_is_another_user_outside(line: str, found: bool | None) -> None:
    assert parse_identity(f"uid=0\n{line}\n").user_namespace is found


@pytest.mark.parametrize(("uids", "found"), [("         0     100000      65536\n", True), ("0 0 4294967295\n", False)])
def test_a_containers_root_and_its_cgroups(tmp_path: Path, uids: str, found: bool) -> None:
    lxc = (
        "run/systemd/container lxc",
        "proc/mounts cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        f"proc/self/uid_map {uids}",
    )
    root = root_with(tmp_path, "systemd", space="pid:[4026532281]", paths=lxc)
    (root / "proc/1/mountinfo").write_text("")
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert (host.platform, host.cgroup, host.user_namespace) == ("container", "v2", found)
