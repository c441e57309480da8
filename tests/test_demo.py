"""scripts/demo on a system that has next to nothing, with stand-ins for what it calls."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("sh", "dirname", "cksum", "cat", "mkdir", "ln")
APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
[ "$1" = update ] || ln -s python3-of-apt "$BIN/python3"
"""
PYTHON = """#!/bin/sh
echo "python3 $1 $2" >>"$LOG"
[ "$1 $2" = '-m venv' ] || exit 0
mkdir -p "$3/bin"
ln -s "$BIN/python3-of-apt" "$3/bin/python"
ln -s "$BIN/gpunode" "$3/bin/"
"""


def run(
    tmp_path: Path, *, uid: int, apt: bool = False, gpunode: str = ""
) -> tuple[subprocess.CompletedProcess[str], str]:
    """scripts/demo as this user, with a PATH of stand-ins; what they were called with."""
    tools, log = tmp_path / "bin", tmp_path / "log"
    tools.mkdir()
    log.touch()
    for name in NEEDED:
        (tools / name).symlink_to(shutil.which(name) or name)
    texts = {
        "id": f"#!/bin/sh\necho {uid}\n",
        "dpkg-query": "#!/bin/sh\nexit 1\n",
        "python3-of-apt": PYTHON,
        "gpunode": f"#!/bin/sh\n{gpunode}\n",
    }
    if gpunode:
        texts["python3"] = PYTHON
    for name, text in (texts | ({"apt-get": APT} if apt else {})).items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    env = {"PATH": str(tools), "BIN": str(tools), "LOG": str(log), "GPUNODE_VENV": str(tmp_path / "venv")}
    shell = shutil.which("sh") or "sh"
    done = subprocess.run((shell, str(ROOT / "scripts/demo")), env=env, capture_output=True, text=True, check=False)
    return done, log.read_text()


def test_root_of_a_debian_without_python_is_given_it(tmp_path: Path) -> None:
    done, log = run(tmp_path, uid=0, apt=True)
    assert done.returncode == 0, done.stderr
    assert "install -y -qq --no-install-recommends python3-venv ca-certificates" in log
    assert "installing system packages: python3-venv ca-certificates" in done.stderr


@pytest.mark.parametrize(("uid", "apt"), [(1000, True), (0, False)], ids=["no root", "no apt"])
def test_who_cannot_install_is_told_the_package(tmp_path: Path, uid: int, apt: bool) -> None:
    done, log = run(tmp_path, uid=uid, apt=apt)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert log == ""


@pytest.mark.parametrize(
    ("gpunode", "code"),
    [('[ "$1" = check ] && exit 1; exit 0', 0), ('[ "$1" = plan ] && exit 1; exit 0', 1), ("exit 70", 70)],
    ids=["check finds something", "plan fails", "an internal error"],
)
def test_it_fails_when_what_it_shows_fails(tmp_path: Path, gpunode: str, code: int) -> None:
    done, _ = run(tmp_path, uid=1000, gpunode=gpunode)
    assert done.returncode == code, done.stdout + done.stderr
