"""check --list and check --explain ID."""

from __future__ import annotations

from gpunode.advice import meant
from gpunode.checks import CheckDoc, all_checks
from gpunode.cli.options import OutputOptions
from gpunode.cli.results import CheckList, CheckPage, show_result
from gpunode.errors import ExitCode, UsageError
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.style import Style, hang


def show_docs(id: str | None, output: OutputOptions) -> int:
    """All checks, or the one with this id. Raises UsageError for an id that does not exist."""
    show_result(CheckPage([_named(id)]) if id is not None else CheckList(list(all_checks())), output)
    return int(ExitCode.DONE)


def _named(id: str) -> CheckDoc:
    known = {doc.id: doc for doc in all_checks()}
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
    )
    lines = [f"{doc.id}   {doc.severity.value}", ""]
    return "\n".join(lines + [line for label, text in rows for line in hang(style, f"{label:<9}", text)])


def json_whole(result: CheckList | CheckPage, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": "gpunode.checks/2", "checks": result.docs})


def json_lines(result: CheckList | CheckPage, style: Style) -> str:
    from gpunode.render.encode import dumps

    return "".join(dumps(doc, indent=None) + "\n" for doc in result.docs)
