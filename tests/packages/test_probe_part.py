"""What the package managers add to the probe stands in a file as well, for a look that begins before they are loaded.

GPUNODE_UPDATE_GOLDEN=1 rewrites it; the reviewer reads the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.facts.probe_script import probe_script, usual_probe_script
from gpunode.packages.apt import Apt
from gpunode.packages.probe import probe_part
from gpunode.packages.registry import BACKENDS

WRITTEN = Path(resources.PACKAGE) / "shell" / "probe" / "managers.sh"


def test_the_file_is_what_the_managers_say() -> None:
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        Path(WRITTEN).write_text(probe_part(), encoding="utf-8")
    assert WRITTEN.read_text(encoding="utf-8") == probe_part(), "GPUNODE_UPDATE_GOLDEN=1 writes it anew"
    assert usual_probe_script() == probe_script()


def test_with_a_strangers_manager_the_probe_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the look that began with gpunode's own managers alone is not taken for it (transport/ahead.py)."""
    monkeypatch.setitem(BACKENDS, "zug", type("Zug", (Apt,), {"name": "zug", "tools": ("zug",)})())
    assert usual_probe_script() != probe_script()
