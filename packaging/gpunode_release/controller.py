"""One file for whoever reaches hosts over SSH, with paramiko and all compiled libraries in it (shiv)."""

from __future__ import annotations

import sys
from pathlib import Path

from gpunode_release import tools
from gpunode_release.source import Source
from gpunode_release.tree import settle

NAME = "gpunode-controller-linux-x86_64.pyz"


def build_controller(site: Path, source: Source, work: Path, into: Path) -> Path:
    """`site`: the packages. It unpacks itself into ~/.shiv, once for each build. Raises ReleaseError."""
    settle(site, source, ())
    made = into / NAME
    tools.run(
        source,
        *(sys.executable, "-m", "shiv", "--reproducible", "--compressed", "--no-modify", "--site-packages", str(site)),
        *("--python", "/usr/bin/env python3", "--entry-point", "gpunode.cli.app:run", "--output-file", str(made)),
        cwd=work,
    )
    made.chmod(0o755)
    return made
