"""ROOT COMMIT HOME OUTPUT [--test]: what `scripts/release` starts, with gpunode_release and gpunode of that commit."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from gpunode_release.build import Build
from gpunode_release.faults import ReleaseError
from gpunode_release.source import Source, source_of
from gpunode_release.trial import try_out

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpunode-release" / "wheels"


def main() -> int:
    root, commit, home, output, *rest = sys.argv[1:]
    try:
        source = source_of(Path(root), commit)
        hand_over(_made(source, Path(home), tried="--test" in rest), Path(output))
    except (ReleaseError, OSError) as error:
        _say(f"scripts/release: {error}")
        return 1
    return 0


def _made(source: Source, home: Path, *, tried: bool) -> Path:
    """The directory with all files, below `home`, which somebody else removes. Raises ReleaseError."""
    dist, work, trial = (home / name for name in ("dist", "work", "trial"))
    for path in (dist, work, trial):
        path.mkdir()
    dist.chmod(0o755)
    Build(source, _CACHE, work, dist, _say).release()
    if tried:
        try_out(source, _CACHE, dist, trial, _say)
    return dist


def hand_over(made: Path, output: Path) -> None:
    """All of it or nothing, and nothing of an earlier release beside it."""
    kept = output.with_name(f"{output.name}.old")
    new = output.with_name(f"{output.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(made, new)
    if output.exists():
        shutil.rmtree(kept, ignore_errors=True)  # of one that was ended here
        output.rename(kept)
    new.rename(output)
    shutil.rmtree(kept, ignore_errors=True)
    _say(f"{output}: {len(list(output.iterdir()))} files, their hashes in SHA256SUMS")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
