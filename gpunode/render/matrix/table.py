"""The hosts as the page's data: each text once, each host a row of places in its columns' values.

A column's values are in its order, so that the page sorts by their places and knows nothing of versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from gpunode.catalog.load import load_catalog
from gpunode.model.report import HostOutcome
from gpunode.render.check_values import LOCAL
from gpunode.render.matrix.columns import COLUMNS, GROUPINGS
from gpunode.render.matrix.findings import Distinct, finding_data, of_host
from gpunode.render.matrix.majority import UNKNOWN, by_group
from gpunode.render.matrix.readings import Cell, Seen, natural
from gpunode.render.matrix.texts import CELL, NAME, SENTENCE, Texts
from gpunode.render.remedy_text import remedy_text
from gpunode.render.verdict import judged
from gpunode.render.wording import CODE_WORDS, without_name

# Worst first: nothing is known of a host that did not answer, nor of one to which no check applies ("unjudged").
STANDINGS = ("lost", "fail", "warn", "unjudged", "pass")


class _Catalog:
    """What the catalog calls things, asked once for each: a fleet has few of them."""

    def __init__(self) -> None:
        self._model = cache(lambda device: load_catalog().gpu_model(device).name)
        self._distro = cache(load_catalog().distro)

    def seen(self, outcome: HostOutcome, at_s: float) -> Seen | None:
        if outcome.check is None or outcome.check.facts is None:
            return None
        facts = outcome.check.facts
        distro = self._distro(facts.os)
        system = distro.name if distro else facts.os.pretty_name or facts.os.id
        return Seen(facts, outcome.check, tuple(self._model(gpu.device) for gpu in facts.gpus), system, at_s)


class _Host(NamedTuple):
    outcome: HostOutcome
    name: str
    seen: Seen | None  # None: it gave no report


def table(outcomes: Sequence[HostOutcome], *, at_s: float, ssh: bool) -> dict[str, Any]:
    """Columns, groupings, findings and hosts; `at_s`: when the checks ended. `ssh`: remedies name the host."""
    texts, catalog = Texts(), _Catalog()
    hosts = [
        _Host(outcome, texts.line(_name(outcome), NAME) or "(no name)", catalog.seen(outcome, at_s))
        for outcome in outcomes
    ]
    hosts.sort(key=lambda host: natural(host.name))
    columns = [_column(hosts, column.read, texts) for column in COLUMNS]
    rows = [list(row) for row in zip(*(places for _, places in columns), strict=True)]
    findings = Distinct()
    return {
        "columns": [
            {"key": column.key, "title": column.title, "about": column.about, "compared": column.compared, "values": v}
            for column, (v, _) in zip(COLUMNS, columns, strict=True)
        ],
        "groupings": [
            {"key": grouping.key, "title": grouping.title, **_groups(hosts, rows, grouping.read, texts)}
            for grouping in GROUPINGS
        ],
        "hosts": [
            _host(host, key, row, findings, texts, ssh)
            for host, key, row in zip(hosts, _keys(hosts), rows, strict=True)
        ],
        "findings": [finding_data(one, texts) for one in findings.all],
    }


def _name(outcome: HostOutcome) -> str:
    """As the user named it; this machine by its own name."""
    facts = outcome.check.facts if outcome.check else None
    return (facts.hostname if facts and outcome.target == LOCAL else "") or outcome.target


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


def _column(hosts: Sequence[_Host], read: Callable[[Seen], Cell | None], texts: Texts) -> tuple[list[str], list[int]]:
    """The values in order, and the place of each host's."""
    cells = [read(host.seen) if host.seen else None for host in hosts]
    orders: dict[str, tuple[float, ...]] = {}
    shown = [cell and texts.line(cell.text, CELL) for cell in cells]
    for cell, text in zip(cells, shown, strict=True):
        if cell and text:
            orders[text] = min(orders.get(text, cell.order), cell.order)
    values = sorted(orders, key=lambda text: (orders[text], natural(text)))
    places = {text: place for place, text in enumerate(values)}
    return values, [places[text] if text else UNKNOWN for text in shown]


def _groups(
    hosts: Sequence[_Host], rows: Sequence[Sequence[int]], read: Callable[[Seen], str | None], texts: Texts
) -> dict[str, Any]:
    names = [texts.line(read(host.seen) or "", CELL) if host.seen else "" for host in hosts]
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
    own = texts.line(check.facts.hostname, NAME) if check.facts else ""
    return {
        **data,
        "standing": STANDINGS.index(standing_),
        "counts": [len(check.failures), len(check.warnings), check.passed, check.not_applicable + check.left_out],
        "own": own if own != host.name else "",
        "profile": texts.line(check.profile.title, CELL) if check.profile else "",
        "findings": [findings.place(one) for one in of_host(check, names)],
    }
