"""`gpunode runtime configure` killed with SIGKILL after every system call that changed anything on the disk."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.apply.strike import killed_after
from tests.apply.test_torn import MOMENTS, disk

OLD = '{\n  "debug": true\n}\n'
REPLACE = "import sys; from gpunode.cli.app import main; sys.exit(main(sys.argv[1:]))"


def configure(path: Path) -> tuple[str, ...]:
    return (sys.executable, "-B", "-c", REPLACE, "runtime", "configure", "docker", "--config", str(path), "--backup")


def test_at_any_moment_the_file_is_old_or_new_and_the_next_run_finishes(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(OLD)
    subprocess.run(configure(path), check=True, capture_output=True)
    new = path.read_text()
    assert '"default-runtime": "nvidia"' in new
    for moment in range(1, MOMENTS):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_text(OLD)
        path.chmod(0o640)
        with tempfile.TemporaryFile() as nothing:
            died = killed_after(moment, configure(path), nothing, lambda: tuple(disk(str(tmp_path))))
        assert path.read_text() in (OLD, new), f"torn after change {moment}"
        assert path.stat().st_mode & 0o777 == 0o640
        subprocess.run(configure(path), check=True, capture_output=True)
        assert path.read_text() == new
        if not died:
            assert moment > 4, "there is more to a write than that: a candidate, its bytes, its mode, the rename"
            return
    raise AssertionError(f"it has more than {MOMENTS} moments")
