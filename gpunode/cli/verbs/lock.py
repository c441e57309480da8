"""gpunode lock: what one good host has, for setup --lock and check --against on others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.cli.options.groups import HostOptions, LockResultOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.cli.options.setup import SpecOptions
    from gpunode.cli.results import Locked
    from gpunode.fleet.host import Host
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import HostOutcome
    from gpunode.render.style import Style

HEAD = """# What one node has. Others are made like it:     gpunode setup --lock FILE
#               and are compared with it:  gpunode check --against FILE
# Nothing here names the node. Lines may be deleted: what is not there is neither set nor compared.
"""
# What of a lock no setup sets: it is there to be compared with.
_LEFT = ("os", "kernel", "engines", "vbios")


def register(app: typer.Typer) -> None:
    verb(
        app,
        "lock",
        help="Write what one good host has as a file that others are set up from and compared with. Changes nothing.",
        examples=("gpunode lock --ssh gpu01 --output gpu.lock", "gpunode setup --ssh gpu[02-64] --lock gpu.lock"),
    )(lock)


def lock(hosts: HostOptions, output: LockResultOptions) -> int:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.results import Locked, choose, say_problems, show_result
    from gpunode.errors import UsageError

    choose(output, Locked)
    with open_hosts(hosts) as named:
        if len(named) != 1:
            raise UsageError("a lock is of one host", remedy="name one host with --ssh")
        report = look_at(named, hosts, output, _observed)
        (host,) = report.hosts
        if host.facts is None:
            say_problems(report, ssh=bool(hosts.ssh or hosts.inventory))
            return int(host.code)
        data, unknown = _locked(host.facts)
        show_result(Locked(data), output)
        if not output.quiet:
            _say_unknown(unknown)
        return int(host.code)


def _observed(host: Host) -> HostOutcome:
    from gpunode.errors import ExitCode
    from gpunode.facts.collect import collect
    from gpunode.model.report import HostOutcome

    return HostOutcome(str(host), ExitCode.DONE, facts=collect(host.transport))


def _locked(facts: HostFacts) -> tuple[dict[str, object], dict[str, str]]:
    """The lock's data, and what is not in it, with the reason."""
    from datetime import datetime, timezone

    from gpunode import __version__
    from gpunode.catalog.load import load_catalog
    from gpunode.checks.expect.settings import settings
    from gpunode.checks.expect.snapshot import snapshot
    from gpunode.specfile import lock_of

    wanted, unsettled = settings(facts)
    expected, unknown = snapshot(facts, load_catalog())
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    data, odd = lock_of(wanted, expected, f"gpunode {__version__}", at)
    missing = {f"setup.{key}": why for key, why in unsettled.items()}
    missing |= {f"expect.{key}": why for key, why in unknown.items()}
    return data, missing | dict.fromkeys(odd, "its value is of an odd form")


def _say_unknown(unknown: dict[str, str]) -> None:
    from gpunode.cli.errors import say
    from gpunode.render.check_values import line

    for key, why in unknown.items():
        say(f"gpunode: not in the lock: {key}: {line(why)}")


def page(result: Locked, style: Style) -> str:
    from gpunode.specfile import lock_text

    return HEAD + lock_text(result.data)


def json_whole(result: Locked, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps(result.data) + "\n"


def say_left(wanted: SpecOptions, *, quiet: bool) -> None:
    """What of --lock no step of setup will set, once for all hosts."""
    if wanted.lock is None or quiet:
        return
    from gpunode.cli.errors import say
    from gpunode.remedy import gpunode
    from gpunode.render.check_values import line
    from gpunode.specfile import load_lock

    found = load_lock(wanted.lock).expected
    if left := [f"{key} {found[key]}" for key in _LEFT if key in found]:
        again = gpunode("check", "--against", str(wanted.lock))
        say(f"gpunode: the lock's {line('; '.join(left))}: setup does not set them, {again} compares them")
