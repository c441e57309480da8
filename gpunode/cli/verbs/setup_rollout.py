"""What a rollout needs to know of its hosts beforehand, taken from the facts that their plans are made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from gpunode.cli.options.groups import RuleOptions, typed
from gpunode.cli.options.rollout import OF_REBOOTS, RolloutOptions, WaveOptions
from gpunode.cli.results import over_ssh
from gpunode.cli.verbs.setup_policy import policy, refuse_elsewhere, schedulers
from gpunode.errors import UsageError
from gpunode.fleet.host import Host
from gpunode.fleet.rollout.drain import NodeIdentity, Scheduler
from gpunode.fleet.rollout.gate import Gate, failed
from gpunode.fleet.rollout.health import errors_of
from gpunode.fleet.rollout.policy import Policy, limits
from gpunode.fleet.rollout.rollout import Health, Rollout
from gpunode.fleet.rollout.waves import wave_numbers
from gpunode.fleet.rollout.words import rollout_words
from gpunode.fleet.runs.header import kept_rules
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckReport, FleetReport, HostOutcome
from gpunode.model.run_record import HostState, Key, PastRun
from gpunode.model.spec import RebootPolicy
from gpunode.specfile import SpecFile
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.checks.rules.judged import Judgement

FileOf = Callable[[Host], SpecFile]


@dataclass
class Preparation:
    """Filled by the threads that plan, a host each."""

    policy: Policy
    schedulers: tuple[Scheduler, ...] = ()
    file_of: FileOf | None = None  # what setup wants; None: an undo, whose hosts are not held against their checks
    rules: Judgement | None = None  # by which hosts are checked before and after; None: they are not
    nodes: dict[str, NodeIdentity] = field(default_factory=dict)
    before: dict[str, frozenset[Key]] = field(default_factory=dict)
    left_closed: tuple[tuple[str, str], ...] = ()  # by the run that this one goes on with (PastRun.closed)
    # Hosts that it changed and that did not end well, each with what failed before it (PastRun.failing).
    owing: Mapping[str, frozenset[Key]] = field(default_factory=dict)
    at_work: Collection[str] = ()  # hosts that it had begun when it was interrupted

    @staticmethod
    def of(
        options: WaveOptions, named: Sequence[Host], file_of: FileOf | None = None, past: PastRun | None = None
    ) -> Preparation:
        """`past`: the run that is tried again or gone on with. Where its checks were weighed by other rules, what
        failed then says nothing of what fails now.

        Raises UsageError for what was typed wrongly, or would be ignored.
        """
        refuse_elsewhere(options, ssh=over_ssh(named))
        wanted, drains = policy(options), tuple[Scheduler, ...]()
        reboots = any(_reboots(file_of, host) for host in named)
        if isinstance(options, RolloutOptions):
            drains = schedulers(options)
            limited = [flag for flag in typed(options) if flag in OF_REBOOTS]
            if limited and named and not reboots:  # of an empty shard nothing is ignored
                raise UsageError(f"{limited[0]} has no reboot to limit", remedy="add --reboot if-needed")
        here = {str(host) for host in named}
        same_rules = past and file_of and named and past.header.rules == kept_rules(file_of(named[0]).rules)
        owing = {target: keys for target, keys in past.failing.items() if target in here} if past and same_rules else {}
        several = len(named) > 1 and file_of is not None
        gated = bool(owing) or (several and (reboots or wanted.staged or wanted.max_failures is not None))
        gated = gated or bool(drains and named)  # work comes back to a host, also to one alone, that was found well
        rules = _judgement(file_of(named[0])) if file_of and gated else None
        closed, at_work = (past.closed, past.in_state(HostState.BEGUN)) if past else ((), ())
        return Preparation(wanted, drains, file_of, rules, left_closed=closed, owing=owing, at_work=at_work)

    @property
    def gated(self) -> bool:
        return self.rules is not None

    def seen(self, host: Host, facts: HostFacts) -> HostFacts:
        """Note what is known of a host before its run. Its plan is made as if it were drained, where it will be: until
        then its GPUs may be in use, and afterwards they must not be.
        """
        self.nodes[str(host)] = NodeIdentity.of(facts)
        if self.gated:
            owed = self.owing.get(str(host))
            self.before[str(host)] = errors_of(self._check(host, facts)) if owed is None else owed
        return replace(facts, driver=replace(facts.driver, busy=())) if self.schedulers else facts

    def rollout(self, named: Sequence[Host], report: FleetReport) -> Rollout:
        """The waves of the hosts that have something to do, in the order in which they were named."""
        busy, hosts = self._with_work(report), {str(host): host for host in named}
        sizes, stop = limits(self.policy, len(busy)), threading.Event()
        gate = Gate(sizes, self.policy.window, interrupted=stop.is_set)
        waves = dict(zip((host.target for host in busy), wave_numbers(sizes.waves), strict=True))
        for host in filter(self._lost, busy):
            gate.lost(waves[host.target], host, reboots=_reboots(self.file_of, hosts[host.target]))
        return Rollout(
            gate,
            waves,
            Health(lambda target: self.check_now(hosts[target]), self.before, self.owing.keys())
            if self.gated
            else None,
            self.schedulers,
            self.nodes,
            stop,
            self.policy.reboot_wait_s,
            self.left_closed,
        )

    def words(self, report: FleetReport, stopped: str = "") -> str:
        """What it will do, in a line; "" for one host that is set up as ever. `stopped`: why it does nothing."""
        if stopped:
            return f"nothing begins: {stopped}"
        hosts = self._with_work(report)
        reboots = any(h.plan and h.plan.spec.reboot is not RebootPolicy.NEVER for h in hosts)
        names = [scheduler.name for scheduler in self.schedulers]
        return rollout_words(limits(self.policy, len(hosts)), self.policy.window, names, reboots=reboots)

    def _with_work(self, report: FleetReport) -> list[HostOutcome]:
        """Hosts on which this run does something, or an earlier one did: where only somebody else's reboot or a manual
        step is left, nothing is learnt of how it goes.
        """
        return [host for host in report.hosts if self._lost(host) or self._to_be_done(host)]

    def _to_be_done(self, host: HostOutcome) -> bool:
        return host.plan is not None and (host.plan.acts or host.target in self.owing)

    def _lost(self, host: HostOutcome) -> bool:
        """Whether the interrupted run had begun it, and it cannot be gone on with: that run may have broken it."""
        return host.plan is None and host.target in self.at_work and failed(host)

    def check_now(self, host: Host) -> CheckReport:
        from gpunode.facts.collect import collect

        return self._check(host, collect(host.transport))

    def _check(self, host: Host, facts: HostFacts) -> CheckReport:
        """As `gpunode check --spec` judges them, without the site's own checks."""
        from gpunode.cli.verbs.check_host import judged

        assert self.file_of is not None
        report = judged(host, facts, self.file_of(host).spec, False, (), (), self.rules).check
        assert report is not None
        return report


def _reboots(file_of: FileOf | None, host: Host) -> bool:
    return file_of is not None and file_of(host).spec.reboot is not RebootPolicy.NEVER


def _judgement(file: SpecFile) -> Judgement:
    """The rules, which are one spec's for all hosts. Raises UsageError where they name a check that nobody has."""
    from gpunode.cli.options.rules import judgement
    from gpunode.cli.verbs.check_host import site_checks

    return judgement(RuleOptions(), file.rules, [one.id for one in site_checks(file.spec)])
