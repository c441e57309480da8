"""--ssh, --recorded or this machine -> hosts, each with its transport; and what looks at each of them."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpunode.advice import listing, meant
from gpunode.cli.options.groups import CheckedHostOptions, HostOptions, LiveOptions, QuietOptions
from gpunode.errors import GpunodeError, UsageError
from gpunode.fleet.host import Host

if TYPE_CHECKING:
    from gpunode.model.report import FleetReport, HostOutcome

PROBE = "what still reads on a host ends by itself, and changes nothing"


@contextmanager
def open_hosts(options: LiveOptions, *, as_root: bool = False) -> Iterator[tuple[Host, ...]]:
    """The hosts that were named; nothing is dialled yet. Raises UsageError.

    `as_root`: the verb is root's, so this machine is refused at its first script where the user cannot become root.
    Over SSH every verb is; there it says that more than a look is to be expected.
    """
    from gpunode.render.remedy_text import hosts_are_named_by

    hosts_are_named_by("")  # unless an inventory turns out to know them
    hosts = _hosts(options, as_root=as_root)
    try:
        yield hosts
    except GpunodeError as error:
        from gpunode.render.wording import with_its_name

        for host in hosts:
            error.problem = with_its_name(str(host), error.problem)
        raise
    finally:
        for host in hosts:
            host.transport.close()


def _hosts(options: LiveOptions, *, as_root: bool) -> tuple[Host, ...]:
    recorded = options.recorded if isinstance(options, HostOptions) else None
    inject = options.inject or () if isinstance(options, CheckedHostOptions) else ()
    if inject and not recorded:
        raise UsageError("--inject is for a recording: on a host nothing is broken", remedy="name one with --recorded")
    if (options.ssh or options.inventory) and recorded:
        flag = "--ssh" if options.ssh else "--inventory"
        raise UsageError(f"{flag} and --recorded exclude each other", remedy="name hosts, or one recording")
    one_of("--host-key", options.host_key, ("strict", "accept-new"))
    if options.ssh or options.inventory:
        return _over_ssh(options, several=as_root)
    if only_ssh := _first(_typed_for_ssh(options)):
        raise UsageError(f"{only_ssh} is for hosts over SSH", remedy="name them with --ssh or --inventory")
    if recorded:
        if for_sudo := _first(_typed_for_sudo(options)):
            raise UsageError(f"{for_sudo} is for hosts, and --recorded asks none", remedy="leave it out")
        return _fleet_of(options, recorded) or (_recorded(recorded, inject),)
    from gpunode.cli.options.passwords import become_password
    from gpunode.transport.local import Local

    become: Literal["always", "auto"] = "always" if as_root and os.geteuid() != 0 else "auto"
    return (Host(Local(password=become_password(options), become=become), local=True),)


def _fleet_of(options: LiveOptions, path: Path) -> tuple[Host, ...]:
    """The recorded hosts in a directory, for a check; () where it is a host itself, or another verb asks."""
    if not isinstance(options, CheckedHostOptions):
        return ()
    from gpunode.fleet.recordings import recorded_fleet

    hosts = recorded_fleet(path)
    if hosts and options.inject:
        raise UsageError("--inject is for one recording", remedy=f"name one of those in {path} with --recorded")
    return hosts


def _recorded(path: Path, inject: Sequence[str]) -> Host:
    from gpunode.facts.collect import load_recording
    from gpunode.fleet.recordings import recorded_name
    from gpunode.transport.recorded import Recorded

    name = path.parent.name if path.name == "facts.txt" else path.stem if path.is_file() else path.resolve().name
    stream = load_recording(path)
    if inject:
        from gpunode.facts.inject import injected

        stream = injected(stream, inject)
    return Host(Recorded(stream, recorded_name(name)), recorded=True)


def _over_ssh(options: LiveOptions, *, several: bool) -> tuple[Host, ...]:
    from gpunode.cli.errors import say
    from gpunode.cli.options.inventory import named_hosts
    from gpunode.cli.options.passwords import become_password, login_password, unlock_keys
    from gpunode.transport.ssh import Ssh
    from gpunode.transport.ssh_config import SshOptions, SshTarget
    from gpunode.transport.sudo_password import SudoPassword

    deadline_s(options)  # refused here where it is no number
    timeout = whole_number("--connect-timeout", options.connect_timeout, 1, 3600)
    login, become = login_password(options), become_password(options)
    settings = SshOptions(
        user=options.user,
        port=whole_number("--port", options.port, 1, 65535),
        identities=tuple(options.identity or ()),
        jump=options.jump,
        accept_new=options.host_key == "accept-new",
        connect_timeout_s=float(timeout) if timeout else None,
        password=login,
        become_password=SudoPassword(become) if become else None,
        several=several,
    )
    reached: list[tuple[SshTarget, SshOptions]] = []

    def dial(target: SshTarget, own: SshOptions) -> Ssh:
        reached.append((target, own))
        return Ssh(target, own)

    hosts, notes = named_hosts(options, settings, dial)
    for note in notes:
        say(f"gpunode: {note}")
    unlock_keys(options, reached)
    return hosts


def _typed_for_ssh(options: LiveOptions) -> dict[str, object]:
    return {
        "--limit": options.limit,
        "--exclude": options.exclude,
        "--where": options.where,
        "--shard": options.shard,
        "--identity": options.identity,
        "--key-pass-file": options.key_pass_file,
        "--ask-pass": options.ask_pass,
        "--user": options.user,
        "--port": options.port,
        "--jump": options.jump,
        "--host-key": options.host_key,
        "--connect-timeout": options.connect_timeout,
        "--forks": options.forks,
        "--deadline": options.deadline,
    }


def _typed_for_sudo(options: LiveOptions) -> dict[str, object]:
    return {"--ask-become-pass": options.ask_become_pass, "--become-pass-file": options.become_pass_file}


def _first(flags: dict[str, object]) -> str:
    """The first that was typed, even with no text behind it; "" for none."""
    return next((flag for flag, value in flags.items() if value is not None and value is not False and value != []), "")


def forks(options: LiveOptions) -> int:
    from gpunode.fleet.run import DEFAULT_FORKS

    return whole_number("--forks", options.forks, 1, 1000) or DEFAULT_FORKS


def deadline_s(options: LiveOptions) -> int | None:
    return whole_number("--deadline", options.deadline, 1, 604_800)


def whole_number(flag: str, text: str | None, least: int, most: int) -> int | None:
    """None when not typed. Raises UsageError that names the range."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text) and least <= int(text) <= most:
        return int(text)
    raise UsageError(
        f"{flag} {text!r} is not a whole number from {least} to {most}", remedy=f"give {flag} such a number"
    )


def one_of(flag: str, text: str | None, choices: tuple[str, ...]) -> None:
    """None when not typed. Raises UsageError that lists the choices."""
    if text is not None and text not in choices:
        raise UsageError(
            f"{flag} {text!r} is not a choice",
            evidence=f"{meant(text, choices)}the choices are {', '.join(choices)}",
            remedy=f"choose one of them with {flag}",
        )


def on_each(
    hosts: Sequence[Host],
    options: LiveOptions,
    work: Callable[[Host], HostOutcome],
    on_done: Callable[[HostOutcome], None],
    stop: threading.Event | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> FleetReport:
    """`work` on every host side by side. One host's failure stays its own: it becomes that host's outcome."""
    from gpunode.fleet.run import run_fleet

    return run_fleet(hosts, work, forks=forks(options), on_done=on_done, stop=stop, on_stop=on_stop)


def look_at(
    hosts: tuple[Host, ...],
    options: LiveOptions,
    output: QuietOptions,
    work: Callable[[Host], HostOutcome],
    each: Callable[[HostOutcome], None] | None = None,
    *,
    again: bool = False,
    stop: threading.Event | None = None,
    left: str = PROBE,
) -> FleetReport:
    """`work` on every host, with progress on stderr when there is more than one; `each` host goes there as it ends.

    A host that --where leaves out has that as its outcome; `again`: it was asked in this run, and `work` knows of it.
    `stop`: is set by Ctrl-C. `left`: what becomes of what is at work when a second one leaves it.
    """
    from gpunode.cli.output import progress_style
    from gpunode.fleet.deadline import within
    from gpunode.render.live import Progress

    def unless_left_out(host: Host) -> HostOutcome:
        return left_out(host) or work(host)

    one = work if again else unless_left_out
    bounded = within(deadline_s(options), one, lambda host: host.transport.close())
    stop = stop or threading.Event()
    style, names = progress_style(output), [str(h) for h in hosts]
    with Progress(style, sys.stderr, names, done="looked at", reasons=False, left=left) as progress:

        def done(outcome: HostOutcome) -> None:
            progress.done(outcome)
            if each is not None:
                each(outcome)

        report = on_each(hosts, options, bounded, done, stop, progress.stopping)
    if stop.is_set():
        raise KeyboardInterrupt  # only the probe was stopped: there is nothing to report of half the hosts
    refuse_none_left([host for host in report.hosts if host.left_out], len(hosts))
    if not (output.quiet or again):
        say_left_out(report)
    return report


def left_out(host: Host) -> HostOutcome | None:
    """The outcome of a host that --where leaves out; None for any other."""
    from gpunode.errors import ExitCode
    from gpunode.model.report import HostOutcome

    why = host.only.left_out() if host.only else ""
    return HostOutcome(str(host), ExitCode.DONE, left_out=why) if why else None


def not_left_out(named: Sequence[Host]) -> tuple[Host, ...]:
    """The hosts that --where keeps, for a verb that looks at one after the other. Raises what asking them raises."""
    if not named:  # what is held against no host would look as if it fitted all
        raise UsageError("there is no host in this shard", remedy="leave --shard out")
    outcomes = {host: left_out(host) for host in named}
    refuse_none_left([one for one in outcomes.values() if one], len(outcomes))
    return tuple(host for host, one in outcomes.items() if not one)


def refuse_none_left(out: Sequence[HostOutcome], count: int) -> None:
    """Raises UsageError where --where has left out every host: nothing done would else look like all well."""
    if out and len(out) == count:
        raise UsageError(
            f"--where leaves none of {count} hosts" if count > 1 else "--where leaves no host",
            evidence=listing(_by_reason(out), 8, between="; "),
            remedy="ask for what one of them has",
        )


def say_left_out(report: FleetReport) -> None:
    """Which hosts --where left out, and why."""
    from gpunode.cli.errors import say

    if out := [host for host in report.hosts if host.left_out]:
        say(f"gpunode: left out by --where: {listing(_by_reason(out), 20, between='; ')}")


def _by_reason(out: Sequence[HostOutcome]) -> list[str]:
    """ "gpu[01-03] (gpu.arch is hopper)" """
    from gpunode.render.wording import fold_hosts

    reasons: dict[str, list[str]] = {}
    for host in out:
        reasons.setdefault(host.left_out, []).append(host.target)
    return [f"{fold_hosts(names)} ({why})" for why, names in reasons.items()]
