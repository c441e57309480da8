"""shell/daemon/kubelet.sh: how a restarted kubelet is asked; systemctl is a stub here, /healthz this test's own."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.planner.engines.kubelet.daemon import SCRIPTS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what listens must be root's")
SYSTEMCTL = """#!/bin/sh
case $1 in
  is-active) [ -s {pid} ] ;;
  show) cat {pid} ;;
esac
"""


class Health(http.server.BaseHTTPRequestHandler):
    answer = b"ok"

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return ("busybox", "ash") if request.param == "busybox" else (request.param,)


def asked(tmp: Path, shell: tuple[str, ...], *words: str, pid: str = "", limit: str = "6") -> tuple[int, str]:
    (tmp / "pid").write_text(pid)
    (tmp / "systemctl").write_text(SYSTEMCTL.format(pid=tmp / "pid"))
    (tmp / "systemctl").chmod(0o755)
    (tmp / "journalctl").write_text("#!/bin/sh\necho 'E1 unrecognized feature gate: DevicePlugins'\n")
    (tmp / "journalctl").chmod(0o755)
    script = "".join(map(resources.script, SCRIPTS)).replace("[ -d /run/systemd/system ]", "true")
    run = subprocess.run(
        (*shell, "-s", "--", "kubelet.service", limit, *words),
        input=script, capture_output=True, text=True, check=False, timeout=60,
        env={"PATH": f"{tmp}:{os.environ['PATH']}", "LC_ALL": "C"},
    )  # fmt: skip
    return run.returncode, run.stderr


def test_one_that_stays_and_answers_ok_is_well(tmp_path: Path, shell: tuple[str, ...], port: int) -> None:
    assert asked(tmp_path, shell, str(port), "0", "-", pid=str(os.getpid())) == (0, "")


def test_one_that_ends_is_said_with_its_own_reason(tmp_path: Path, shell: tuple[str, ...], port: int) -> None:
    code, said = asked(tmp_path, shell, str(port), "0", "-", limit="60")
    assert code == 1
    assert "kubelet.service: its process does not stay" in said
    assert "unrecognized feature gate: DevicePlugins" in said


def test_one_without_an_answer_is_not_well(tmp_path: Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # and nobody listens
        free = one.getsockname()[1]
        code, said = asked(tmp_path, ("sh",), str(free), "0", "-", pid=str(os.getpid()), limit="3")
    assert (code, f"its /healthz on port {free} does not answer ok" in said) == (1, True)


def test_one_that_answers_otherwise_is_not_well(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Health, "answer", b"syncloop failed")
    assert asked(tmp_path, ("sh",), str(port), "0", "-", pid=str(os.getpid()), limit="3")[0] == 1


def test_it_must_have_been_started_with_the_gate(tmp_path: Path, port: int) -> None:
    words = ("--feature-gates=Accelerators=true", "DevicePlugins=true")
    with subprocess.Popen(("sh", "-c", "sleep 60; :", "--", *words)) as kubelet:
        try:
            well = asked(tmp_path, ("sh",), str(port), "0", "-", *words, pid=str(kubelet.pid))
            code, said = asked(
                tmp_path, ("sh",), str(port), "0", "-", "CPUManager=true", pid=str(kubelet.pid), limit="3"
            )
        finally:
            kubelet.kill()
    assert well == (0, "")
    assert (code, "it was started without CPUManager=true" in said) == (1, True)


def test_a_plugin_that_was_registered_must_register_again(tmp_path: Path, port: int) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()

    def listen(name: str, at: float) -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(plugins / name))
        os.utime(plugins / name, (at, at))

    now = time.time()
    listen("kubelet.sock", now)
    listen("nvidia-gpu.sock", now - 60)
    me = str(os.getpid())
    code, said = asked(tmp_path, ("sh",), str(port), "0", str(plugins), pid=me, limit="3")
    assert (code, "has not registered again" in said) == (1, True)
    os.utime(plugins / "nvidia-gpu.sock", (now + 1, now + 1))
    assert asked(tmp_path, ("sh",), str(port), "0", str(plugins), pid=me) == (0, "")
