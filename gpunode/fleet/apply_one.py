"""One host's plan carried out: its lock, its run log, and how this machine goes on after its own reboot."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gpunode.apply.bundle import send_bundle
from gpunode.apply.commands.detached import wait_for_running
from gpunode.apply.lock import HostLock, Owner
from gpunode.catalog.load import load_catalog
from gpunode.converge import HostRun, Resume, converge, settled_facts
from gpunode.fleet.host import Host
from gpunode.fleet.own_command import barred_by_selinux, lost_at_boot, own_command
from gpunode.fleet.run_log import RunLog, make_private, now, state_home
from gpunode.model.bundle import Bundle
from gpunode.model.facts import HostFacts
from gpunode.model.plan import BUNDLE_STEP, Plan
from gpunode.model.report import Event, HostOutcome, RunReport
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.offline.output_file import write_whole
from gpunode.planner.resume import SPEC_FILE
from gpunode.specfile import spec_text

HostWork = Callable[[HostRun, Plan], HostOutcome]  # one host's plan carried out, as setup or undo does it


def host_run(host: Host, run_id: str, tell: Callable[[Event], None], stop: Callable[[], bool], log: RunLog) -> HostRun:
    """`host`'s part of a run whose log is `log`."""
    return HostRun(run_id, host.transport, _lock(host), tell, stop, local=host.local, mirror=mirror_of(log, host))


def wait_for_killed(host: Host, say: Callable[[str], None]) -> None:
    """Wait until what a killed gpunode left running there has ended.

    Raises HostLocked where it was not killed but is at work.
    """
    wait_for_running(host.transport, on_output=lambda line: say(f"{host}  {line}"), lock=_lock(host))


def facts_of(host: Host, say: Callable[[str], None]) -> HostFacts:
    """`wait_for_killed`, then what is known of the host: one round trip where nothing is to be waited for."""
    return settled_facts(host.transport, on_output=lambda line: say(f"{host}  {line}"), lock=_lock(host))


def _lock(host: Host) -> HostLock:
    return HostLock(host.transport, lock_owner(), is_alive)


def set_up_from(bundle: Bundle) -> HostWork:
    """As `set_up`, of packages that are in a bundle: its file is sent first, where the plan has it unpacked."""

    def host_work(host_run: HostRun, plan: Plan) -> HostOutcome:
        if any(step.id == BUNDLE_STEP for step in plan.steps):
            send_bundle(host_run.transport, bundle)
        return set_up(host_run, plan, bundle)

    return host_work


def set_up(host_run: HostRun, plan: Plan, bundle: Bundle | None = None) -> HostOutcome:
    """One host brought to its plan, as `gpunode setup` does."""
    target = host_run.transport.target
    if plan.empty:
        return HostOutcome(target, plan.code, run=RunReport(target, plan=plan, code=plan.code))
    reboots = host_run.local and plan.spec.reboot is not RebootPolicy.NEVER
    resume = resume_of(plan.spec, host_run.id) if reboots else None
    report = converge(host_run, plan.spec, load_catalog(), plan=plan, resume=resume, bundle=bundle)
    return HostOutcome(target, report.code, run=report)


def lock_owner() -> Owner:
    """Who takes a host's lock: this process, by a name that no other run has."""
    return Owner(socket.gethostname(), os.getpid(), f"{os.getpid()}-{secrets.token_hex(8)}", user_name(), now())


def mirror_of(log: RunLog, host: Host) -> Callable[[str], None]:
    """Where the host's journal is copied to, line by line."""
    return lambda line: log.write(f"{host}.journal", line if line.endswith("\n") else line + "\n")


def resume_of(spec: Spec, run_id: str) -> Resume:
    """What is wanted after this machine's reboot stands in a file and in no argv, since a proxy may hold a password."""
    path = state_home() / "runs" / run_id / SPEC_FILE
    with suppress(OSError):  # it is there, unless the run goes on by another name; who writes says what is wrong
        make_private(path.parent)
    write_whole(path, spec_text(replace(spec, reboot=RebootPolicy.NEVER)), "the spec for after the reboot")
    command = own_command()
    argv = (*command, "setup", "--yes", "--spec", str(path), "--reboot", "never")
    return Resume(argv, (str(path),), lost_at_boot(command) or barred_by_selinux(command))


def is_alive(pid: int) -> bool:
    """Whether a process of this machine is there; one of another user is, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def user_name() -> str:
    """Who runs gpunode."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # no entry in passwd: a container
