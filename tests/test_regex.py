"""gpunode.regex against re.compile: the same answers, later."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gpunode
from gpunode.regex import regex

ROOT = Path(__file__).parents[1]
ASKED = {
    "match": lambda one: one.match("Ab1").group(1),
    "search": lambda one: one.search("..ab1").span(),
    "fullmatch": lambda one: one.fullmatch("ab1."),
    "sub": lambda one: one.sub(r"<\1>", "ab1 cd2"),
    "findall": lambda one: one.findall("ab1 CD2"),
    "split": lambda one: one.split("x ab1 y"),
    "pattern": lambda one: one.pattern,
    "flags": lambda one: one.flags,
    "groups": lambda one: one.groups,
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_it_answers_as_what_is_compiled_at_once(ask: object) -> None:
    assert callable(ask)
    late = regex(r"([a-z]+)\d", re.IGNORECASE)
    expected = ask(re.compile(r"([a-z]+)\d", re.IGNORECASE))
    assert [ask(late), ask(late)] == [expected, expected]


def test_bytes_are_looked_through_as_well() -> None:
    assert regex(rb"b+").sub(b"-", b"abba") == b"a-a"


def test_nothing_is_compiled_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = re.compile

    def seen(text: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(text)
        return original(text, flags)

    monkeypatch.setattr(re, "compile", seen)
    late = regex("a(")
    assert compiled == []
    with pytest.raises(re.error):
        late.match("a")
    fine = regex("a+")
    assert fine.match("aa")
    assert fine.search("baa")
    assert compiled == ["a(", "a+"]


def _within(value: Any, kind: type) -> Iterator[Any]:
    """The expressions in it: by name, in tables and their rows, and in classes."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            if not isinstance(one, ModuleType):
                yield from _within(one, kind)
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from _within(one, kind)
    elif isinstance(value, type) and value.__module__.startswith("gpunode."):
        yield from (one for one in vars(value).values() if isinstance(one, kind))
    elif dataclasses.is_dataclass(value) and type(value).__module__.startswith("gpunode."):
        yield from _within(vars(value), kind)


def test_every_expression_of_gpunode_can_be_compiled() -> None:
    kind: Any = regex
    for module in pkgutil.walk_packages(gpunode.__path__, prefix="gpunode."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("gpunode.")]
    expressions = {id(one): one for names in modules for one in _within(names, kind)}.values()
    assert len(expressions) > 250
    for one in expressions:
        assert one.pattern, "asking for it compiles it: a mistake raises re.error"


def test_none_is_compiled_while_gpunode_is_imported() -> None:
    early = []
    for path in (ROOT / "gpunode").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        inside = {id(node) for function in functions for node in ast.walk(function)}  # compiled when the function runs
        early += [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and id(node) not in inside and ast.unparse(node.func) == "re.compile"
        ]
    assert early == []
