"""What the firmware calls the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe


@pytest.mark.parametrize(
    ("written", "found"),
    [("PowerEdge XE9680\n", "PowerEdge XE9680"), ("  VMware7,1  \n", "VMware7,1"), ("\n", None), (None, None)],
    ids=["a name", "blanks", "empty", "no file"],
)
def test_the_machines_name_is_read(tmp_path: Path, written: str | None, found: str | None) -> None:
    root = make_root(tmp_path)
    if written is not None:
        (root / "sys/class/dmi/id").mkdir(parents=True)
        (root / "sys/class/dmi/id/product_name").write_text(written)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").product == found
