"""gpunode catalog gpus|branches|distros: what gpunode knows, with source and date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options import OutputOptions, verb

if TYPE_CHECKING:
    from gpunode.catalog.load import Catalog

TABLES = ("gpus", "branches", "distros")


def register(app: typer.Typer) -> None:
    verb(
        app,
        "catalog",
        help="Show what gpunode knows: gpus, branches or distros.",
        examples=("gpunode catalog branches", "gpunode catalog gpus --id 2330,1eb8"),
    )(catalog)


def catalog(
    output: OutputOptions,
    table: Annotated[str, typer.Argument(metavar="gpus|branches|distros")],
    id: Annotated[
        str | None, typer.Option("--id", metavar="IDS", help="PCI device ids: 2330,1eb8.", show_default=False)
    ] = None,
) -> int:
    from gpunode.catalog.load import load_catalog
    from gpunode.cli.output import chosen_format, deliver
    from gpunode.errors import UsageError
    from gpunode.render.encode import dumps

    form = chosen_format(output)
    if table not in TABLES:
        raise UsageError(
            f"{table!r} is not a table", evidence=f"the tables are {', '.join(TABLES)}", remedy="choose one of them"
        )
    if id is not None and table != "gpus":
        raise UsageError("--id is for gpunode catalog gpus", remedy="leave it out")
    rows = _rows(load_catalog(), table, id)
    if form == "json":
        deliver(dumps({"schema": "gpunode.catalog/1", table: rows}), output)
    elif form == "jsonl":
        deliver("".join(dumps(row, indent=None) + "\n" for row in rows), output)
    else:
        deliver(_table(rows, table), output)
    return 0


def _rows(known: Catalog, table: str, ids: str | None) -> list[object]:
    import re

    from gpunode.errors import UsageError

    if ids is None:
        return list({"gpus": known.cards, "branches": known.branches, "distros": known.distros}[table])
    words = [word.strip().lower().removeprefix("10de:").removeprefix("0x") for word in ids.split(",")]
    if wrong := [word for word in words if not re.fullmatch(r"[0-9a-f]{4}", word)]:
        raise UsageError(
            f"--id {wrong[0]!r} is not a PCI device id",
            evidence="four hex digits, as in 2330",
            remedy="lspci -nn shows it",
        )
    return [known.card(word) for word in words]


COLUMNS = {
    "gpus": ("id", "name", "architecture", "checked", "source"),
    "branches": ("number", "kind", "status", "end", "cuda", "latest", "checked", "source"),
    "distros": ("id", "version_id", "versions", "name", "package_manager", "checked", "source"),
}


def _table(rows: list[object], table: str) -> str:
    """Aligned columns; the source comes last, since it is long."""
    names = [name for name in COLUMNS[table] if rows and hasattr(rows[0], name)]
    cells = [names, *([_cell(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "-" if value in (None, "") else str(value)
