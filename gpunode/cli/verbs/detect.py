"""gpunode detect: what is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import HostOptions, OutputOptions, option
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.cli.results import Detected
    from gpunode.fleet.host import Host
    from gpunode.model.report import HostOutcome
    from gpunode.render.style import Style


def register(app: typer.Typer) -> None:
    verb(
        app,
        "detect",
        help="Show the GPUs, driver, kernel, runtimes and Kubernetes of a host. Changes nothing.",
        examples=("gpunode detect", "gpunode detect --ssh root@gpu07 --record gpu07.facts"),
    )(detect)


def detect(
    hosts: HostOptions,
    output: OutputOptions,
    record: Annotated[
        Path | None,
        option("--record", metavar="FILE", help="Save the facts, secrets masked."),
    ] = None,
    mask_host: Annotated[bool, option("--mask-host", help="Mask host names, serials and UUIDs as well.")] = False,
) -> int:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.results import Detected, choose, each_line, finish, over_ssh
    from gpunode.errors import UsageError
    from gpunode.offline.output_file import check

    choose(output, Detected)
    with open_hosts(hosts) as named:
        if mask_host and not record:
            raise UsageError("--mask-host is for --record FILE", remedy="leave it out")
        if record and len(named) != 1:
            raise UsageError("--record takes one host", remedy="name one host with --ssh")
        if record:
            check(record, "--record")
        each = each_line("detect", output)
        report = look_at(named, hosts, output, lambda host: observed(host, record, mask_host=mask_host), each)
        return finish(Detected("detect", report, over_ssh(named)), output, printed=each is not None)


def observed(host: Host, record: Path | None = None, *, mask_host: bool = False) -> HostOutcome:
    """One host's facts; saved as well when `record` is given."""
    from gpunode.cli.output import to_file
    from gpunode.errors import ExitCode
    from gpunode.facts.collect import assemble, probe
    from gpunode.facts.recordings import masked
    from gpunode.model.report import HostOutcome

    stream = probe(host.transport)
    facts = assemble(stream, str(host))
    if record:
        to_file(record, masked(stream, mask_host=mask_host).decode("utf-8", "surrogateescape"), "--record")
    return HostOutcome(str(host), ExitCode.DONE, facts=facts)


def page(result: Detected, style: Style) -> str:
    from gpunode.catalog.load import load_catalog
    from gpunode.render.detect_text import detect_text

    catalog = load_catalog()
    texts = []
    for facts in (h.facts for h in result.report.hosts if h.facts):
        names = {device.address: name for device in facts.pci if (name := catalog.device_name(device))}
        distro = catalog.distro(facts.os)
        texts.append(detect_text(facts, style, names=names, system=distro.name if distro else None))
    return "\n\n".join(texts)
