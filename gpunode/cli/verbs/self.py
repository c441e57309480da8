"""gpunode self: gpunode as a thing to carry, and as it was released."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpunode.cli.options.groups import option
from gpunode.cli.options.verb import verb
from gpunode.cli.typer_classes import VerbGroup
from gpunode.cli.verbs.self_check import check as check_itself

ZIPAPP = "gpunode.pyz"


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=VerbGroup,
        help="Make gpunode as one file, or compare it with its release.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode self zipapp\n  scp gpunode.pyz gpu01: && ssh gpu01 python3 gpunode.pyz check",
    )
    verb(
        group,
        "zipapp",
        help="Write gpunode as one file that a host's own python3 (3.10 or newer) runs, and print its SHA-256.",
        examples=("gpunode self zipapp", "gpunode self zipapp --output /srv/www/gpunode.pyz"),
    )(zipapp)
    verb(
        group,
        "check",
        help="Compare every file of this gpunode with the release that it was installed from.",
        examples=("gpunode self check", "gpunode self check --json"),
    )(check_itself)
    app.add_typer(group, name="self")


def zipapp(
    output: Annotated[Path, option("--output", metavar="FILE", help=f"Where it goes (default {ZIPAPP}).")] = Path(
        ZIPAPP
    ),
) -> int:
    import sys
    from hashlib import sha256

    from gpunode.offline.output_file import check, write_archive
    from gpunode.release.zipapp import zipapp as made
    from gpunode.render.door import show

    check(output, "--output")
    whole = made()
    write_archive(output, whole, "--output", mode=0o755)
    show(f"{sha256(whole).hexdigest()}  {output}", sys.stdout)  # as sha256sum has it, and `sha256sum --check` reads it
    return 0
