"""gpunode comes onto a host verified, or not at all: real shells and python3, in a directory of the test's own."""

from __future__ import annotations

import http.server
import os
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode.export.files import Request
from gpunode.export.scripts import host_script

from .requests import STAND_IN, request

SHELLS = ("dash", "bash", "busybox sh")


def run(asked: Request, state: Path, *, shell: str = "dash", stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    script = host_script(asked, str(state), head="test") + '\nfind_python; bring; "$PYTHON" -I "$PYZ" "$@"\n'
    done = subprocess.run((*shlex.split(shell), "-c", script), input=stdin, capture_output=True, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if subprocess.run(("sh", "-c", f"command -v {name.split()[0]}"), capture_output=True, check=False).returncode:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a web server with the stand-in at /gpunode.pyz; what else it is asked for it does not have."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.startswith("/gpunode.pyz")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(STAND_IN if found else b"<html>\x1b[31mno</html>")

        def log_message(self, *words: object) -> None:
            pass

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{web.server_port}"
    web.shutdown()
    web.server_close()


def test_from_standard_input_a_file_and_an_address(tmp_path: Path, shell: str, server: str) -> None:
    at = tmp_path / "at.pyz"
    at.write_bytes(STAND_IN)
    for number, (asked, stdin) in enumerate(
        (
            (request(), STAND_IN),
            (request(path=str(at)), b""),
            (request(url=f"{server}/gpunode.pyz?signature=secret"), b""),
        )
    ):
        state = tmp_path / f"state{number}"
        done = run(asked, state, shell=shell, stdin=stdin)
        assert (done.returncode, done.stdout, done.stderr) == (0, "stand-in ran\n", "")
        assert state.stat().st_mode & 0o777 == 0o700
        (kept,) = state.iterdir()
        assert kept.read_bytes() == STAND_IN
        assert kept.stat().st_mode & 0o777 == 0o700


def test_what_is_there_already_is_not_brought_again(tmp_path: Path) -> None:
    assert run(request(), tmp_path / "s", stdin=STAND_IN).returncode == 0
    again = run(request(path="/nowhere"), tmp_path / "s")
    assert (again.returncode, again.stdout) == (0, "stand-in ran\n")


@pytest.mark.parametrize("came", [b"", STAND_IN[:-1], STAND_IN + b"\n", b"import os; os.system('touch pwned')\n"])
def test_anything_else_is_not_run_and_not_kept(tmp_path: Path, came: bytes, shell: str) -> None:
    done = run(request(), tmp_path / "s", stdin=came, shell=shell)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "nothing was run: what came is not the gpunode of this export" in done.stderr
    assert list((tmp_path / "s").iterdir()) == []


def test_a_changed_copy_is_replaced(tmp_path: Path) -> None:
    state = tmp_path / "s"
    assert run(request(), state, stdin=STAND_IN).returncode == 0
    (kept,) = state.iterdir()
    kept.write_bytes(b"print('pwned')\n")
    assert run(request(), state, stdin=STAND_IN).stdout == "stand-in ran\n"
    kept.write_bytes(b"print('pwned')\n")
    done = run(request(), state)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_missing_page_is_told_by_its_number_alone(tmp_path: Path, server: str) -> None:
    done = run(request(url=f"{server}/other?signature=secret"), tmp_path / "s")
    assert done.returncode == 1
    assert "the server answers 404" in done.stderr
    assert "secret" not in done.stderr
    assert "\x1b" not in done.stderr
    assert list((tmp_path / "s").iterdir()) == []


def test_a_directory_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "s").symlink_to(tmp_path / "theirs")
    done = run(request(), tmp_path / "s", stdin=STAND_IN)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not a directory of root's own" in done.stderr
    assert os.listdir(tmp_path / "theirs") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="to give a directory to somebody else takes root")
def test_a_directory_of_somebody_elses_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    os.chown(tmp_path / "s", 65534, 65534)
    done = run(request(), tmp_path / "s", stdin=STAND_IN)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not a directory of root's own" in done.stderr
