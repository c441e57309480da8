"""`scripts/release`: the files of a release, in dist/."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from gpunode_release.build import Build
from gpunode_release.faults import ReleaseError
from gpunode_release.source import source_of

ROOT = Path(__file__).resolve().parents[2]
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpunode-release"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument("--output", metavar="DIRECTORY", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument(
        "--test", action="store_true", help="build twice, compare, lint, install and remove in clean roots"
    )
    chosen = parser.parse_args()
    try:
        source = source_of(ROOT)
        for name in source.uncommitted:
            _say(f"not in the release, since it is not committed: {name}")
        with tempfile.TemporaryDirectory(prefix="gpunode-release-") as home:
            made = Path(home, "dist")
            made.mkdir()
            os.chmod(made, 0o755)
            Build(source, _CACHE / "wheels", _fresh(home, "work"), made, _say).release()
            if chosen.test:
                from gpunode_release.trial import try_out

                try_out(source, _CACHE / "wheels", made, _fresh(home, "trial"), _say)
            _hand_over(made, chosen.output)
    except (ReleaseError, OSError) as error:
        _say(f"scripts/release: {error}")
        return 1
    return 0


def _fresh(home: str, name: str) -> Path:
    path = Path(home, name)
    path.mkdir()
    return path


def _hand_over(made: Path, output: Path) -> None:
    """All of it or nothing, and nothing of an earlier release beside it."""
    kept = output.with_name(f"{output.name}.old")
    new = output.with_name(f"{output.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(made, new)
    if output.exists():
        output.rename(kept)
    new.rename(output)
    shutil.rmtree(kept, ignore_errors=True)
    _say(f"{output}: {len(list(output.iterdir()))} files, their hashes in SHA256SUMS")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
