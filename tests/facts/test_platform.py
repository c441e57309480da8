"""Whether this machine brings its own driver, as the probe tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe


@pytest.mark.parametrize(
    ("paths", "chroot", "found"),
    [
        (("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"), False, "wsl"),
        (("etc/nv_tegra_release",), False, "l4t"),
        (("dev/dxg",), False, None),
        (("usr/lib/wsl/lib/libcuda.so.1",), False, None),
        (("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"), True, None),
    ],
    ids=["WSL", "Jetson", "no libraries", "no device", "an image that is built in it"],
)
def test_the_platform_is_known_by_its_own_files(
    tmp_path: Path, paths: tuple[str, ...], chroot: bool, found: str | None
) -> None:
    root = make_root(tmp_path)
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / "proc" / "1").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "1" / "root").symlink_to(tmp_path.parent if chroot else root)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").platform == found
