"""check --list and check --explain ID."""

from __future__ import annotations

from gpunode.advice import meant
from gpunode.checks import CheckDoc, all_checks
from gpunode.cli.options import OutputOptions
from gpunode.cli.output import chosen_format, deliver, result_style
from gpunode.errors import ExitCode, UsageError
from gpunode.render.encode import dumps
from gpunode.render.style import Style, hang


def show_docs(id: str | None, output: OutputOptions) -> int:
    """All checks, or the one with this id. Raises UsageError for an id that does not exist."""
    docs = [_named(id)] if id is not None else list(all_checks())
    match chosen_format(output):
        case "json":
            deliver(dumps({"schema": "gpunode.checks/1", "checks": docs}), output)
        case "jsonl":
            deliver("".join(dumps(doc, indent=None) + "\n" for doc in docs), output)
        case _:
            style = result_style(output)
            deliver("\n".join(_explained(docs[0], style) if id is not None else _listed(docs, style)), output)
    return int(ExitCode.DONE)


def _named(id: str) -> CheckDoc:
    known = {doc.id: doc for doc in all_checks()}
    if id in known:
        return known[id]
    raise UsageError(
        f"no check is called {id!r}",
        evidence=meant(id, known).strip(),
        remedy="gpunode check --list lists all checks",
    )


def _listed(docs: list[CheckDoc], style: Style) -> list[str]:
    width = max((len(doc.id) for doc in docs), default=0)
    return [line for doc in docs for line in hang(style, f"{doc.id:<{width}}  {doc.severity.value:<7}  ", doc.title)]


def _explained(doc: CheckDoc, style: Style) -> list[str]:
    rows = (("Proves", doc.title), ("Broken", doc.broken), ("Reads", doc.reads), ("Remedy", doc.remedy))
    lines = [f"{doc.id}   {doc.severity.value}", ""]
    return lines + [line for label, text in rows for line in hang(style, f"{label:<9}", text)]
