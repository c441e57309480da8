"""Which runc is asked for its version: PATH's, or the one beside the containerd of a Kubernetes distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe

SAYS = "#!/bin/sh\necho 'runc version {0}'\necho 'commit: v{0}-0-g0'\n"


@pytest.mark.parametrize(
    ("in_path", "mode", "found"),
    [("1.3.2", 0o755, "1.3.2"), (None, 0o755, None), ("1.3.2", 0o777, None)],
    ids=["PATH's", "none", "one that anybody may change"],
)
def test_containerds_runc_is_asked_for_its_version(
    tmp_path: Path, in_path: str | None, mode: int, found: str | None
) -> None:
    root = make_root(tmp_path)
    if in_path:
        program = root / "usr/bin/runc"
        program.write_text(SAYS.format(in_path))
        program.chmod(mode)
    containerd = assemble(run_probe(("sh",), root).stdout, "gpu07").runtimes[1]
    assert (containerd.name, containerd.runc_version) == ("containerd", found)


@pytest.mark.parametrize(
    ("directory", "found"), [("usr/bin", "1.3.2"), ("var/lib/rancher/k3s/data/0f9c/bin", "1.2.8")], ids=["PATH", "own"]
)
def test_a_distribution_starts_the_runc_beside_its_containerd(tmp_path: Path, directory: str, found: str) -> None:
    """/usr/local/bin comes first in a daemon's PATH, wherever containerd itself is."""
    root = make_root(tmp_path)
    for path, version in (("usr/local/bin/runc", "1.3.2"), (f"{directory}/runc", "1.2.8")):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(SAYS.format(version))
        (root / path).chmod(0o755)
    if directory != "usr/bin":
        (root / directory / "containerd").write_text((root / "usr/bin/containerd").read_text())
        (root / directory / "containerd").chmod(0o755)
        (root / "proc/812/exe").unlink()
        (root / "proc/812/exe").symlink_to(f"/{directory}/containerd")
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").runtimes[1].runc_version == found
