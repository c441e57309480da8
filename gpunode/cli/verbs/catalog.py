"""gpunode catalog TABLE: what gpunode knows, with source, date and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options.groups import ResultOptions, option
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    from gpunode.catalog.age import StaleRow
    from gpunode.catalog.load import Catalog
    from gpunode.cli.results import CatalogTable, SchemaPage, SupportPage
    from gpunode.render.style import Style

TABLES = (
    "gpus",
    "architectures",
    "nvswitches",
    "branches",
    "distros",
    "toolkit",
    "cuda",
    "mig",
    "versions",
    "repositories",
    "support",
    "checks",
    "schema",
)


def register(app: typer.Typer) -> None:
    verb(
        app,
        "catalog",
        help="Show what gpunode knows, with its source, and what is unverified: " + ", ".join(TABLES) + ".",
        examples=("gpunode catalog gpus --id 2330,1eb8", "gpunode catalog --stale"),
    )(catalog)


def catalog(
    output: ResultOptions,
    table: Annotated[str | None, typer.Argument(metavar="|".join(TABLES), show_default=False)] = None,
    id: Annotated[str | None, option("--id", metavar="IDS", help="PCI device ids: 2330,1eb8.")] = None,
    stale: Annotated[bool, option("--stale", help="List rows that are old or unverified, of all tables.")] = False,
    days: Annotated[
        str | None,
        option("--days", metavar="N", help="With --stale: how old (default 180)."),
    ] = None,
) -> int:
    from gpunode.advice import meant
    from gpunode.catalog.load import load_catalog
    from gpunode.cli.results import CatalogTable, ChecksPage, SchemaPage, SupportPage, choose, show_result
    from gpunode.errors import UsageError

    pages: dict[str, type] = {"support": SupportPage, "checks": ChecksPage, "schema": SchemaPage}
    choose(output, pages.get(table or "", CatalogTable))
    if stale or days is not None:
        show_result(CatalogTable("stale", _stale(table or id, stale, days)), output)
        return 0
    if table not in TABLES:
        raise UsageError(
            f"{table!r} is not a table" if table else "which table?",
            evidence=f"{meant(table, TABLES) if table else ''}the tables are {', '.join(TABLES)}",
            remedy="choose one of them",
        )
    if id is not None and table != "gpus":
        raise UsageError("--id is for gpunode catalog gpus", remedy="leave it out")
    page = pages[table]() if table in pages else CatalogTable(table, _rows(load_catalog(), table, id))
    show_result(page, output)
    return 0


def _stale(other: str | None, stale: bool, days: str | None) -> tuple[StaleRow, ...]:
    from datetime import date

    from gpunode.catalog.age import STALE_DAYS, stale_rows
    from gpunode.errors import UsageError

    if not stale:
        raise UsageError("--days is for gpunode catalog --stale", remedy="leave it out")
    if other:
        raise UsageError("--stale looks through all tables", remedy=f"leave {other} out")
    if days is not None and not (days.isascii() and days.isdigit() and len(days) <= 5):
        raise UsageError(f"--days {days!r} is not a number of days", remedy="name one, as in --days 90")
    return stale_rows(date.today(), STALE_DAYS if days is None else int(days))


def _rows(known: Catalog, table: str, ids: str | None) -> list[object]:
    import re

    from gpunode.errors import UsageError

    if ids is None:
        return list(_table_rows(known, table))
    words = [word.strip().lower().removeprefix("10de:").removeprefix("0x") for word in ids.split(",")]
    if wrong := [word for word in words if not re.fullmatch(r"[0-9a-f]{4}", word)]:
        raise UsageError(
            f"--id {wrong[0]!r} is not a PCI device id",
            evidence="four hex digits, as in 2330",
            remedy="lspci -nn shows it",
        )
    return [known.models.get(word) or known.function(word) or known.gpu_model(word) for word in words]


def _table_rows(known: Catalog, table: str) -> tuple[object, ...]:
    from gpunode.catalog.repositories import dead_repositories
    from gpunode.catalog.versions import thresholds

    tables: dict[str, tuple[object, ...]] = {
        "gpus": tuple(known.models.values()),
        "architectures": known.architectures,
        "nvswitches": known.switches,
        "branches": known.branches,
        "distros": known.distros,
        "toolkit": (known.toolkit,),
        "cuda": known.cuda.toolkits,
        "mig": known.mig_sets,
        "versions": tuple(thresholds().values()),
        "repositories": dead_repositories(),
    }
    return tables[table]


def support(result: SupportPage, style: Style) -> str:
    from gpunode.catalog.load import load_catalog
    from gpunode.render.support_page import support_text

    return support_text(load_catalog()).rstrip("\n")


def json_whole(result: CatalogTable, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": "gpunode.catalog/1", result.name: result.rows})


def json_lines(result: CatalogTable, style: Style) -> str:
    from gpunode.render.encode import dumps

    return "".join(dumps(row, indent=None) + "\n" for row in result.rows)


def schema_page(result: SchemaPage, style: Style) -> str:
    from gpunode.render.json_page import json_page

    return json_page().rstrip("\n")


def schema_whole(result: SchemaPage, style: Style) -> str:
    from gpunode.render.encode import dumps
    from gpunode.render.json_schema import json_schema

    return dumps(json_schema(), indent=2) + "\n"


def schema_line(result: SchemaPage, style: Style) -> str:
    from gpunode.render.encode import dumps
    from gpunode.render.json_schema import json_schema

    return dumps(json_schema(), indent=None) + "\n"


COLUMNS = {
    "stale": ("table", "row", "why", "checked", "source"),
    "gpus": ("id", "name", "kind", "architecture", "cc", "fabric", "mig", "grade", "checked", "source"),
    "architectures": (
        "name",
        "compute_capability",
        "flavour",
        "first_branch",
        "last_branch",
        "grade",
        "checked",
        "source",
    ),
    "nvswitches": ("generation", "ids", "grade", "checked", "source"),
    "branches": ("number", "kind", "status", "end", "cuda", "latest", "grade", "checked", "source"),
    "distros": ("name", "manager", "platform", "fingerprint", "grade", "checked", "source"),
    "toolkit": ("latest", "floor", "floor_cve", "packages", "fingerprint", "grade", "checked", "source"),
    "cuda": ("version", "driver", "grade", "checked", "source"),
    "mig": ("name", "ids", "profiles", "grade", "checked", "source"),
    "versions": ("program", "feature", "since", "grade", "checked", "source"),
    "repositories": ("pattern", "why", "grade", "checked", "source"),
}


def page(result: CatalogTable, style: Style) -> str:
    """Aligned columns; the source comes last, since it is long."""
    rows = result.rows
    if not rows:
        return "no row"
    names = [name for name in COLUMNS[result.name] if any(hasattr(row, name) for row in rows)]
    cells = [names, *([_cell(getattr(row, name, None), name) for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def _cell(value: object, name: str) -> str:
    if name == "grade":
        return str(value or "by its id block")
    if isinstance(value, dict):
        return ",".join(f"{key}:{count}" for key, count in value.items())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "-" if value in (None, "") else str(value)
