"""What users type at docker, and what comes of it: judged by docker itself and from inside the containers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .container_image import write_image
from .host import Host, Result
from .typed import GPUS, RUNS, WORKS

IMAGE = "lab.example/busybox:lab"
RUN, GPUS_ALL, CDI = "`docker run`", "`docker run --gpus all`", "`docker run --device nvidia.com/gpu=all`"
NONE_YET = "none yet"


class Asked(NamedTuple):
    """How a container is made, and what holds in it while it has what was asked for (tests/lab/stubs)."""

    options: str
    holds: str


# CUDA's images have the variable. The runtime and the hook leave a file each, a CDI device brings nodes and mounts.
FRESH = {
    RUN: Asked("-e NVIDIA_VISIBLE_DEVICES=all", "[ -s /etc/lab-gpus ]"),
    GPUS_ALL: Asked("--gpus all", '[ "$(cat /etc/lab-hook)" = NVIDIA_VISIBLE_DEVICES=all ]'),
    CDI: Asked("--device nvidia.com/gpu=all", "[ -e /dev/nvidia0 ] && grep -q /etc/lab-gpus /proc/mounts"),
}
BEFORE = {"old": Asked("--runtime myrunc", "true")}
SINCE = {"since": FRESH[RUN], "since-gpus": FRESH[GPUS_ALL]}
SINCE_CDI = {"since-cdi": FRESH[CDI]}
# What they are called in the rows.
OLD, NEW, NEW_CDI = "a container from before", "containers made since", "a container made since with the CDI device"


def load_image(host: Host) -> None:
    write_image(host.path("/root/lab-image.tar"), IMAGE, command=("/bin/sleep", "6000"))
    host.nsrun("docker load -i /root/lab-image.tar", check=True)


def start(host: Host, containers: Mapping[str, Asked]) -> None:
    for name, asked in containers.items():
        always = f"--name {name} --network none --restart always"
        host.nsrun(f"docker run -d {always} {asked.options} {IMAGE}", check=True)


def fresh(host: Host) -> dict[str, str]:
    """The commands that start a container."""
    return {row: _ran(host, asked) for row, asked in FRESH.items()}


def _ran(host: Host, asked: Asked) -> str:
    inside = f"sh -c '{asked.holds} && echo gpus; true'"
    ran = host.nsrun(f"docker run --rm --network none {asked.options} {IMAGE} {inside}")
    if ran.returncode:
        return _reason(ran)
    return GPUS if ran.stdout == "gpus\n" else RUNS


def from_before(host: Host) -> dict[str, str]:
    return _there(host, OLD, BEFORE, WORKS)


def made_since(host: Host, *, cdi: bool) -> dict[str, str]:
    plain = _there(host, NEW, SINCE, GPUS)
    return {**plain, **_there(host, NEW_CDI, SINCE_CDI, GPUS)} if cdi else plain


def none_since(*, cdi: bool) -> dict[str, str]:
    return dict.fromkeys((*_rows(NEW), *(_rows(NEW_CDI) if cdi else ())), NONE_YET)


def _rows(called: str) -> tuple[str, str]:
    return f"{called}: `docker exec`", f"{called}: `docker restart`"


def _there(host: Host, called: str, containers: Mapping[str, Asked], well: str) -> dict[str, str]:
    """Without anybody's doing they run and can be entered; and again after a restart."""
    # What their last start left is emptied, so that it says nothing about the next one; a CDI mount is read-only.
    empty = "sh -c 'for trace in /etc/lab-gpus /etc/lab-hook; do echo -n >$trace; done; true'"
    entered = [_outcome(host, name, f"docker exec {name} {empty}", WORKS) for name in containers]
    restarted = [
        _outcome(host, name, f"docker restart -t 0 {name} && docker exec {name} sh -c '{asked.holds}'", well)
        for name, asked in containers.items()
    ]
    return {row: "; ".join(dict.fromkeys(seen)) for row, seen in zip(_rows(called), (entered, restarted), strict=True)}


def _outcome(host: Host, name: str, command: str, well: str) -> str:
    done = host.nsrun(command)
    return re.sub("[0-9a-f]{64}", name, _reason(done)) if done.returncode else well


def _reason(failed: Result) -> str:
    """docker's own, without what it puts in front of every one."""
    first = failed.stderr.strip().partition("\n")[0]
    return f"`{first.removeprefix('docker: ').removeprefix('Error response from daemon: ').removesuffix('.')}`"
