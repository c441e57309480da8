"""containers.sh under every shell of the field: dockerd's files, CRI's pods, and whatever runs by NVIDIA's program."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.apply.containers import read_containers
from gpunode.engines.daemon import commands
from gpunode.errors import StepFailed
from gpunode.model.action import Run
from gpunode.model.containers import Container
from gpunode.transport.base import Completed
from tests.apply.machine import Machine
from tests.engines import daemons
from tests.engines.hosts import engine_facts
from tests.engines.test_daemon_query import COMMON, directory, shell, with_tools

__all__ = ["directory", "shell"]  # fixtures

SCRIPT = "".join(map(resources.script, commands.CONTAINERS))
TOOLS = (*COMMON, "find", "awk", "sort", "id", "ps", "mktemp", "sh", "env")
GPUS = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
CDI = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=all"], "Capabilities": None}


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def docker_container(root: Path, name: str, runtime: str, *requests: object, **more: object) -> str:
    """One as dockerd 26 writes it; its id."""
    place = root / "containers" / (f"{name}0" * 10)
    place.mkdir(parents=True)
    host = {"RestartPolicy": {"Name": "always"}, "Runtime": runtime, "DeviceRequests": list(requests) or None}
    (place / "hostconfig.json").write_text(compact({**host, **more}))
    config = {"State": {"Running": True}, "Config": {"Env": ['A="Name":"/not"']}, "Name": f"/{name}"}
    (place / "config.v2.json").write_text(compact(config))
    return place.name


def asked(shell: tuple[str, ...], *words: str, env: dict[str, str] | None = None) -> list[list[str]]:
    first, *lines = answer(shell, *words, env=env)
    assert first == "containers"
    return [line.split("\t") for line in lines if line]


def answer(shell: tuple[str, ...], *words: str, env: dict[str, str] | None = None) -> list[str]:
    executable = shutil.which(shell[0])
    assert executable is not None
    argv = (executable, *shell[1:], "-s", "--", *words)
    done = subprocess.run(argv, input=SCRIPT, text=True, capture_output=True, env=env, timeout=60, check=False)
    return done.stdout.splitlines()


def test_dockerds_containers_are_known_by_their_files(shell: tuple[str, ...], tmp_path: Path) -> None:
    web = docker_container(tmp_path, "web", "nvidia", CDI)
    gpus = docker_container(tmp_path, "gpus", "runc", GPUS)
    cdi = docker_container(tmp_path, "cdi", "runc", CDI)
    docker_container(tmp_path, "plain", "runc")
    docker_container(tmp_path, "sly", "runc", Binds=['"Runtime":"nvidia"'])
    docker_container(tmp_path, "other", "nvidia-experimental")
    found = asked(shell, "docker", "nvidia", "-", "-", str(tmp_path))
    assert sorted(found) == sorted([["handler", web, "web"], ["gpus", gpus, "gpus"], ["cdi", cdi, "cdi"]])


def test_pods_that_nobody_names_are_not_none(shell: tuple[str, ...], directory: Path) -> None:
    """An engine that is busy takes the question and does not answer. (One that does not run has no pod to stop.)"""
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(directory / "cri.sock"))
        busy.listen()
        first = answer(shell, "cri", "nvidia", str(directory / "cri.sock"), "-", "-")[0]
        assert first == f"failed the engine at {directory}/cri.sock does not say which pods it has"
    assert asked(shell, "cri", "nvidia", str(directory / "cri.sock"), "-", "-") == []


@pytest.mark.parametrize(
    ("fails", "first"),
    [(9, "failed podman container inspect does not answer"), (1, "containers"), (0, "containers")],
    ids=["always", "once, as where one has just gone", "never"],
)
def test_containers_that_podman_cannot_name_are_not_none(
    shell: tuple[str, ...], tmp_path: Path, fails: int, first: str
) -> None:
    storage, podman = tmp_path / "storage" / "libpod", tmp_path / "podman"
    storage.mkdir(parents=True)
    podman.write_text(
        f"#!/bin/sh\n[ $1 = ps ] && echo abc && exit\necho x >>{tmp_path}/asked\n"
        f"[ $(wc -l <{tmp_path}/asked) -gt {fails} ] || exit 125\nprintf 'nvidia\\tabc\\tweb\\tnull\\tnull\\tnull\\n'\n"
    )
    podman.chmod(0o755)
    script = SCRIPT.replace("/var/lib/containers/storage", str(storage.parent))
    executable = shutil.which(shell[0])
    assert executable is not None
    done = subprocess.run(
        (executable, *shell[1:], "-s", "--", "podman", "nvidia", "-", "-", "-"),
        input=script,
        text=True,
        capture_output=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        timeout=60,
        check=False,
    )
    said, *found = done.stdout.splitlines()
    assert said == first
    assert [line for line in found if line.strip()] == (["containers"] if fails == 9 else ["handler\tabc\tweb"])


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root reads as somebody else")
def test_a_users_containers_are_read_with_that_users_rights(shell: tuple[str, ...], directory: Path) -> None:
    directory.chmod(0o711)
    web = docker_container(directory, "web", "nvidia")
    own(directory / "containers", 4711)
    words = ("docker", "nvidia", "-", "4711:4711", str(directory))
    assert asked(shell, *words) == [["handler", web, "web"]]
    own(directory / "containers", 0)
    assert answer(shell, *words)[0] == f"failed user 4711 cannot read the containers in {directory}/containers"


def own(place: Path, uid: int) -> None:
    for path in (place, *place.rglob("*")):
        path.chmod(0o700)
        os.chown(path, uid, uid)


def test_a_docker_without_containers_has_none(shell: tuple[str, ...], tmp_path: Path) -> None:
    assert asked(shell, "docker", "nvidia", "-", "-", str(tmp_path)) == []


def test_where_they_are_is_asked_of_a_dockerd_that_runs(
    shell: tuple[str, ...], directory: Path, tmp_path: Path
) -> None:
    web = docker_container(tmp_path, "web", "nvidia")
    with daemons.dockerd(directory, "runc", "runc", root=str(tmp_path)) as socket:
        found = asked(shell, "docker", "nvidia", socket, "-", "/nowhere")
    assert found == [["handler", web, "web"]]


@pytest.mark.parametrize("tool", ["python3", "crictl"])
def test_pods_are_known_by_their_handler(shell: tuple[str, ...], directory: Path, tool: str) -> None:
    env = with_tools(directory, *(name for name in TOOLS if name not in COMMON), *(["python3"] * (tool == "python3")))
    pods = (("p1", "train", "nvidia"), ("p2", "web", ""), ("p3", "old", "nvidia-legacy"))
    if tool == "crictl":
        (directory / "bin" / "crictl").write_text(f"#!/bin/sh\ncat <<'E'\n{crictl_pods(pods)}\nE\n")
        (directory / "bin" / "crictl").chmod(0o755)
    with daemons.pods(directory, *pods) as socket:
        found = asked(shell, "cri", "nvidia", socket, "-", "-", env=env)
    assert found == [["handler", "p1", "default/train"]]


def crictl_pods(pods: tuple[tuple[str, str, str], ...]) -> str:
    items = [
        {
            "id": pod,
            "metadata": {"name": name, "uid": "u", "namespace": "default"},
            "labels": {"name": "a label"},
            "runtimeHandler": handler,
        }
        for pod, name, handler in pods
    ]
    return json.dumps({"items": items}, indent=2)


def test_a_daemon_that_does_not_answer_has_no_pods_to_stop(shell: tuple[str, ...], directory: Path) -> None:
    assert asked(shell, "cri", "nvidia", str(directory / "no.sock"), "-", "-") == []


@pytest.fixture
def processes(directory: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def pretend(directory: Path, name: str, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """A process that is called so, with these arguments."""
    program = directory / name
    program.write_text("#!/bin/sh\nwhile :; do sleep 60; done\n")
    program.chmod(0o755)
    process = subprocess.Popen((str(program), *words), cwd=cwd, start_new_session=True)
    while Path(f"/proc/{process.pid}/comm").read_text().strip() != name[:15]:
        time.sleep(0.01)
    return process


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's shims count")
def test_what_runs_by_the_program_or_has_a_cdi_device_is_known_by_its_shim_or_its_conmon(
    shell: tuple[str, ...], directory: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    state = directory / "io.containerd.runtime.v2.task" / "k8s.io"
    nvidia = "/usr/bin/nvidia-container-runtime"
    for bundle, runtime, pid in (("pod", nvidia, os.getpid()), ("gone", nvidia, 1 << 30), ("runc", "runc", 1)):
        (state / bundle).mkdir(parents=True)
        (state / bundle / "runtime").write_text(runtime)
        (state / bundle / "init.pid").write_text(str(pid))
    kube = "io.kubernetes.cri.sandbox-"
    annotations = {f"{kube}name": "train", f"{kube}namespace": "default"}
    (state / "pod" / "config.json").write_text(json.dumps({"annotations": annotations}))
    hooks = {"createContainer": [{"path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", "update-ldcache"]}]}
    (state / "runc" / "config.json").write_text(json.dumps({"annotations": annotations, "hooks": hooks}))
    (state / "none").mkdir()
    (state / "none" / "config.json").write_text(
        json.dumps({"process": {"args": ["echo", '"path":"/usr/bin/nvidia-ctk"']}})
    )
    (state / "options").mkdir()
    (state / "options" / "options.json").write_text('{"binary_name":"/usr/bin/nvidia-container-runtime.cdi"}')
    processes.append(pretend(directory, "containerd-shim-runc-v2", cwd=state / "runc"))
    program = ("-r", nvidia)
    processes.append(pretend(directory, "conmon", "-b", "/b", "-c", "c1", *program, "-n", "podman-one", "-p", "/p"))
    found = asked(shell, "processes", "-", "-", "-", "-")
    expected = [
        ["cdi", "runc", "default/train"],
        ["program", "c1", "podman-one"],
        ["program", "options", "options"],
        ["program", "pod", "default/train"],
    ]
    assert [line for line in sorted(found) if line[1] in ("c1", "gone", "none", "options", "pod", "runc")] == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root decides about their own directories")
def test_a_directory_that_is_not_roots_says_nothing(
    shell: tuple[str, ...], directory: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    state = directory / "theirs"
    (state / "bundle").mkdir(parents=True)
    (state / "bundle" / "runtime").write_text("/usr/bin/nvidia-container-runtime")
    os.chown(state, 1234, 1234)
    processes.append(pretend(directory, "containerd-shim-runc-v2", cwd=state / "bundle"))
    assert "bundle" not in [line[1] for line in asked(shell, "processes", "-", "-", "-", "-")]


# ---- what gpunode makes of the answers


class Answers:
    """A host whose scripts reply so, one after the other."""

    target = "node7"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        return Completed(0, self.texts.pop(0).encode(), b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def question(label: str) -> tuple[str, Run]:
    return label, commands.program_users()


def test_each_container_and_pod_counts_once() -> None:
    docker = "containers\nhandler\tabc\tweb\n"
    shims = "containers\nprogram\tabc\tabc\nprogram\tp1\tdefault/train\nprogram\tc1\tdefault/train\n"
    found = read_containers(Answers(docker, shims), (question("docker"), question("")))
    assert found == (Container("docker", "handler", "abc", "web"), Container("", "program", "p1", "default/train"))


@pytest.mark.parametrize(
    "line",
    [
        "handler\tid",
        "soon\tid\tname",
        "handler\t; rm -rf /\tname",
        "handler\t../../x\tname",
        "handler\t\tname",
        "\x1b[2J",
    ],
)
def test_a_line_that_no_engine_writes_is_no_container(line: str) -> None:
    assert read_containers(Answers(f"containers\n{line}\n"), (question("docker"),)) == ()


def test_a_name_that_no_engine_gives_is_not_shown() -> None:
    found = read_containers(Answers("containers\nhandler\tabc\t$(reboot)\n"), (question("docker"),))
    assert found == (Container("docker", "handler", "abc", "abc"),)


@pytest.mark.parametrize("reply", ["", "failed the containers in /x/containers cannot be read\n"])
def test_a_list_that_is_missing_is_not_an_empty_one(reply: str) -> None:
    with pytest.raises(StepFailed) as caught:
        read_containers(Answers(reply), (question("docker"),))
    assert "gpunode undo --allow-container-loss does not ask for them" in caught.value.remedy.text


def test_a_directory_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "containers").write_text("no directory")
    run = commands.containers(
        engine_facts("docker", "26.1.5", active=False), "nvidia", api="docker", directory=str(tmp_path)
    )
    with pytest.raises(StepFailed, match="cannot be read"):
        read_containers(Machine(tmp_path / "machine"), (("docker", run),))
