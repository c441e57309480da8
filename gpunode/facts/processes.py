"""Container daemons as the kernel sees them: the one truth about the config a running daemon uses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpunode.facts.release import key_values
from gpunode.facts.wire import Sections
from gpunode.foreign import whole_number
from gpunode.values import dataclass


@dataclass(frozen=True)
class Process:
    """One process:PID section."""

    pid: int
    comm: str
    ppid: int | None = None
    exe: str | None = None  # None for who may not read /proc/PID/exe
    unit: str | None = None  # the service in its cgroup
    argv: tuple[str, ...] = ()
    uid: int | None = None  # of a daemon that does not run as root; None: it does
    user: str | None = None  # that uid's name
    gid: int | None = None  # with uid
    sees_toolkit: bool = True  # its /etc has nvidia-container-runtime
    started_at: int | None = None  # seconds since 1970
    config_file: str | None = None  # of a containerd: K3S_CONFIG_FILE or RKE2_CONFIG_FILE; "URL" for what is no path

    @property
    def binary(self) -> str | None:
        return self.exe or (self.argv[0] if self.argv else None)


def parse_processes(sections: Sections) -> tuple[Process, ...]:
    """`processes` lists PID COMM; each has a section with its links and its command line:

    comm=dockerd
    ppid=1
    exe=/usr/bin/dockerd
    cgroup=/system.slice/docker.service
    arg=/usr/bin/dockerd
    arg=-H
    """
    listed = (line.split() for line in sections.text("processes").splitlines())
    pids = ((words[0], whole_number(words[0])) for words in listed if len(words) == 2)
    return tuple(_process(pid, sections.text(f"process:{word}")) for word, pid in pids if pid is not None)


def unit_of(process: Process, units: Mapping[str, Mapping[str, str]]) -> str | None:
    """The unit whose MainPID it is, else the service in its cgroup."""
    main = (name for name, value in units.items() if value.get("MainPID") == str(process.pid))
    return next(main, process.unit)


def _process(pid: int, text: str) -> Process:
    value = key_values(text)
    # Longest first: under cgroup v1 some controllers stop above the service.
    cgroups = sorted(re.findall(r"^cgroup=(.*)$", text, re.MULTILINE), key=len, reverse=True)
    services = [found[-1] for path in cgroups if (found := re.findall(r"[^/]+\.service(?=/|$)", path))]
    return Process(
        pid=pid,
        comm=value.get("comm", ""),
        ppid=whole_number(value.get("ppid")),
        exe=value.get("exe"),
        unit=services[0] if services else None,
        uid=whole_number(value.get("uid")),
        user=value.get("user"),
        gid=whole_number(value.get("gid")),
        sees_toolkit=value.get("sees_toolkit") != "0",
        started_at=whole_number(value.get("started_at")),
        config_file=value.get("config_file"),
        argv=tuple(re.findall(r"^arg=(.*)$", text, re.MULTILINE)),
    )
