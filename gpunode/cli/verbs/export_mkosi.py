"""gpunode export mkosi: a configuration for mkosi to include, by which an image is set up by the spec."""

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
        "mkosi",
        help="A configuration for mkosi to include: an image is built by the spec.",
        examples=(
            "gpunode export mkosi --spec spec.yaml --output gpunode",
            "gpunode export mkosi --driver 595 --flavour open --output gpunode",
        ),
    )(mkosi)


def mkosi(wanted: SpecOptions, output: DirectoryOptions) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import image_request, write_export
    from gpunode.export.files import ExportedFile
    from gpunode.export.mkosi import COPIED
    from gpunode.export.mkosi import mkosi as export

    def made() -> tuple[ExportedFile, ...]:
        request = image_request(wanted, BringOptions(gpunode_path=COPIED))
        return export(request)

    path = write_export("mkosi", output, made)
    say(f"gpunode: in the mkosi.conf of your image, below [Include]: Include={path}")
    return 0
