"""One host's plan carried out: its lock, its run log, and how this machine goes on after its own reboot."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

from gpunode.apply.lock import Owner
from gpunode.catalog.load import load_catalog
from gpunode.converge import converge
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.fleet.run_log import RunLog, state_home
from gpunode.model.plan import Plan
from gpunode.model.report import Event, HostOutcome, RunReport
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.offline.output_file import write_whole
from gpunode.specfile import spec_text

# One host's plan carried out: host, plan, run id, who hears of progress, whether to stop, the run log.
Carrier = Callable[[Host, Plan, str, Callable[[Event], None], Callable[[], bool], RunLog], HostOutcome]


def set_up(
    host: Host, plan: Plan, run_id: str, tell: Callable[[Event], None], stop: Callable[[], bool], log: RunLog
) -> HostOutcome:
    """One host brought to its plan, as `gpunode setup` does."""
    if plan.empty:
        return HostOutcome(str(host), ExitCode.DONE, run=RunReport(str(host), plan=plan))
    resume = _resume_spec(plan.spec, run_id) if host.local and plan.spec.reboot is not RebootPolicy.NEVER else ""
    report = converge(
        host.transport,
        plan.spec,
        load_catalog(),
        confirm=lambda _plan: True,  # it was shown and agreed to; converge raises Drift when today's is another
        on_event=tell,
        run_id=run_id,
        owner=lock_owner(),
        alive=is_alive,
        local=host.local,
        stop=stop,
        plan=plan,
        resume_argv=_resume_argv(resume) if resume else (),
        resume_files=(resume,) if resume else (),
        mirror=mirror_of(log, host),
    )
    return HostOutcome(str(host), report.code, run=report)


def lock_owner() -> Owner:
    """Who takes a host's lock: this process, by a name that no other run has."""
    return Owner(socket.gethostname(), os.getpid(), f"{os.getpid()}-{secrets.token_hex(8)}", _user())


def mirror_of(log: RunLog, host: Host) -> Callable[[str], None]:
    """Where the host's journal is copied to, line by line."""
    return lambda line: log.write(f"{host}.journal", line if line.endswith("\n") else line + "\n")


def _resume_spec(spec: Spec, run_id: str) -> str:
    """The file with what is wanted after this machine's reboot; not in an argv, since a proxy may hold a password."""
    path = state_home() / "runs" / run_id / "resume.yaml"
    write_whole(path, spec_text(replace(spec, reboot=RebootPolicy.NEVER)), "the spec for after the reboot")
    return str(path)


def _resume_argv(spec: str) -> tuple[str, ...]:
    return (*_this_command(), "setup", "--yes", "--spec", spec, "--reboot", "never")


def _this_command() -> tuple[str, ...]:
    """How gpunode was started, in words that work from any folder. `-m` alone would miss a launcher that brings its
    own import path; an argv[0] that is not a program is the package's __main__.py.
    """
    typed = os.path.abspath(sys.argv[0])
    launcher = os.path.isfile(typed) and os.access(typed, os.X_OK) and not typed.endswith(".py")
    return (typed,) if launcher else (sys.executable, "-m", "gpunode")


def is_alive(pid: int) -> bool:
    """Whether a process of this machine is there; one of another user is, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # no entry in passwd: a container
