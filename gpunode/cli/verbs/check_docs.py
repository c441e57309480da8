"""check --list, check --explain ID, and docs/reference/checks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpunode.advice import meant
from gpunode.checks import CheckDoc, all_checks
from gpunode.cli.options.groups import OutputOptions
from gpunode.cli.results import CheckList, CheckPage, ChecksPage, show_result
from gpunode.errors import ExitCode, UsageError
from gpunode.model.layers import GROUPS, LAYERS, depth, group_of
from gpunode.model.repair import ELSEWHERE, Elsewhere
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.style import Style, hang


def show_docs(id: str | None, output: OutputOptions, site: Path | None = None) -> int:
    """All checks, those in the directory `site` too, or the one with this id. Raises UsageError for an id that does
    not exist, and for what is wrong in `site`.
    """
    docs = [*all_checks(), *(_of_site(site) if site else ())]
    show_result(CheckPage([_named(id, docs)]) if id is not None else CheckList(docs), output)
    return int(ExitCode.DONE)


def _of_site(directory: Path) -> Iterator[CheckDoc]:
    from gpunode.model.report import Severity
    from gpunode.remedy import NO_REMEDY
    from gpunode.render.json_schema import json_schema
    from gpunode.site_checks.directory import ProgramCheck, load_site_checks

    for one in load_site_checks(directory, json_schema()):
        said = (Severity.ERROR, NO_REMEDY) if isinstance(one, ProgramCheck) else (one.severity, one.remedy)
        yield CheckDoc(one.id, said[0], one.title, one.broken, one.reads, said[1], foreign=one.file)


def _named(id: str, docs: Sequence[CheckDoc]) -> CheckDoc:
    known = {doc.id: doc for doc in docs}
    if id in known:
        return known[id]
    raise UsageError(
        f"no check is called {id!r}",
        evidence=meant(id, known).strip(),
        remedy=Remedy(RepairAction.NONE, gpunode("check", "--list", ssh=False), " lists all checks"),
    )


def listed(result: CheckList, style: Style) -> str:
    width = max((len(doc.id) for doc in result.docs), default=0)
    rows = ((f"{doc.id:<{width}}  {doc.severity.value:<7}  ", doc.title) for doc in result.docs)
    return "\n".join(line for lead, title in rows for line in hang(style, lead, title))


def explained(result: CheckPage, style: Style) -> str:
    (doc,) = result.docs
    rows = (
        ("Proves", doc.title),
        ("Broken", doc.broken),
        ("Reads", doc.reads),
        ("Remedy", doc.remedy.text),
        ("Action", doc.remedy.action.value),
        ("Foreign", f"a check of this site: {doc.foreign}" if doc.foreign else ""),
        ("Explains", ", ".join(doc.explains)),
        ("Follows", f"from {', '.join(doc.explained_by)}" if doc.explained_by else ""),
    )
    lines = [f"{doc.id}   {doc.severity.value}", ""]
    return "\n".join(lines + [line for label, text in rows if text for line in hang(style, f"{label:<9}", text)])


PAGE = """# Checks

What `gpunode check` looks at. Made by `gpunode catalog checks`; edits here are lost.

A check passes, finds what is broken, or does not apply, with the reason: a fact that was not read is never a pass.
*error*: GPU work fails or is wrong, or the next reboot breaks it; *warning*: look at it. A finding may explain others:
the report shows causes, worst first and lowest layer first, with what follows from them, which counts neither as a pass
nor as not applicable. `gpunode check --explain ID` shows one check, `gpunode check --list` all.
"""
ACTIONS = """
## Actions

A remedy has an `action` for a program. gpud's `repair_actions` and NVSentinel's `recommendedAction` are fewer: this is
what they are told. `CHECK_USER_APP_AND_GPU` and `NONE` stand where neither tool has a word for it: the finding stays,
and a person (or gpunode) sets it right. Sources: gpud's api/v1 types, NVSentinel's health_event.proto, 2026-11-23.
"""


def checks_page(docs: Sequence[CheckDoc]) -> str:
    """The page in Markdown, with a newline at its end."""
    layers = dict.fromkeys(LAYERS[group] for group in GROUPS)
    parts = [PAGE]
    for layer in layers:
        here = [doc for doc in docs if LAYERS.get(group_of(doc.id)) == layer]
        if here:
            rows = [_row(doc) for doc in sorted(here, key=lambda doc: (depth(doc.id), doc.id))]
            parts.append(f"\n## {layer[0].upper()}{layer[1:]}\n\n{table(COLUMNS, rows)}\n")
    actions = [(f"`{a.value}`", a.meaning, f"`{e.gpud}`", _nvsentinel(e)) for a, e in ELSEWHERE.items()]
    return "".join((*parts, ACTIONS, "\n", table(("action", "meaning", "gpud", "NVSentinel"), actions), "\n"))


COLUMNS = ("check", "proves", "broken", "reads", "remedy", "action", "may follow from")


def _row(doc: CheckDoc) -> tuple[str, ...]:
    follows = ", ".join(f"`{id}`" for id in doc.explained_by)
    head = f"`{doc.id}` {doc.severity.value}"
    return (head, doc.title, doc.broken, doc.reads, doc.remedy.text, f"`{doc.remedy.action.value}`", follows)


def _nvsentinel(there: Elsewhere) -> str:
    machine = "" if there.nvsentinel == there.nvsentinel_vm else f", in a virtual machine `{there.nvsentinel_vm}`"
    return f"`{there.nvsentinel}`{machine}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def page(result: ChecksPage, style: Style) -> str:
    return checks_page(all_checks()).rstrip("\n")


def json_whole(result: CheckList | CheckPage, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": "gpunode.checks/2", "checks": result.docs})


def json_lines(result: CheckList | CheckPage, style: Style) -> str:
    from gpunode.render.encode import dumps

    return "".join(dumps(doc, indent=None) + "\n" for doc in result.docs)
