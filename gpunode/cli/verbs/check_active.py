"""check --smoke and its like: tests that do something on a host, where they were asked for and no GPU work runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.active import ActiveTests
from gpunode.remedy import Remedy, RepairAction

if TYPE_CHECKING:
    from gpunode.cli.options.groups import ActiveOptions, CheckedHostOptions
    from gpunode.fleet.host import Host
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import FleetReport
    from gpunode.model.spec import Spec

ANSWERS: dict[str, Callable[[ActiveTests], bool]] = {  # by the check that has the answer: whether it was asked for
    "smoke.container-gpu": lambda a: a.containers,
    "smoke.daemon-reload": lambda a: a.survive_reload,
    "smoke.cuda": lambda a: a.cuda,
    "smoke.dcgm": lambda a: a.dcgm is not None,
}


def asked_tests(options: ActiveOptions, hosts: CheckedHostOptions, mode: str) -> ActiveTests:
    """What was asked for. Raises UsageError where no host could be asked, or it would be done again and again."""
    from gpunode.cli.options.groups import typed

    flags = typed(options)
    if not flags:
        return ActiveTests()
    from gpunode.cli.hosts import whole_number

    level = whole_number("--dcgm-level", options.dcgm_level, 1, 4)
    dcgm = (level or 1) if options.dcgm else None
    tests = ActiveTests(options.smoke, options.survive_reload, options.cuda, dcgm)
    if hosts.recorded:
        raise UsageError(f"{flags[0]} is for hosts: a recording runs nothing", remedy="leave it out, or name hosts")
    if mode:
        raise UsageError(f"{mode} and {flags[0]} exclude each other", remedy="choose one")
    if not tests:
        remedy = "add --dcgm" if options.dcgm_level else "add --smoke, --survive-reload, --cuda or --dcgm"
        raise UsageError(f"{flags[0]} is for a test that uses the GPUs", remedy=remedy)
    if options.dcgm_level and not options.dcgm:
        raise UsageError("--dcgm-level is for --dcgm", remedy="add --dcgm, or leave it out")
    return tests


def announce(tests: ActiveTests) -> None:
    """What will be done, before it is."""
    from gpunode.cli.errors import say

    if tests.survive_reload:
        say("--survive-reload: systemd will reload its units (systemctl daemon-reload), which concerns every container")


def with_active(host: Host, facts: HostFacts, spec: Spec, tests: ActiveTests, *, in_use: bool) -> HostFacts:
    """The facts with what the tests showed.

    Raises UnsupportedHost where programs use the GPUs (unless `in_use` allows it), and what facts.active raises.
    """
    from gpunode.catalog.load import load_catalog
    from gpunode.checks.registry import Context
    from gpunode.checks.smoke import trials
    from gpunode.facts.active import observe

    _refuse(str(host), facts, in_use=in_use)
    return replace(facts, active=observe(host.transport, tests, trials(facts, Context(spec, load_catalog()))))


def _refuse(target: str, facts: HostFacts, *, in_use: bool) -> None:
    from gpunode.advice import listing
    from gpunode.model.gpu_users import gpu_users

    if not facts.root:
        raise UnsupportedHost(
            f"{target}: active tests need root", remedy="run gpunode as root, or with sudo on the host"
        )
    if in_use:
        return
    if "busy" in facts.unread:
        why = facts.unread["busy"]
        raise UnsupportedHost(
            f"{target}: it is not known whether programs use the GPUs, and no active test was run",
            evidence=f"the processes that hold /dev/nvidia* were not read: {why}",
            remedy=Remedy(RepairAction.WAIT, "try again; --allow-gpu-in-use runs the tests all the same"),
        )
    if working := gpu_users(facts):
        raise UnsupportedHost(
            f"{target}: programs use the GPUs, and no active test was run",
            evidence=f"they hold /dev/nvidia*: {listing(working)}",
            remedy=Remedy(RepairAction.WAIT, "let them end; --allow-gpu-in-use runs the tests all the same"),
        )


def say_unanswered(report: FleetReport, tests: ActiveTests) -> None:
    """A test that was asked for and has no verdict, with the reason: it would be lost among what does not apply."""
    from gpunode.cli.errors import say
    from gpunode.model.report import NotApplicable
    from gpunode.render.wording import with_name

    for host in report.hosts:
        for id, was_asked in ANSWERS.items():
            result = host.check.results.get(id) if host.check else None
            if result is not None and isinstance(result.outcome, NotApplicable) and was_asked(tests):
                say(with_name(host.target, f"{id} has no verdict: {result.outcome.reason}"))
