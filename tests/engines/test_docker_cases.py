"""Every pair in docker/ as text, as structure, and taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpunode.engines.docker import edit
from tests.engines.docker_cases import BEFORE, DIRECTORY, Case, cases, rewritten

Pairs = list[tuple[str, Any]]
CASES = cases()
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
OURS = ("runtimes", "default-runtime", "features")


def pairs_of(text: str | None) -> Pairs:
    """A second reading: members in their order, and numbers as they are spelled."""
    body = (text or "").removeprefix("\ufeff").strip() or "{}"
    read = json.loads(body, object_pairs_hook=Members, parse_int=Spelled, parse_float=Spelled)
    return read if isinstance(read, Members) else Members()


class Members(Pairs):
    """An object, so that it is not taken for a list."""


class Spelled(str):
    """A number, so that it is not taken for a string."""

    __slots__ = ()


def member(pairs: object, *keys: str) -> Any:
    for key in keys:
        pairs = dict(pairs).get(key) if isinstance(pairs, Members) else None
    return pairs


def without(pairs: object, *names: str) -> Pairs:
    return [(key, value) for key, value in pairs if key not in names] if isinstance(pairs, Members) else []


def test_there_are_enough_of_them_and_each_has_an_outcome() -> None:
    befores = {path.name.removesuffix(BEFORE) for path in DIRECTORY.glob(f"*{BEFORE}")}
    assert len(CASES) >= 60
    assert befores <= {case.name for case in CASES}
    assert [case.name for case in CASES if case.before is None] == ["no-file"]


@each
def test_text_is_as_in_the_pair_and_a_second_time_changes_nothing(case: Case) -> None:
    first = rewritten(case.before, case.version or "26.1.5", case.want, **case.observed)
    assert first.main.after == case.after
    assert first.changed == (case.after != (case.before or ""))
    second = rewritten(case.after, case.version or "26.1.5", case.want, **case.observed)
    assert not second.changed
    assert second.added == ()


@pytest.mark.parametrize("version", ["20.10.24", "28.5.2", None])
def test_the_pair_is_the_same_for_every_docker_where_it_names_none(version: str | None) -> None:
    mine = [case for case in CASES if case.version is None and (version != "20.10.24" or not any(case.least))]
    made = [rewritten(case.before, version, case.want, **case.observed).main.after for case in mine]
    assert made == [case.after for case in mine]


@each
def test_lines_that_are_not_about_the_runtime_are_unchanged_and_where_they_were(case: Case) -> None:
    """But for a comma behind the one that was last; lines with a brace or one of gpunode's keys may change."""
    before = (case.before or "").removeprefix("\ufeff").split("\n")
    after = iter(case.after.split("\n"))
    mine = [f'"{key}"' for key in (*OURS, "nvidia", "path", "cdi")]
    for line in before:
        body = line.rstrip(" \r").removesuffix(",").rstrip()
        if body.lstrip() in ("", "null") or body[-1] in "{}" or any(key in line for key in mine) or "\\u00" in line:
            continue
        found = next(other for other in after if other.startswith(body))
        assert found.endswith("\r") == line.endswith("\r")
        assert found.removeprefix(body).strip(" \r")[:1] in ("", ",")


@each
def test_every_other_key_keeps_its_value_its_spelling_and_its_place(case: Case) -> None:
    before, after = pairs_of(case.before), pairs_of(case.after)
    assert [key for key, _ in after][: len(before)] == [key for key, _ in before]
    assert without(after, *OURS) == without(before, *OURS)
    old, new = member(before, "runtimes"), member(after, "runtimes")
    assert without(new, "nvidia") == without(old, "nvidia")
    assert without(member(after, "features"), "cdi") == without(member(before, "features"), "cdi")
    entry = without(member(old, "nvidia"), "path", "options")
    assert without(member(new, "nvidia"), "path", "options")[: len(entry)] == entry
    options = without(member(old, "nvidia", "options"), "BinaryName")
    assert without(member(new, "nvidia", "options"), "BinaryName") == options


@each
def test_the_pair_ends_with_what_was_asked_for(case: Case) -> None:
    before, after = pairs_of(case.before), pairs_of(case.after)
    assert isinstance(member(after, "runtimes", "nvidia"), Members)
    wanted = "nvidia" if case.want.default else member(before, "default-runtime")
    assert member(after, "default-runtime") == wanted
    if case.want.cdi and case.name != "cdi-is-default-on-28":
        assert member(after, "features", "cdi") is True
    else:
        assert member(after, "features") == member(before, "features")


@each
def test_undo_gives_the_bytes_of_before(case: Case) -> None:
    named = member(pairs_of(case.before), "default-runtime")
    before = case.before or ""
    assert edit.removed(case.after, "nvidia", named, before=before) == before


@each
def test_undo_leaves_what_was_added_since(case: Case) -> None:
    since = f'{{\n"added-since": [1.0],{case.after.lstrip()[1:]}'
    named = member(pairs_of(case.before), "default-runtime")
    undone = pairs_of(edit.removed(since, "nvidia", named, before=case.before or ""))
    assert undone == [("added-since", ["1.0"]), *pairs_of(case.before)]
