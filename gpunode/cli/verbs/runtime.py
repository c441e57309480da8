"""gpunode runtime configure | show: one config file, offline; and what an engine really runs with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpunode.cli.options.groups import HostOptions, QuietOptions, option
from gpunode.cli.options.verb import verb
from gpunode.cli.typer_classes import VerbGroup


def register(app: typer.Typer) -> None:
    runtime = typer.Typer(
        cls=VerbGroup,
        help="Configure one engine's file, or show what an engine runs with.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode runtime configure docker\n  gpunode runtime show",
    )
    verb(
        runtime,
        "configure",
        help="Rewrite one config file so that its engine offers NVIDIA GPUs. Asks no daemon and restarts none.",
        examples=(
            "gpunode runtime configure docker --config ~/.config/docker/daemon.json --backup",
            "gpunode runtime configure containerd --dry-run --diff",
        ),
    )(configure)
    verb(
        runtime,
        "show",
        help="Show each engine's effective default, its handlers, and where each setting comes from.",
        examples=("gpunode runtime show", "gpunode runtime show containerd --ssh gpu07 --json"),
    )(show)
    app.add_typer(runtime, name="runtime")


def configure(
    output: QuietOptions,
    runtime: Annotated[str, typer.Argument(metavar="RUNTIME", show_default=False)],
    config: Annotated[
        Path | None, option("--config", metavar="PATH", help="The file (default: the one the engine reads).")
    ] = None,
    root: Annotated[str, option("--root", metavar="DIR", help="An image's directory; every path is below it.")] = "",
    set_as_default: Annotated[
        bool, option("--set-as-default/--no-set-as-default", help="nvidia becomes the default runtime (default: yes).")
    ] = True,
    cdi: Annotated[bool, option("--cdi", help="Enable CDI as well.")] = False,
    name: Annotated[str, option("--name", metavar="NAME", help="Of the handler (default nvidia).")] = "",
    path: Annotated[str, option("--path", metavar="PATH", help="Of nvidia-container-runtime.")] = "",
    daemon_version: Annotated[
        str | None, option("--daemon-version", metavar="V", help="The daemon the file is for (default: any).")
    ] = None,
    config_schema: Annotated[
        str | None, option("--config-schema", metavar="V", help="Of a new containerd file: 2, 3 or 4.")
    ] = None,
    drop_in: Annotated[
        str | None, option("--drop-in", metavar="PATH|none", help="containerd: write there, or in the file itself.")
    ] = None,
    ctk_set: Annotated[
        list[str] | None,
        option("--ctk-set", metavar="KEY=VALUE", help="A setting of the toolkit's own config.toml. Repeatable."),
    ] = None,
    backup: Annotated[bool, option("--backup", help="Keep the old file next to the new one.")] = False,
    dry_run: Annotated[bool, option("--dry-run", help="Print the new text; write nothing.")] = False,
    diff: Annotated[bool, option("--diff", help="Print the difference, secrets masked.")] = False,
) -> int:
    from gpunode.cli.verbs.runtime_configure import Wish, run

    wish = Wish(
        runtime=runtime,
        config=str(config.expanduser()) if config else None,
        root=root,
        default=set_as_default,
        cdi=cdi,
        name=name,
        path=path,
        daemon_version=daemon_version,
        schema=config_schema,
        drop_in=drop_in,
        settings=tuple(ctk_set or ()),
        backup=backup,
        dry_run=dry_run,
        diff=diff,
    )
    return run(wish, output)


def show(
    hosts: HostOptions,
    output: QuietOptions,
    runtime: Annotated[str | None, typer.Argument(metavar="[RUNTIME]", show_default=False)] = None,
) -> int:
    from gpunode.cli.verbs.runtime_show import show_runtimes

    return show_runtimes(runtime, hosts, output)
