"""gpunode export cloud-init: user-data that sets a host up at its first boot, over a reboot where it needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.cli.options.export import BringOptions, DirectoryOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer


def register(export: typer.Typer) -> None:
    verb(
        export,
        "cloud-init",
        help="User-data that sets a host up at its first boot; `cloud-init status` says how it ended.",
        examples=(
            "gpunode export cloud-init --spec spec.yaml --gpunode-url https://files.example/gpunode.pyz --output DIR",
            "gpunode export cloud-init --driver 580 --gpunode-path /opt/gpunode.pyz --output DIR",
        ),
    )(cloud_init)


def cloud_init(wanted: SpecOptions, bring: BringOptions, output: DirectoryOptions) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import refuse_without_source, request_of, write_export
    from gpunode.export.cloud_init import SMALLEST_LIMIT_BYTES
    from gpunode.export.cloud_init import cloud_init as export
    from gpunode.export.files import ExportedFile

    refuse_without_source(bring, "user-data takes 16 KB on AWS and 64 KB elsewhere: gpunode has no room in it")

    def made() -> tuple[ExportedFile, ...]:
        request = request_of(wanted, bring, reboot="if-needed")
        return export(request)

    path = write_export("cloud-init", output, made)
    size = (path / "user-data").stat().st_size
    if size > SMALLEST_LIMIT_BYTES:
        say(f"gpunode: the user-data has {size} bytes, and AWS takes {SMALLEST_LIMIT_BYTES}: compress it with gzip")
    where = bring.gpunode_path or "the address that was typed"
    say(f"gpunode: put gpunode.pyz at {where}; a host runs no other")
    return 0
