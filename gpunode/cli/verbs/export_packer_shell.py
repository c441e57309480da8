"""gpunode export packer-shell: what Packer's provisioners need to set up an image by the spec."""

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
        "packer-shell",
        help="Files for Packer's file and shell provisioners: an image is built by the spec.",
        examples=(
            "gpunode export packer-shell --spec spec.yaml --output gpunode",
            "gpunode export packer-shell --driver 595 --flavour open --output gpunode",
        ),
    )(packer_shell)


def packer_shell(wanted: SpecOptions, output: DirectoryOptions) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.verbs.export_files import image_request, write_export
    from gpunode.export.files import ExportedFile
    from gpunode.export.packer import UPLOADED
    from gpunode.export.packer import packer_shell as export

    def made() -> tuple[ExportedFile, ...]:
        request = image_request(wanted, BringOptions(gpunode_path=UPLOADED))
        return export(request)

    path = write_export("packer-shell", output, made)
    say(f"gpunode: copy the provisioners of {path / 'gpunode.hcl'} into the build block of your template")
    return 0
