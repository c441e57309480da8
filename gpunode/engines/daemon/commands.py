"""The POSIX sh that asks and restarts daemons on the host, as Run values; fed on stdin, it leaves nothing there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.facts import RuntimeFacts

# What systemd gives a service (systemd.exec(5)). dockerd looks for docker-proxy in it, and --validate fails where a
# login's PATH has no /usr/sbin: "userland-proxy is enabled, but userland-proxy-path is not set".
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BY = """
run_as_user_ready "$1" || { echo "no setpriv (util-linux) here runs a command as user ${1%:*}" >&2; exit 1; }
run_as_user "$@" </dev/null
"""
# trust.sh: who put the socket there that root asks, by the probe's own rule.
VERIFY = ("daemon/query", "daemon/query_as_user", "trust", "daemon/restart", "daemon/verify")
CONTAINERS = ("as_user", "daemon/query", "daemon/query_as_user", "trust", "daemon/containers")
Api = Literal["cri", "docker", "crio"]
Listing = Literal["cri", "docker", "podman"]
POLL_S = 30  # a daemon was healthy 0.4 to 10 s after a restart on busy two-core machines


def verify(engine: RuntimeFacts, expected: str, *, ok_codes: tuple[int, ...] = (0,), api: Api = "cri") -> Run:
    """Exit 0 when the running daemon is healthy, its process is stable and its runtimes are as `expected`.

    `expected`: "nvidia": it is the effective default; "+nvidia": it is a handler; "-": any, only health is checked.
    `api`: whose questions the daemon answers, whatever its own name is.
    """
    # A user's own dockerd is found by whose it is; its unit is in their service manager.
    unit = f"uid:{engine.owner}" if engine.owner else engine.unit
    run_as = resources.script("as_user") if engine.owner else ""
    argv = ("sh", "-s", "--", engine.name, engine.socket, expected, unit, str(POLL_S))
    return Run(
        (*argv, engine.binary or engine.name, engine.config_path),
        ok_codes=ok_codes,
        timeout_s=POLL_S + 60,
        stdin=f"gpunode_api={api}\n{run_as}" + "".join(map(resources.script, VERIFY)),
        description=f"ask the running {engine.name} for its default runtime",
    )


def containers(engine: RuntimeFacts, handler: str, *, api: Listing, directory: str = "-") -> Run:
    """Ask which of an engine's containers need `handler`, or NVIDIA's part of the host in another way.

    `directory`: where they are, for an engine that does not answer.
    """
    socket = engine.socket if engine.active and engine.socket else "-"
    return _containers(api, handler, socket, engine.owner or "-", directory, where=engine.label)


def program_users() -> Run:
    """Ask what runs on the host by NVIDIA's program, whichever engine started it."""
    return _containers("processes", "-", "-", "-", "-", where="the host")


def _containers(*words: str, where: str) -> Run:
    return Run(
        ("sh", "-s", "--", *words),
        timeout_s=90,
        stdin="".join(map(resources.script, CONTAINERS)),
        description=f"look for containers of {where} that use the GPU runtime",
        read_only=True,
    )


def reload(engine: RuntimeFacts, *, ok_codes: tuple[int, ...] = (0,)) -> Run:
    """`systemctl reload`; without systemd the SIGHUP that it would send, to the process in dockerd's own pid file.

    A user's own dockerd gets the SIGHUP always.
    """
    if engine.owner:
        # Not through the user's service manager: they may have started dockerd in any other way.
        stdin = resources.script("daemon/restart") + '\ngpunode_hangup_user "$@"\n'
        uid, description = engine.owner.partition(":")[0], f"SIGHUP to {engine.user}'s dockerd"
        return Run(("sh", "-s", "--", uid), ok_codes=ok_codes, timeout_s=30, stdin=stdin, description=description)
    if engine.init == "systemd":
        return Run(("systemctl", "reload", engine.unit), ok_codes=ok_codes, timeout_s=30)
    words = (*engine.flags, "--pidfile=/var/run/docker.pid")
    pidfile = next(w.partition("=")[2] or words[n + 1] for n, w in enumerate(words) if re.match(r"--pidfile(=|$)", w))
    stdin = resources.script("daemon/restart") + '\ngpunode_hangup "$@"\n'
    return Run(
        ("sh", "-s", "--", pidfile, "dockerd"),
        ok_codes=ok_codes,
        timeout_s=30,
        stdin=stdin,
        description="SIGHUP to dockerd",
    )


def found_at_start(engine: RuntimeFacts, program: str) -> Run:
    """Exit 0 when the running daemon has started since `program` was in its PATH."""
    return Run(
        ("sh", "-s", "--", engine.unit, program),
        timeout_s=30,
        stdin="".join(map(resources.script, ("daemon/restart", "daemon/found_at_start"))),
        description=f"check that the running {engine.name} found {program} at its start",
    )


def by(owner: str, run: Run) -> Run:
    """`run` as the user "UID:GID"; as root for "". In a user's directories, the user could misuse root's rights."""
    if not owner:
        return run
    stdin = resources.script("as_user") + BY
    return replace(run, argv=("sh", "-s", "--", owner, str(round(run.timeout_s)), *run.argv), stdin=stdin)


def is_there(binary: str) -> Run:
    """Exit 0 when `binary` can be run. An engine takes a config that names one which is not there, and all its new
    containers fail then."""
    script = (
        'case $1 in /*) [ -f "$1" ] && [ -x "$1" ] ;; *) command -v "$1" >/dev/null ;; esac && exit 0; '
        'echo "$1 is not there, or cannot be executed: with it as their runtime, new containers would not start" >&2; '
        'echo "install nvidia-container-toolkit first: gpunode setup --only toolkit,runtime" >&2; exit 1'
    )
    return Run(
        ("sh", "-c", script, "sh", binary),
        env=(("PATH", SYSTEM_PATH),),
        timeout_s=30,
        description=f"look for {binary}",
        read_only=True,
    )


def restart(unit: str, also_reset: Sequence[str] = ()) -> Run:
    """`systemctl restart`, past a start limit that earlier failures used up; the daemon's own reason when it fails."""
    run = _unit_script("gpunode_restart", unit, also_reset, f"systemctl restart {unit}")
    return replace(run, restarts=unit)


def revive(unit: str, also_reset: Sequence[str] = ()) -> Run:
    """Restart only when the unit is not active."""
    return _unit_script("gpunode_revive", unit, also_reset, f"start {unit} again if it is down")


def _unit_script(function: str, unit: str, also_reset: Sequence[str], description: str) -> Run:
    return Run(
        ("sh", "-s", "--", unit, *(u for u in also_reset if u != unit)),
        timeout_s=120,  # dockerd 20.10 has no start limit of its own (TimeoutStartSec=0)
        stdin=resources.script("daemon/restart") + f'\n{function} "$@"\n',
        description=description,
    )
