"""The wheel carries what the product reads at run time, and finds it from any directory."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_renders_a_template_from_anywhere(tmp_path: Path) -> None:
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)),
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    names = {p.relative_to(site / "gpunode").as_posix() for p in (site / "gpunode").rglob("*") if p.is_file()}
    assert {"shell/probe/run.sh", "catalog/branches.yaml", "cli/start/root_page_80.txt"} <= names
    assert {"templates/modprobe/nouveau.conf.j2", "templates/fleet/matrix.html.j2", "templates/fleet/rows.js"} <= names
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import gpunode.resources as r;"
        "assert r.__file__.startswith(sys.argv[1]), r.__file__; print(r.render(sys.argv[2], modules=('nouveau',)))"
    )
    shown = subprocess.run(
        (sys.executable, "-c", program, str(site), "modprobe/nouveau.conf.j2"),
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    )
    assert "nouveau" in shown.stdout


def test_no_file_of_the_package_begins_as_a_program() -> None:
    """rpmlint refuses a package with one that nobody may execute; what starts gpunode is made beside it."""
    files = [path for name in ("gpunode", "templates") for path in (ROOT / name).rglob("*") if path.is_file()]
    assert len(files) > 500
    assert [str(path) for path in files if path.read_bytes().startswith(b"#!")] == []
