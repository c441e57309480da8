"""gpunode installed on a host without pip: its source, and its pure-Python dependencies, on a PYTHONPATH."""

from __future__ import annotations

import shutil
from pathlib import Path

import tomlkit

from .host import Host

HOME = "/opt/gpunode"
LAUNCHER = """#!/usr/bin/python3 -P
import sys

sys.path[:0] = ["{home}/source", "{home}/site"]
from {module} import {function}

sys.exit({function}())
"""


def install(host: Host, source_tree: Path, site: Path) -> None:
    module, function = _entry_point(source_tree)
    places = {"source/gpunode": source_tree / "gpunode", "source/templates": source_tree / "templates", "site": site}
    for name, source in places.items():
        if source.is_dir():
            target = host.path(f"{HOME}/{name}")
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    host.write("/usr/local/bin/gpunode", LAUNCHER.format(home=HOME, module=module, function=function), 0o755)


def _entry_point(source_tree: Path) -> tuple[str, str]:
    """Module and function of the `gpunode` script in pyproject.toml."""
    project = tomlkit.parse((source_tree / "pyproject.toml").read_text()).unwrap()["project"]
    module, _, function = project["scripts"]["gpunode"].partition(":")
    return module, function
