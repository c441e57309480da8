"""setup --retry-failed, --resume and --attach: which hosts of an earlier run, reached how, and with which spec."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpunode.advice import listing
from gpunode.cli.errors import say
from gpunode.cli.options.again import AgainOptions
from gpunode.cli.options.connection import connected_as
from gpunode.cli.options.groups import HostOptions, typed
from gpunode.cli.options.kept_rollout import rolled_as
from gpunode.cli.options.rollout import RolloutOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.spec import flags_over, typed_text, wanted_file, wanted_of_each, wanted_spec
from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.inventory.words import split_words
from gpunode.fleet.runs.proof import proves
from gpunode.fleet.runs.read import find, read_run
from gpunode.fleet.runs.record import go_on, refuse_living
from gpunode.masking import MASK, masked
from gpunode.model.rules import Rules
from gpunode.model.run_record import HostState, PastRun, code_of
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.specfile import SpecFile, parse_file, parse_spec, spec_text
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.cli.options.groups import OutputOptions
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.fleet.host import Host
    from gpunode.model.report import HostOutcome


_WHY_NOT = {
    "--retry-failed": "it ended well",
    "--resume": "it had ended",
    "--attach": "it was not at work",
}


@dataclass(frozen=True)
class Again:
    """What of an earlier run is done now."""

    flag: str  # "--retry-failed" | "--resume" | "--attach"
    past: PastRun
    names: tuple[str, ...]  # the hosts, as they were named then

    @property
    def code(self) -> int:
        """With what a run ends that has nothing left: as its hosts did."""
        return int(code_of(self.past.hosts))

    @property
    def goes_on(self) -> PastRun | None:
        """The run that is written on; None: a retry is a run of its own."""
        return None if self.flag == "--retry-failed" else self.past


def chosen(options: AgainOptions) -> Again | None:
    """Raises UsageError for a run that is not there, not a setup, or still at work."""
    words = {flag: getattr(options, flag[2:].replace("-", "_")) for flag in ("--retry-failed", "--resume", "--attach")}
    words = {flag: run_id for flag, run_id in words.items() if run_id is not None}
    if not words:
        return None
    if len(words) > 1:
        raise UsageError(f"{' and '.join(words)} exclude each other", remedy="choose one")
    ((flag, run_id),) = words.items()
    past = read_run(find(run_id, "setup"))
    if past.header.verb != "setup":
        raise UsageError(
            f"run {past.header.id} is no setup",
            evidence=f"it is of {past.header.verb}",
            remedy=Remedy(RepairAction.NONE, gpunode("runs", ssh=False), " lists the runs"),
        )
    refuse_living(past)
    if past.torn:
        from gpunode.render.runs_text import torn_words

        say(f"gpunode: run {past.header.id}: {torn_words(past.torn)}")
    return Again(flag, past, _names(flag, past))


def _names(flag: str, past: PastRun) -> tuple[str, ...]:
    if flag == "--retry-failed":
        names = past.not_done
    else:
        states = (HostState.BEGUN,) if flag == "--attach" else (HostState.BEGUN, HostState.WAITING)
        names = past.in_state(*states)
    if hidden := [name for name in names if MASK in name]:
        raise UsageError(
            f"the record of run {past.header.id} has no whole name of {listing(hidden)}",
            evidence="a password may stand in it, and none is kept",
            remedy="name the hosts with --ssh",
        )
    return names


def kept_spec(again: Again, wanted: SpecOptions) -> Spec | None:
    """The run's spec, read as any spec file is; of a retry with what was typed now over it. None: it is not kept.

    Raises UsageError.
    """
    run, header = f"run {again.past.header.id}", again.past.header
    if header.spec is None:
        return _withheld(again, wanted)
    began_with = parse_spec(header.spec, f"the spec of {run}")
    same = wanted.spec is not None and wanted_spec(wanted) == began_with
    if again.flag != "--retry-failed" and typed(wanted) and not same:
        raise UsageError(
            f"{typed(wanted)[0]} cannot change what {run} is about",
            evidence=f"{again.flag} goes on with the spec that it began with",
            remedy=Remedy(
                RepairAction.NONE, gpunode("setup", "--retry-failed", header.id, ssh=False), " takes another"
            ),
        )
    return wanted_spec(wanted) if wanted.spec is not None else flags_over(began_with, wanted)


def _withheld(again: Again, wanted: SpecOptions) -> Spec | None:
    """What is typed now in place of a spec that is not kept: the same; of a retry any file. None: over what each host's
    inventory has for it. Raises UsageError.
    """
    header = again.past.header
    if (again.flag == "--retry-failed" and wanted.spec is not None) or proves(header.spec_proof, typed_text(wanted)):
        return None
    spec = wanted_spec(wanted) if typed(wanted) else None
    if spec is not None and proves(header.spec_proof, spec_text(spec)):
        return spec
    why = "a secret stands in it, or hosts had specs of their own" if header.spec_proof else "its record has none"
    raise UsageError(
        f"the spec of run {header.id} is not kept" + ("" if spec is None else ", and it was not this one"),
        evidence=why if spec is None else f"{why}; what is typed now has another hash",
        remedy="give the same with --spec FILE, or the same flags",
    )


def file_of_each(
    again: Again, kept: Spec | None, named: Sequence[Host], wanted: SpecOptions
) -> Callable[[Host], SpecFile]:
    """What each host is to be: as the run wanted it; where that is not kept, what is typed now, over its inventory's.

    Raises UsageError.
    """
    rules = _rules_of(again, wanted)
    if kept is None:
        return wanted_of_each(named, wanted, lambda file: replace(file, rules=rules))
    file = SpecFile(kept, rules)
    return lambda host: file


def hosts_of(again: Again, hosts: HostOptions) -> HostOptions:
    """How its hosts are reached: as then, but for what is typed now. Raises UsageError."""
    if hosts.recorded:
        raise UsageError(f"{again.flag} and --recorded exclude each other", remedy="leave one of them out")
    if not again.past.header.over_ssh:
        return hosts
    reached = connected_as(hosts, again.past.header.connection)
    return reached if reached.ssh or reached.inventory else replace(reached, ssh=list(again.names))


def rollout_of(again: Again, fleet: RolloutOptions, files: Sequence[SpecFile]) -> RolloutOptions:
    """In which order and with what limits it goes through its hosts: as then, but for what is typed now; which is said.

    Raises UsageError.
    """
    reboots = any(file.spec.reboot is not RebootPolicy.NEVER for file in files)
    options, taken = rolled_as(fleet, again.past.header.rollout, reboots=reboots)
    if taken:
        say(f"gpunode: as in run {again.past.header.id}: {', '.join(taken)} (what is typed takes precedence)")
    return options


def _rules_of(again: Again, wanted: SpecOptions) -> Rules:
    """How checks are weighed: by the file that is typed, else as the run weighed them, which is said."""
    if wanted.spec is not None:
        return wanted_file(wanted).rules
    run = f"run {again.past.header.id}"
    rules = parse_file(again.past.header.rules, f"the rules of {run}").rules
    if rules != Rules():
        say(f"gpunode: as in {run}: its spec's rules of checks")
    return rules


def only_named(again: Again, named: tuple[Host, ...], options: HostOptions) -> tuple[Host, ...]:
    """Of the hosts that were opened those that it is about: `options`, as typed, may name fewer; () where its --shard
    has none of them. An inventory may have others, which the run left out or which came since.

    Raises UsageError for none, for one that is named and not of the run, and where nobody left out one that is gone.
    """
    wanted, known = set(again.names), {host.target for host in again.past.hosts}
    here = {str(host) for host in named}
    fewer = options.ssh or options.limit or options.exclude or options.shard is not None
    if not fewer and (gone := [name for name in again.names if name not in here]):
        raise UsageError(
            f"the inventory has {listing(gone)} no more",
            evidence=f"{again.flag} is about {'it' if len(gone) == 1 else 'them'} too",
            remedy="give the inventory as it was with --inventory, or name the others with --limit",
        )
    words = {word for value in options.limit or () for word in split_words(value)}
    typed_here = [str(host) for host in named if options.ssh or str(host) in words]
    if strange := [masked(name) for name in typed_here if name not in known]:
        raise UsageError(
            f"run {again.past.header.id} has no host {listing(strange)}",
            evidence=f"{again.flag} is about {listing(again.names)}",
            remedy="leave them out, or name them as they were named then",
        )
    hosts = tuple(host for host in named if str(host) in wanted)
    if not hosts and options.shard is not None:
        if named:
            say(f"gpunode: {again.flag} is about no host in shard {options.shard}: nothing to do")
        return ()
    if not hosts:
        raise UsageError(
            f"{again.flag} is about none of these hosts",
            evidence=f"of run {again.past.header.id} they would be {listing(again.names)}",
            remedy="leave --ssh out, or name some of them as they were named then",
        )
    if left_alone := [str(host) for host in named if str(host) in known - wanted]:
        say(f"gpunode: {again.flag} leaves {listing(left_alone)} alone: {_WHY_NOT[again.flag]}")
    return hosts


def nothing_left(again: Again) -> str:
    """What is said where it has no host to go on with. The end of a run that was killed before it wrote it is written.

    Raises UsageError where another goes on with it.
    """
    past = again.past
    if again.goes_on and not past.header.ended and not past.in_state(HostState.BEGUN, HostState.WAITING):
        with go_on(past, say) as record:
            record.end([host.outcome for host in past.hosts if host.outcome])
    run, hosts = again.past.header.id, len(again.past.hosts)
    if again.flag == "--retry-failed":
        return f"gpunode: all {hosts} of the hosts of run {run} ended well; there is nothing to retry"
    what = "was at work when it was interrupted" if again.flag == "--attach" else "is left to go on with"
    return f"gpunode: no host of run {run} {what}"


def attach(
    again: Again,
    named: tuple[Host, ...],
    file_of: Callable[[Host], SpecFile],
    hosts: HostOptions,
    output: OutputOptions,
) -> int:
    """Watch what the killed run left at work to its end, and say what is left to do. Begins nothing on a host."""
    from gpunode.cli.hosts import look_at
    from gpunode.cli.results import Ended, finish, over_ssh
    from gpunode.cli.verbs.setup_rollout import Preparation
    from gpunode.fleet.runs.merge import with_earlier
    from gpunode.model.report import FleetReport
    from gpunode.render.wording import closed_words

    past, report = again.past, FleetReport()
    left = set(past.in_state(HostState.BEGUN, HostState.WAITING))
    prepared = Preparation.of(RolloutOptions(), named, file_of, past)
    with go_on(past, say) as record:
        try:
            report = look_at(named, hosts, output, lambda host: _watched(host, file_of(host).spec, again, prepared))
            for outcome in report.hosts:
                if outcome.code is ExitCode.DONE and not outcome.left_out:
                    record.host_ends(outcome)
                    left.discard(outcome.target)
        finally:
            whole = replace(with_earlier(past, report), run=past.header.id)
            if past.header.ended or not left:  # an end that was there is not taken away
                record.end(whole.hosts)
    code = finish(Ended("setup", whole, over_ssh(named)), output, errors_shown=len(whole.hosts) > 1)
    for target, command in past.closed:
        say(f"gpunode: {closed_words(target, command)}")
    return code


def _watched(host: Host, spec: Spec, again: Again, prepared: Preparation) -> HostOutcome:
    from gpunode.cli.verbs.plan import planned
    from gpunode.fleet.apply_one import wait_for_killed
    from gpunode.fleet.rollout.health import with_health
    from gpunode.fleet.runs.outcome import lean
    from gpunode.model.report import HostOutcome, RunReport
    from gpunode.render.wording import count

    wait_for_killed(host, say)
    plan = planned(host, spec).plan
    assert plan is not None
    if plan.empty:
        ended = lean(HostOutcome(str(host), plan.code, run=RunReport(str(host), plan=plan, code=plan.code)))
        owed = prepared.owing.get(str(host))
        return ended if owed is None else with_health(ended, owed, lambda: prepared.check_now(host), time.sleep)
    left = count(len(plan.steps), "step") if plan.steps else "a reboot or a manual step"
    problem = f"what was at work has ended; left to do: {left}"
    remedy = Remedy(RepairAction.NONE, gpunode("setup", "--resume", again.past.header.id, ssh=False), " does the rest")
    report = RunReport(str(host), error=problem, remedy=remedy, code=ExitCode.FAILED)
    return HostOutcome(str(host), ExitCode.FAILED, run=report)
