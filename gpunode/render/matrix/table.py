"""The hosts as the page's data: each text once, each host a row of places in its columns' values.

A column's values are in its order, so that the page sorts by their places and knows nothing of versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gpunode.model.report import HostOutcome
from gpunode.render.matrix.columns import COLUMNS, GROUPINGS
from gpunode.render.matrix.findings import Distinct, finding_data, of_host
from gpunode.render.matrix.majority import UNKNOWN, by_group
from gpunode.render.matrix.readings import Cell, failing, natural
from gpunode.render.matrix.sight import Eye, Sight
from gpunode.render.matrix.texts import CELL, NAME, SENTENCE, Texts
from gpunode.render.remedy_text import remedy_text
from gpunode.render.verdict import judged
from gpunode.render.wording import CODE_WORDS, without_name

# Worst first: nothing is known of a host that did not answer, nor of one whose GPUs, driver and engines no check
# looked at ("unjudged").
STANDINGS = ("lost", "fail", "warn", "unjudged", "pass")


class _Host(NamedTuple):
    outcome: HostOutcome
    name: str
    cells: tuple[Cell | None, ...] | None  # of each column; None: it gave no report
    groups: tuple[str | None, ...] = ()  # of each grouping


Sights = Mapping[str, Sight]  # target -> what was read from its facts


def table(
    outcomes: Sequence[HostOutcome], sights: Sights = MappingProxyType({}), *, at_s: float, ssh: bool
) -> dict[str, Any]:
    """Columns, groupings, findings and hosts; `at_s`: when the checks ended. `ssh`: remedies name the host.

    `sights`: of hosts whose facts are no longer held.
    """
    texts, eye = Texts(), Eye()
    hosts = [
        _seen(outcome, texts.line(_name(outcome), NAME) or "(no name)", sights.get(outcome.target), eye, at_s)
        for outcome in outcomes
    ]
    hosts.sort(key=lambda host: natural(host.name))
    columns = [
        _column([host.cells[place] if host.cells else None for host in hosts], texts) for place in range(len(COLUMNS))
    ]
    rows = [list(row) for row in zip(*(places for _, places in columns), strict=True)]
    findings = Distinct()
    return {
        "columns": [
            {"key": column.key, "title": column.title, "about": column.about, "compared": column.compared, "values": v}
            for column, (v, _) in zip(COLUMNS, columns, strict=True)
        ],
        "groupings": [
            {"key": grouping.key, "title": grouping.title, **_groups(hosts, rows, place, texts)}
            for place, grouping in enumerate(GROUPINGS)
        ],
        "hosts": [
            _host(host, key, row, findings, texts, ssh)
            for host, key, row in zip(hosts, _keys(hosts), rows, strict=True)
        ],
        "findings": [finding_data(one, texts) for one in findings.all],
    }


def _seen(outcome: HostOutcome, name: str, sight: Sight | None, eye: Eye, at_s: float) -> _Host:
    check = outcome.check
    if check is not None and check.facts is not None:
        sight = eye.sight(check.facts)
    if check is None or sight is None:
        return _Host(outcome, name, None)
    # What is not read from facts is read from the checks, whose verdicts may depend on the other hosts.
    cells = (cell if column.read else failing(check) for column, cell in zip(COLUMNS, sight.cells, strict=True))
    return _Host(outcome, name, tuple(cell and cell.at(at_s) for cell in cells), sight.groups)


def _name(outcome: HostOutcome) -> str:
    """As the user named it; this machine by its own name."""
    return (outcome.check.own_name if outcome.check else "") or outcome.target


def _keys(hosts: Sequence[_Host]) -> list[str]:
    """What stands in a link to a host: its name, numbered where two show alike."""
    numbers: dict[str, int] = {}
    keys: dict[str, None] = {}
    for host in hosts:
        key = host.name
        while key in keys:
            numbers[host.name] = number = numbers.get(host.name, 1) + 1
            key = f"{host.name}~{number}"
        keys[key] = None
    return list(keys)


def _column(cells: Sequence[Cell | None], texts: Texts) -> tuple[list[str], list[int]]:
    """The values in order, and the place of each host's."""
    orders: dict[str, tuple[float, ...]] = {}
    shown = [cell and texts.line(cell.text, CELL) for cell in cells]
    for cell, text in zip(cells, shown, strict=True):
        if cell and text:
            orders[text] = min(orders.get(text, cell.order), cell.order)
    values = sorted(orders, key=lambda text: (orders[text], natural(text)))
    places = {text: place for place, text in enumerate(values)}
    return values, [places[text] if text else UNKNOWN for text in shown]


def _groups(hosts: Sequence[_Host], rows: Sequence[Sequence[int]], place: int, texts: Texts) -> dict[str, Any]:
    names = [texts.line(host.groups[place] or "", CELL) if host.groups else "" for host in hosts]
    known = sorted({name for name in names if name}, key=natural)
    places = {name: place for place, name in enumerate(known)}
    of = [places[name] if name else UNKNOWN for name in names]
    return {"names": known, "of": of, "most": [[list(one) for one in group] for group in by_group(of, rows)]}


def _host(host: _Host, key: str, row: list[int], findings: Distinct, texts: Texts, ssh: bool) -> dict[str, Any]:
    outcome, check = host.outcome, host.outcome.check
    names = (outcome.target,) if ssh else ()
    data: dict[str, Any] = {"name": host.name, "key": key, "row": row}
    if check is None:
        problem = without_name(outcome.target, outcome.problem) or CODE_WORDS[outcome.code]
        reason = (
            texts.line(problem, SENTENCE),
            texts.prose(outcome.evidence),
            texts.prose(remedy_text(outcome.remedy, names)),
            outcome.check_id,
        )
        return {**data, "standing": STANDINGS.index("lost"), "why": reason, "findings": []}
    found = "fail" if check.failures else "warn" if check.warnings else ""
    standing_ = found or ("pass" if judged(check) else "unjudged")
    own = texts.line(check.host.hostname, NAME) if check.host else ""
    return {
        **data,
        "standing": STANDINGS.index(standing_),
        "counts": [len(check.failures), len(check.warnings), check.passed, check.not_applicable + check.left_out],
        "own": own if own != host.name else "",
        "profile": texts.line(check.profile.title, CELL) if check.profile else "",
        "findings": [findings.place(one) for one in of_host(check, names)],
    }
