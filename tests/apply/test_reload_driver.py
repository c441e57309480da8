"""The script that replaces the loaded modules: the driver's services are started again, whatever happens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources
from tests.packages.test_repo_scripts import tool


def swap(tmp_path: Path, modprobe: str, *before: str, heard: bool) -> tuple[int, list[str]]:
    """The exit code, and what was called. `heard`: somebody reads what is printed, until the end.

    The script's own directories are in `tmp_path`; `before`: words in front of the shell.
    """
    tool(tmp_path, "systemctl", f'case $1 in is-active) ;; *) echo "$1 $2" >>{tmp_path}/calls ;; esac')
    tool(tmp_path, "modprobe", f'echo "modprobe $*" >>{tmp_path}/calls\n{modprobe}')
    (tmp_path / "modules/nvidia").mkdir(parents=True)
    script = resources.script("kernel/reload_driver")
    for path, instead in (("/run/systemd/system", tmp_path), ("/sys/module", tmp_path / "modules")):
        assert path in script
        script = script.replace(path, str(instead))
    reads, writes = os.pipe()
    if not heard:
        os.close(reads)
    done = subprocess.run(
        (*before, "sh", "-s", "--", "nvidia-dcgm nvidia-persistenced", "nvidia"),
        input=script.encode(),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=writes,
        stderr=writes,
        check=False,
    )
    os.close(writes)
    if heard:
        os.close(reads)
    return done.returncode, (tmp_path / "calls").read_text().splitlines()


STOPPED = ["stop nvidia-dcgm.service", "stop nvidia-persistenced.service"]
STARTED = ["start nvidia-persistenced.service", "start nvidia-dcgm.service"]


@pytest.mark.parametrize("heard", [True, False], ids=["while it is read", "after its controller has gone"])
def test_the_services_are_started_again_after_a_swap(heard: bool, tmp_path: Path) -> None:
    gone = f"case $1 in -r) rmdir {tmp_path}/modules/nvidia ;; *) mkdir {tmp_path}/modules/nvidia ;; esac"
    _, calls = swap(tmp_path, gone, heard=heard)
    assert calls == [*STOPPED, "modprobe -r nvidia", "modprobe nvidia", *STARTED]


@pytest.mark.parametrize("heard", [True, False], ids=["while it is read", "after its controller has gone"])
def test_the_services_are_started_again_where_a_module_is_in_use(heard: bool, tmp_path: Path) -> None:
    _, calls = swap(tmp_path, "echo in use >&2; exit 1", heard=heard)
    assert calls == [*STOPPED, "modprobe -r nvidia", *STARTED]


def test_the_services_are_started_again_after_the_time_limit(tmp_path: Path) -> None:
    code, calls = swap(tmp_path, "sleep 60", "timeout", "1", heard=True)
    assert code == 124
    assert calls == [*STOPPED, "modprobe -r nvidia", *STARTED]
