"""CRI-O and podman asked for their default, under every shell of the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode import resources
from gpunode.engines.podman import Podman
from gpunode.model.spec import RuntimeSpec
from tests.engines import daemons
from tests.engines.hosts import engine_facts
from tests.engines.test_daemon_query import directory, fake, run, shell, verify, with_tools

__all__ = ["directory", "shell"]

# As `crio status config` prints it: indented, every key spelled out.
CONFIG = """[crio]
  [crio.runtime]
    default_runtime = "nvidia"
    default_env = []
    [crio.runtime.runtimes]
      [crio.runtime.runtimes.crun]
        runtime_path = "/usr/bin/crun"
      [crio.runtime.runtimes."nvidia"]
        runtime_path = "/usr/bin/nvidia-container-runtime"
"""
ASK = resources.script("daemon/query") + '\ngpunode_crio_config "$1"\n'


@pytest.mark.parametrize("tool", ["python3", "curl"])
def test_crio_is_asked_with_what_the_host_has(shell: tuple[str, ...], tool: str, directory: Path) -> None:
    with daemons.crio(directory, CONFIG) as path:
        answer = run(shell, ASK, path, env=with_tools(directory, tool))
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, CONFIG, "")


def test_its_own_client_is_asked_where_nothing_else_is_there(shell: tuple[str, ...], directory: Path) -> None:
    env = with_tools(directory)
    fake(directory, "crio", '[ "$*" = "status --socket /run/c.sock config" ] && echo \'default_runtime = "crun"\'')
    assert run(shell, ASK, "/run/c.sock", env=env).stdout == 'default_runtime = "crun"\n'


def test_no_answer_is_no_answer(shell: tuple[str, ...], directory: Path) -> None:
    with daemons.crio(directory, None) as path:
        answer = run(shell, ASK, path, env=with_tools(directory, "python3", "curl"))
    assert (answer.returncode, answer.stdout, answer.stderr) == (1, "", "")


@pytest.mark.parametrize(
    ("expected", "code", "said"),
    [
        ("nvidia", 0, ""),
        ("+crun", 0, ""),
        ("-", 0, ""),
        ("crun", 1, "crio runs with nvidia as its default runtime, and crun was expected"),
        ("+kata", 1, "kata was expected"),
    ],
)
def test_verify_checks_what_crio_reports(
    shell: tuple[str, ...], expected: str, code: int, said: str, directory: Path
) -> None:
    with daemons.crio(directory, CONFIG) as path:
        answer = verify(shell, "crio", path, expected, with_tools(directory, "python3"), 1 if code else 20)
    assert answer.returncode == code
    assert said in answer.stderr


PODMAN = """case "$*" in
*"--runtime gpu "*) echo 'Error: default OCI runtime "gpu" not found: invalid argument' >&2; exit 125 ;;
*"--runtime "*) echo "$2" ;;
*) echo 'WARN[0000] cgroup v1 is deprecated' >&2; echo crun ;;
esac"""


@pytest.mark.parametrize(
    ("want", "code", "said"),
    [
        (RuntimeSpec(handler="crun"), 0, ""),
        (RuntimeSpec(), 1, "podman runs with crun as its default runtime, and nvidia was expected"),
        (RuntimeSpec(default=False), 0, ""),
        (RuntimeSpec(default=False, handler="gpu"), 1, 'default OCI runtime "gpu" not found'),
    ],
    ids=["default", "another default", "handler known", "handler not known"],
)
def test_podman_is_checked_by_its_own_output(
    shell: tuple[str, ...], want: RuntimeSpec, code: int, said: str, directory: Path
) -> None:
    env = with_tools(directory)
    fake(directory, "podman", PODMAN)
    planned = Podman().verify(engine_facts("podman", "5.4.2", binary=f"{directory}/bin/podman"), want)
    answer = run(shell, planned.stdin, *planned.argv[3:], env=env)
    assert answer.returncode == code
    assert said in answer.stderr
