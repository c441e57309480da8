"""gpunode export script: one host's plan as one POSIX script, which runs there without gpunode and without Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.cli.options.export import DirectoryOptions
from gpunode.cli.options.groups import HostOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.export.files import ExportedFile
    from gpunode.fleet.host import Host
    from gpunode.model.spec import Spec


def register(export: typer.Typer) -> None:
    verb(
        export,
        "script",
        help="The plan of one host as a POSIX script that runs there without gpunode and Python.",
        examples=(
            "gpunode export script --ssh gpu07 --driver 580 --output DIR",
            "gpunode export script --recorded gpu07.facts --spec spec.yaml --output DIR",
        ),
    )(script)


def script(hosts: HostOptions, wanted: SpecOptions, output: DirectoryOptions) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.options.spec import wanted_of_each, wanted_spec
    from gpunode.cli.verbs.export_files import refuse_bundle, write_export
    from gpunode.errors import UsageError

    refuse_bundle(wanted)
    wanted_spec(wanted)  # what is wrong with it is said before anything of hosts
    with open_hosts(hosts) as named:
        if len(named) != 1:
            raise UsageError("a script is for one host", remedy="name one host with --ssh")
        spec = wanted_of_each(named, wanted)(named[0]).spec
        path = write_export("script", output, lambda: _script(named[0], spec))
    say(f"gpunode: sh {path / 'setup.sh'} shows on the host what it would do; with --yes it does it")
    return 0


def _script(host: Host, spec: Spec) -> tuple[ExportedFile, ...]:
    """Raises UnsupportedHost where there is nothing to do, or nothing that a script can."""
    from gpunode.cli.verbs.plan import planned
    from gpunode.errors import UnsupportedHost
    from gpunode.export.script import script
    from gpunode.facts.collect import collect
    from gpunode.remedy import Remedy, RepairAction, gpunode
    from gpunode.render.clean import clean
    from gpunode.render.plan_text import plans_text

    facts = collect(host.transport)
    plan = planned(host, spec, facts).plan
    assert plan is not None
    if not plan.steps:
        raise UnsupportedHost(
            f"{host}: there is no script: nothing is to be done that one could do",
            evidence="its plan has no steps",
            remedy=Remedy(RepairAction.NONE, gpunode("plan"), " says what there is to do"),
        )
    return script(plan, facts, clean(plans_text((plan,))))
