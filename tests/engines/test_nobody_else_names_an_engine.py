"""What differs between engines is asked of the engine (engines/base.py); a name elsewhere is a misplaced branch."""

from __future__ import annotations

import ast
from pathlib import Path

from gpunode.engines.registry import ENGINES

PRODUCT = Path(__file__).parents[2] / "gpunode"
# Files that may name an engine, each with its reason.
MAY = {
    "checks/rt/containerd.py": "checks of containerd, whose ids name it",
    "checks/rt/docker.py": "checks of docker, whose ids name it",
    "editing/toml_text.py": "the tool that names a fault of its TOML too; other engines say their own (drop_ins.load)",
    "facts/engines.py": "reads their own sections of the probe",
    "facts/runtimes.py": "reads their own sections of the probe",
    "facts/kubernetes.py": "distributions by their folders and processes; kubeadm is among them, and no engine",
    "facts/recordings.py": "a host name that says nothing",
    "masking/tools.py": "command lines of other people's tools, and where their secrets stand",
    "model/facts.py": "a label as it is printed: containerd@UNIT",
}


def named(path: Path) -> list[int]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in tuple(ENGINES)]


def test_an_engine_is_named_in_its_own_room_alone() -> None:
    found = {path.relative_to(PRODUCT).as_posix(): lines for path in PRODUCT.rglob("*.py") if (lines := named(path))}
    others = {path: lines for path, lines in found.items() if not path.startswith("engines/")}
    assert sorted(others) == sorted(MAY), {path: lines for path, lines in others.items() if path not in MAY}
