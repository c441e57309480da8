"""query.sh and verify.sh under every shell of the field, against sockets that answer, refuse and hang."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.engines.daemon import commands
from gpunode.model.action import Run
from tests.engines import daemons
from tests.engines.hosts import engine_facts

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "ash")]
COMMON = ("timeout", "sed", "tr", "grep", "date", "sleep", "head", "tail", "cat", "id", "stat", "ls", "readlink")


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: the name of a unix socket holds at most 107 bytes. And no /tmp: sockets there are nobody's."""
    place = "/run" if os.geteuid() == 0 else str(Path.home())
    with tempfile.TemporaryDirectory(prefix="gpn", dir=place) as path:
        yield Path(path)


def with_tools(directory: Path, *names: str) -> dict[str, str]:
    """An environment in which only these programs, and the common ones, can be found."""
    place = directory / "bin"
    place.mkdir()
    for name in (*COMMON, *names):
        # The interpreter itself, not a shim that would look for it in the PATH that is taken away.
        target = os.path.realpath("/proc/self/exe") if name == "python3" else shutil.which(name)
        if target is None:
            pytest.skip(f"{name} is not installed here")
        (place / name).symlink_to(target)
    return {"PATH": str(place)}


def run(shell: tuple[str, ...], script: str, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    executable = shutil.which(shell[0])
    assert executable is not None
    argv = (executable, *shell[1:], "-s", "--", *arguments)
    return subprocess.run(argv, input=script, text=True, capture_output=True, env=env, timeout=60, check=False)


ASK = resources.script("daemon/query")
CRI = ASK + '\ngpunode_cri_status "$1"\n'
INFO = ASK + '\ngpunode_docker_info "$1"\n'


@pytest.mark.parametrize("tool", ["python3", "curl"])
def test_cri_is_asked_with_what_the_host_has(shell: tuple[str, ...], tool: str, directory: Path) -> None:
    config = daemons.cri_config("nvidia", "nvidia", "runc")
    with daemons.containerd(directory, config) as path:
        answer = run(shell, CRI, path, env=with_tools(directory, tool))
    source, _, printed = answer.stdout.partition("\n")
    assert (answer.returncode, source) == (0, f"source={tool}")
    assert json.loads(printed) == json.loads(config)


def test_crictl_is_asked_first(shell: tuple[str, ...], directory: Path) -> None:
    env = with_tools(directory, "python3")
    crictl = directory / "bin" / "crictl"
    crictl.write_text(
        '#!/bin/sh\n[ "$*" = "--timeout 5s --runtime-endpoint unix:///run/c.sock info" ] || exit 9\n'
        'printf \'{\\n  "config": {\\n    "containerd": {\\n      "defaultRuntimeName": "runc"\\n    }\\n  }\\n}\\n\'\n'
    )
    crictl.chmod(0o755)
    answer = run(shell, CRI, "/run/c.sock", env=env)
    source, _, printed = answer.stdout.partition("\n")
    assert source == "source=crictl"
    assert json.loads(printed)["config"]["containerd"]["defaultRuntimeName"] == "runc"


@pytest.mark.parametrize("tool", ["python3", "curl"])
def test_a_containerd_before_1_6_is_asked_as_it_answers(shell: tuple[str, ...], tool: str, directory: Path) -> None:
    config = daemons.cri_config("nvidia", "nvidia", "runc")
    with daemons.containerd_before_1_6(directory, config) as path:
        answer = run(shell, CRI, path, env=with_tools(directory, tool))
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout.partition("\n")[2]) == json.loads(config)


@pytest.mark.parametrize("tool", ["python3", "curl"])
def test_a_dead_cri_is_no_answer(shell: tuple[str, ...], tool: str, directory: Path) -> None:
    with daemons.containerd(directory, None) as path:
        answer = run(shell, CRI, path, env=with_tools(directory, tool))
    assert (answer.returncode, answer.stdout, answer.stderr) == (1, "", "")


def test_no_socket_is_no_answer(shell: tuple[str, ...], directory: Path) -> None:
    answer = run(shell, CRI, str(directory / "nope.sock"), env=with_tools(directory, "python3", "curl"))
    assert (answer.returncode, answer.stdout, answer.stderr) == (1, "", "")


def test_nothing_to_ask_with_is_another_thing_than_no_answer(shell: tuple[str, ...], directory: Path) -> None:
    answer = run(shell, CRI, str(directory / "nope.sock"), env=with_tools(directory))
    assert (answer.returncode, answer.stdout) == (2, "")


def test_a_daemon_that_hangs_is_given_up_on(directory: Path) -> None:
    with daemons.silent(directory) as path:
        answer = run(("dash",), CRI, path, env=with_tools(directory, "python3"))
    assert answer.returncode == 1


@pytest.mark.parametrize("tool", ["python3", "curl"])
def test_docker_is_asked_with_what_the_host_has(shell: tuple[str, ...], tool: str, directory: Path) -> None:
    with daemons.dockerd(directory, "nvidia", "nvidia", "runc") as path:
        answer = run(shell, INFO, path, env=with_tools(directory, tool))
    assert json.loads(answer.stdout)["DefaultRuntime"] == "nvidia"


def test_an_error_of_docker_is_no_answer(shell: tuple[str, ...], directory: Path) -> None:
    with daemons.dockerd(directory, None) as path:
        answer = run(shell, INFO, path, env=with_tools(directory, "python3", "curl"))
    assert (answer.returncode, answer.stdout) == (1, "")


APIS: dict[str, commands.Api] = {"containerd": "cri", "crio": "crio"}  # docker is podman's too


def verify(
    shell: tuple[str, ...], kind: str, path: str, expected: str, env: dict[str, str], limit_s: int = 1
) -> subprocess.CompletedProcess[str]:
    like = APIS.get(kind, "docker")
    named = replace(engine_facts("containerd" if like == "cri" else like, None), name=kind)
    planned = commands.verify(named, expected, api=like)
    # The planned script with its arguments in their order; no unit to look at, and seconds instead of half a minute.
    assert planned.argv[:4] == ("sh", "-s", "--", kind)
    return run(shell, planned.stdin, kind, path, planned.argv[5], "-", str(limit_s), *planned.argv[8:], env=env)


VERDICTS = [
    ("docker", "nvidia", 0, ""),
    ("docker", "+runc", 0, ""),
    ("docker", "-", 0, ""),
    ("docker", "runc", 1, "docker runs with nvidia as its default runtime, and runc was expected"),
    ("docker", "+kata", 1, "kata was expected"),
    ("boat", "nvidia", 0, ""),  # by another name, and it answers as docker does
    ("boat", "runc", 1, "boat runs with nvidia as its default runtime, and runc was expected"),
    ("containerd", "nvidia", 0, ""),
    ("containerd", "+kata", 1, "kata was expected"),
]


@pytest.mark.parametrize(("kind", "expected", "code", "said"), VERDICTS, ids=[" ".join(v[:2]) for v in VERDICTS])
def test_verify_checks_what_the_running_daemon_reports(
    shell: tuple[str, ...], kind: str, expected: str, code: int, said: str, directory: Path
) -> None:
    env = with_tools(directory, "python3")
    # Success comes with the second sample; a loaded machine may take its time for the first.
    limit_s = 1 if code else 20
    if kind != "containerd":
        with daemons.dockerd(directory, "nvidia", "nvidia", "runc") as path:
            answer = verify(shell, kind, path, expected, env, limit_s)
    else:
        with daemons.containerd(directory, daemons.cri_config("nvidia", "nvidia", "runc")) as path:
            answer = verify(shell, kind, path, expected, env, limit_s)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr


def test_verify_reports_when_nobody_answers(shell: tuple[str, ...], directory: Path) -> None:
    answer = verify(shell, "containerd", str(directory / "nope.sock"), "nvidia", with_tools(directory, "python3"))
    assert answer.returncode == 1
    assert answer.stderr == f"containerd does not answer on {directory}/nope.sock\n"


PLUGINS = """TYPE                            ID      PLATFORMS      STATUS
io.containerd.snapshotter.v1    zfs     linux/amd64    skip
io.containerd.internal.v1       cri     linux/amd64    error
io.containerd.grpc.v1           cri     linux/amd64    {}
"""


@pytest.mark.parametrize(("status", "waits"), [("error", False), ("skip", False), ("ok", True)])
def test_a_cri_that_did_not_load_is_not_waited_for(
    shell: tuple[str, ...], status: str, waits: bool, directory: Path
) -> None:
    env = with_tools(directory, "python3")
    fake(directory, "ctr", f"cat {directory}/plugins")
    (directory / "plugins").write_text(PLUGINS.format(status))
    began = time.monotonic()
    with daemons.containerd(directory, None) as path:
        answer = verify(shell, "containerd", path, "nvidia", env, limit_s=3 if waits else 30)
    took = time.monotonic() - began
    assert (answer.returncode, "does not answer" in answer.stderr) == (1, True)
    assert took > 1.9 if waits else took < 20


def test_a_unit_that_systemd_starts_in_vain_is_given_up_on(shell: tuple[str, ...], directory: Path) -> None:
    env = with_tools(directory)
    fake(
        directory,
        "systemctl",
        f"case $* in *NRestarts*) echo x >>{directory}/n; grep -c x {directory}/n ;; *) exit 3 ;; esac",
    )
    planned = commands.verify(engine_facts("docker", None), "nvidia", api="docker")
    answer = run(shell, under_systemd(planned), *planned.argv[3:], env=env)
    assert answer.returncode == 1
    assert answer.stderr.startswith("docker does not answer on ")
    assert len((directory / "n").read_text().split()) < 6


def under_systemd(asked: Run) -> str:
    """The script as it runs on a host with systemd, whatever runs this test."""
    check = "[ -d /run/systemd/system ]"
    assert check in asked.stdin
    return asked.stdin.replace(check, "true")


def fake(directory: Path, name: str, body: str) -> None:
    program = directory / "bin" / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def test_a_failed_restart_shows_the_daemons_own_reason_and_not_its_noise(
    shell: tuple[str, ...], directory: Path
) -> None:
    env = with_tools(directory)
    fake(directory, "systemctl", '[ "$1" = reset-failed ] || exit 1')
    fake(
        directory,
        "journalctl",
        'echo \'time=x level=error msg="failed to load cni during init" error="cni config load failed"\'\n'
        "echo 'time=x level=info msg=\"starting containerd\"'\n"
        "echo 'containerd: failed to load TOML: /etc/containerd/config.toml: (10, 2): unexpected token'",
    )
    answer = run(shell, under_systemd(commands.restart("containerd.service")), "containerd.service", env=env)
    assert answer.returncode == 1
    assert answer.stderr == "containerd: failed to load TOML: /etc/containerd/config.toml: (10, 2): unexpected token\n"


def test_revive_leaves_a_running_daemon_alone(shell: tuple[str, ...], directory: Path) -> None:
    env = with_tools(directory)
    fake(directory, "systemctl", f'echo "$1" >> {directory}/calls')
    revived = run(
        shell, under_systemd(commands.revive("docker.service", ("docker.socket",))), "docker.service", env=env
    )
    assert revived.returncode == 0
    assert (directory / "calls").read_text() == "is-active\n"
