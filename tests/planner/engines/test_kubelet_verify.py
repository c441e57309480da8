"""shell/daemon/kubelet.sh: how a restarted kubelet is asked; systemctl is a stub here, /healthz this test's own."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.planner.engines.kubelet.daemon import SCRIPTS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what listens must be root's")
# EL 7's systemctl, which has no --value. Of a kubelet that has ended, systemd still knows the last process.
SYSTEMCTL = """#!/bin/sh
case $* in
  is-active*) [ -s {pid} ] ;;
  "show --property ExecMainPID kubelet.service") echo ExecMainPID=4711 ;;
  "show --property MainPID kubelet.service") echo "MainPID=$(cat {pid})" ;;
  *) echo "unrecognized option: $*" >&2; exit 1 ;;
esac
"""
# What one that came before has said is for who asks for more than the last process.
JOURNALCTL = """#!/bin/sh
case $* in
  *_SYSTEMD_UNIT=kubelet.service*_PID=4711*) cat {said} ;;
  *) echo 'F1125 20:49:42.482763    3987 server.go:182] unrecognized feature gate: OfTheOneBefore' ;;
esac
"""
FATAL = "F1125 20:49:44.745034    4711 server.go:182] unrecognized feature gate: DevicePlugins"
COMMAND_FAILED = 'E0510 08:00:00.745034    4711 run.go:74] "command failed" err="failed to parse kubelet flag"'
GOROUTINES = "goroutine 1 [running]:\nk8s.io/klog/v2.stacks(0x1)\n\t/go/src/klog.go:1026 +0x89\n" * 400


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


def asked(
    tmp: Path, shell: tuple[str, ...], *words: str,
    pid: str = "", limit: str = "6", log: str = "", kubectl: Path | None = None, enough: int = 2,
) -> tuple[int, str]:  # fmt: skip
    (tmp / "pid").write_text(pid)
    (tmp / "systemctl").write_text(SYSTEMCTL.format(pid=tmp / "pid"))
    (tmp / "systemctl").chmod(0o755)
    (tmp / "said").write_text(log)
    (tmp / "journalctl").write_text(JOURNALCTL.format(said=tmp / "said"))
    (tmp / "journalctl").chmod(0o755)
    for name in ("awk", "sed") if shell[0] == "busybox" else ():
        (tmp / name).symlink_to(shutil.which("busybox") or "busybox")
    script = "".join(map(resources.script, SCRIPTS)).replace("[ -d /run/systemd/system ]", "true")
    if kubectl:
        assert "${BINS:-/usr/local/bin /usr/bin}" in script
        script = script.replace("${BINS:-/usr/local/bin /usr/bin}", str(kubectl.parent))
    script = f"gpunode_enough={enough}\n{script}"
    run = subprocess.run(
        (*shell, "-s", "--", "kubelet.service", limit, *words),
        input=script, capture_output=True, text=True, check=False, timeout=60,
        env={"PATH": f"{tmp}:{os.environ['PATH']}", "LC_ALL": "C"},
    )  # fmt: skip
    return run.returncode, run.stderr


@pytest.fixture
def owned() -> Iterator[Path]:
    """pytest's own directories are below /tmp, where anybody may write: nothing there is believed."""
    with tempfile.TemporaryDirectory(dir="/run", prefix=".gpunode-test-") as directory:
        yield Path(directory)


def test_one_that_stays_and_answers_ok_is_well(tmp_path: Path, shell: tuple[str, ...], port: int) -> None:
    assert asked(tmp_path, shell, str(port), "-", "-", "-", pid=str(os.getpid())) == (0, "")


@pytest.mark.parametrize(
    ("log", "evidence", "words"),
    [
        (f"I1125 20:49:44.1    4711 server.go:1] Starting\n{FATAL}\n{GOROUTINES}", FATAL, FATAL.partition("] ")[2]),
        (f"{'Flags:' + chr(10) + '      --v Level' * 400}\n{FATAL}\n", FATAL, FATAL.partition("] ")[2]),
        (f'{COMMAND_FAILED}\n', COMMAND_FAILED, COMMAND_FAILED.partition("] ")[2]),
        (f"E1125 20:49:43.1    4711 a.go:1] Observed a panic\n{GOROUTINES}E1125 20:49:44.1    4711 b.go:2] no node\n",
         "E1125 20:49:43.1    4711 a.go:1] Observed a panic\nE1125 20:49:44.1    4711 b.go:2] no node", "no node"),
        ("".join(f"E1125 20:49:4{n}.1    4711 b.go:2] no CNI\n" for n in range(9)),
         "E1125 20:49:48.1    4711 b.go:2] no CNI", "no CNI"),
        (f"panic: out of range\n\n{GOROUTINES}", "panic: out of range", "panic: out of range"),
        (f"Error: unknown flag: --x\n{'usage' + chr(10)}", "Error: unknown flag: --x", "Error: unknown flag: --x"),
        ("a\nb\nc\nd\n", "b\nc\nd", "d"),
        ("", "", ""),
    ],
    ids=["klog's Fatal and every goroutine", "behind a page of help", "since 1.24", "errors around a panic",
         "the same again and again", "Go's own panic", "cobra's", "no error at all", "nothing"],
)  # fmt: skip
def test_one_that_ends_is_said_in_its_own_last_words(
    tmp_path: Path, shell: tuple[str, ...], port: int, log: str, evidence: str, words: str
) -> None:
    code, said = asked(tmp_path, shell, str(port), "-", "-", "-", limit="60", log=log)
    last = f"kubelet.service: its process does not stay{words and '; its last words: '}{words}"
    assert (code, said) == (1, f"{evidence}{evidence and chr(10)}{last}\n")


def test_one_without_an_answer_is_not_well(tmp_path: Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # and nobody listens
        free = one.getsockname()[1]
        code, said = asked(tmp_path, ("sh",), str(free), "-", "-", "-", pid=str(os.getpid()), limit="3")
    assert (code, f"its /healthz on port {free} does not answer ok" in said) == (1, True)


def test_one_that_answers_otherwise_is_not_well(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Health, "answer", b"syncloop failed")
    assert asked(tmp_path, ("sh",), str(port), "-", "-", "-", pid=str(os.getpid()), limit="3")[0] == 1


def test_it_must_have_been_started_with_the_gate(tmp_path: Path, port: int) -> None:
    words = ("--feature-gates=Accelerators=true", "DevicePlugins=true")
    with subprocess.Popen(("sh", "-c", "sleep 60; :", "--", *words)) as kubelet:
        try:
            well = asked(tmp_path, ("sh",), str(port), "-", "-", "-", *words, pid=str(kubelet.pid))
            code, said = asked(
                tmp_path, ("sh",), str(port), "-", "-", "-", "CPUManager=true", pid=str(kubelet.pid), limit="3"
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
    code, said = asked(tmp_path, ("sh",), str(port), "-", "-", str(plugins), pid=me, limit="3")
    assert (code, "has not registered again" in said) == (1, True)
    os.utime(plugins / "nvidia-gpu.sock", (now + 1, now + 1))
    assert asked(tmp_path, ("sh",), str(port), "-", "-", str(plugins), pid=me) == (0, "")


def test_who_listens_on_another_address_does_not_answer_there(tmp_path: Path, port: int) -> None:
    """Any user may bind 127.0.0.2 at the port of the kubelet."""
    with subprocess.Popen(
        ("python3", "-c", LISTENER, str(port)), stdout=subprocess.PIPE, preexec_fn=lambda: os.setuid(65534)
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"listens\n"
            assert asked(tmp_path, ("sh",), str(port), "-", "-", "-", pid=str(os.getpid())) == (0, "")
        finally:
            other.kill()


LISTENER = """
import socket, sys, time
one = socket.socket()
one.bind(("127.0.0.2", int(sys.argv[1])))
one.listen()
print("listens", flush=True)
time.sleep(60)
"""
KUBECTL = """#!/bin/sh
case $* in *"--kubeconfig {config}"*"-- gpu-node-7") echo {says} ;; *) exit 1 ;; esac
"""


@pytest.mark.parametrize(("says", "code"), [("True", 0), ("False", 1)])
def test_the_node_is_asked_for_by_its_own_name_and_kubeconfig(
    tmp_path: Path, owned: Path, port: int, says: str, code: int
) -> None:
    config, kubectl = owned / "kubelet.conf", owned / "kubectl"
    config.write_text("users: []\n")
    kubectl.write_text(KUBECTL.format(config=config, says=says))
    kubectl.chmod(0o755)
    found = asked(
        tmp_path, ("sh",), str(port), "gpu-node-7", str(config), "-", pid=str(os.getpid()), limit="4", kubectl=kubectl
    )
    assert (found[0], "its node, which was Ready, is not" in found[1]) == (code, code == 1)


@pytest.mark.parametrize(
    "text",
    [
        "users:\n- user:\n    exec:\n      command: /evil\n",
        "users: [{name: u, user: {exec: {command: /evil}}}]\n",
        '{"users":[{"user":{"exec":{"command":"/evil"}}}]}\n',
        "users:\n- user:\n    'exec': {command: /evil}\n",
        "users:\n- user:\n    exec : {command: /evil}\n",
        "users:\n- user:\n    ? exec\n    : {command: /evil}\n",
        'users:\n- user:\n    "\\u0065xec": {command: /evil}\n',
        "users:\n- user:\n    auth-provider: {name: gcp}\n",
    ],
    ids=["block", "flow", "JSON", "quoted", "a blank", "explicit key", "an escape", "auth-provider"],
)
def test_a_kubeconfig_that_runs_a_program_is_told_by_any_spelling(text: str, tmp_path: Path) -> None:
    assert asks_a_program(text, tmp_path)


@pytest.mark.parametrize(
    "text", ["users:\n- user:\n    client-certificate-data: QUJDexecREVG+/==\n", "users: [{user: {token: executor}}]\n"]
)
def test_a_kubeconfig_with_a_certificate_is_used(text: str, tmp_path: Path) -> None:
    assert not asks_a_program(text, tmp_path)


def asks_a_program(text: str, tmp_path: Path) -> bool:
    (tmp_path / "config").write_text(text)
    script = f"{resources.script('trust')}\nasks_a_program {tmp_path / 'config'}"
    codes = {subprocess.run((*words, "-c", script), check=False).returncode for words in (("dash",), ("bash",))}
    assert codes in ({0}, {1})
    return codes == {0}


def test_looks_that_are_slow_are_enough_where_all_was_well(tmp_path: Path, port: int) -> None:
    """Thirteen are wanted after an engine's change; on a busy host each takes seconds."""
    me = str(os.getpid())
    assert asked(tmp_path, ("sh",), str(port), "-", "-", "-", pid=me, limit="4", enough=12) == (0, "")
