"""`scripts/release`: the files of a release, in dist/.

This much is run from the work tree. All else is run as the commit has it: the tools of a release are part of it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from gpunode_release.faults import ReleaseError
from gpunode_release.source import export, source_of
from gpunode_release.tools import python_of

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/release", description="The files of a release, of the last commit.")
    parser.add_argument("--output", metavar="DIRECTORY", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument(
        "--test", action="store_true", help="build twice, compare, lint, install and remove in clean roots"
    )
    chosen = parser.parse_args()
    try:
        source = source_of(ROOT)
        for name in source.uncommitted:
            print(f"not in the release, since it is not committed: {name}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="gpunode-release-") as home:
            at = export(source, Path(home, "tools"))
            words = (
                str(ROOT),
                source.commit,
                home,
                str(chosen.output.absolute()),
                *(["--test"] if chosen.test else []),
            )
            made = subprocess.run(
                (sys.executable, "-m", "gpunode_release.make", *words), cwd=home, env=python_of(at), check=False
            )
            return made.returncode
    except (ReleaseError, OSError) as error:
        print(f"scripts/release: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
