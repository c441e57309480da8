"""TOML edited in its own text: only what is to change does, in whatever way it is written."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from gpunode.editing import toml_text
from gpunode.editing.plain import same
from gpunode.errors import ConfigFileError
from tests.editing.toml_writer import Writer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

A_HUNDRED = "".join(f"b.k{number} = 1\n" for number in range(200))


@pytest.mark.parametrize(
    ("before", "want", "after"),
    [
        ("a = 1 # why\r\nb = 2\n", {"a": 3, "b": 2}, "a = 3 # why\r\nb = 2\n"),
        ("a = 'x'\n", {"a": "y"}, "a = 'y'\n"),
        ("a = 1\r\n[t]", {"a": 1, "t": {"k": 1}}, "a = 1\r\n[t]\r\nk = 1\r\n"),
        ("t = { a = 1 }\n", {"t": {"a": 1, "b": {"c": 2}}}, "t = { a = 1, b = { c = 2 } }\n"),
        ("t = { a = 1, b = 2 }\n", {"t": {"a": 1}}, "t = { a = 1 }\n"),
        ("t = { a = 1, b = 2 }\n", {"t": {"b": 2}}, "t = { b = 2 }\n"),
        ("t = { a.b = 1 }\n", {"t": {"a": {"b": 1, "c": 2}}}, "t = { a.b = 1, a.c = 2 }\n"),
        ("t = {}\n", {"t": {"b": 2}}, "t = { b = 2 }\n"),
        ("[t]\na.b = 1\nc = 2\n", {"t": {"a": {"b": 1, "x": 3}, "c": 2}}, "[t]\na.b = 1\na.x = 3\nc = 2\n"),
        ("[t.a]\nk = 1\n", {"t": {"a": {"k": 1}, "n": 2}}, "[t]\nn = 2\n\n[t.a]\nk = 1\n"),
        ("  [t.a]\n    k = 1\n", {"t": {"a": {"k": 1}, "b": {"k": 2}}}, "  [t.a]\n    k = 1\n  [t.b]\n    k = 2\n"),
        ("[t]\nk = 1\n# end of t\n\n# of u\n[u]\n", {"t": {"k": 1, "s": {"x": 1}}, "u": {}},
         "[t]\nk = 1\n# end of t\n\n[t.s]\nx = 1\n\n# of u\n[u]\n"),
        ("[t] # why\nk = 1 # because\n\n[u]\n", {"u": {}}, "# why\n# because\n\n[u]\n"),
        ("[t.a]\nk = 1\n", {"t": {}}, "[t]\n"),
        ("l = [\n  1, # one\n  2 # two\n]\n", {"l": [1]}, "l = [\n  1, # one\n  # two\n]\n"),
        ("l = [\n  1, # one\n  2 # two\n]\n", {"l": [2]}, "l = [\n  # one\n  2 # two\n]\n"),
        ("l = [\n  1 # one\n]\n", {"l": [1, 2]}, "l = [\n  1, # one\n  2\n]\n"),
        ("l = [\r\n\t1,\r\n]\r\n", {"l": [1, 2]}, "l = [\r\n\t1,\r\n\t2,\r\n]\r\n"),
        ("l = [1, 2]\n", {"l": [2, 3]}, "l = [2, 3]\n"),
        ("l = [1, 2]\n", {"l": [3, 1]}, "l = [3, 1]\n"),
        ("l = [ # none\n]\n", {"l": [1]}, "l = [1 # none\n]\n"),
        ("l = 1 # a number\n", {"l": {"k": 1}}, "# a number\n\n[l]\nk = 1\n"),
        ("[[l]]\nk = 1 # one\n[t]\n", {"l": [{"k": 2}], "t": {}}, "l = [{ k = 2 }]\n# one\n[t]\n"),
        ('"a b".c = 1\n', {"a b": {"c": 1, "d\x7f": "\x7f"}}, '"a b".c = 1\n"a b"."d\\u007f" = "\\u007f"\n'),
        (f"[a]\n{A_HUNDRED}", {"a": {"b": {f"k{n}": 1 for n in range(200)}, "n": 2}}, f"[a]\n{A_HUNDRED}n = 2\n"),
    ],
    ids=[
        "each line keeps its end", "single quotes stay", "a new line ends as the one above it", "into an inline table",
        "the last entry goes", "the first entry goes", "a dotted key inside", "an empty inline table",
        "beside dotted keys", "a header for a table that had none", "indented as its siblings are",
        "below its table's comment, above that of the next", "comments of a table that goes stay",
        "a table that lost all it had is still there", "an item goes, its comment stays",
        "a first item goes, its comment stays", "an item behind a comment", "an item with its comma",
        "one comes, one goes", "in another order", "a first item", "a value becomes a table",
        "a list of tables is written anew", "DEL is escaped", "a table in hundreds of pieces",
    ],
)  # fmt: skip
def test_edit(before: str, want: dict[str, Any], after: str) -> None:
    assert toml_text.rewrite("/x", before, want, ()) == after
    assert same(tomllib.loads(after), want)


def test_what_is_read_is_the_callers_own() -> None:
    text = "a = { b = [1] }\n"
    toml_text.load("/x", text)["a"]["b"].append(2)
    assert toml_text.load("/x", text) == {"a": {"b": [1]}}


def test_an_edit_that_would_read_as_something_else_is_refused() -> None:
    with pytest.raises(ConfigFileError, match="cannot be edited safely"):
        toml_text.rewrite("/x", "a = 1\n", {"a": (1, 2)}, ("a",))  # TOML has lists only


@pytest.mark.parametrize("seed", range(40))
def test_any_change_of_any_file(seed: int) -> None:
    """Values come, go and become others anywhere: it reads as wanted, and every comment is still there."""
    chance = random.Random(seed)
    have = tree(chance, 3)
    writer = Writer(chance)
    text = writer.text(have)
    want = changed(chance, have)
    after = toml_text.rewrite("/x", text, want, ())
    assert same(tomllib.loads(after), want)
    assert [n for n in range(1, writer.comments + 1) if f"c{n}." not in after] == []
    assert toml_text.rewrite("/x", after, want, ()) == after


NAMES = ("a", "b-1", "x y", "größe", "#", "q'q", "]", "=", "io.containerd.x")
VALUES: tuple[Any, ...] = (
    1,
    -2.5,
    True,
    "text",
    "a\nb\n",
    "'",
    '"#"',
    [],
    [1, 2, 3],
    [["x"], ["y", "z"]],
    [{"k": 1}, {"k": 2}],
)


def tree(chance: random.Random, depth: int) -> dict[str, Any]:
    names = chance.sample(NAMES, chance.randint(0, 4))
    return {n: tree(chance, depth - 1) if depth and chance.random() < 0.5 else chance.choice(VALUES) for n in names}


def changed(chance: random.Random, have: dict[str, Any]) -> dict[str, Any]:
    want: dict[str, Any] = {}
    for key, value in have.items():
        what = chance.random()
        if isinstance(value, dict) and what < 0.8:
            want[key] = changed(chance, value)
        elif what < 0.7:
            want[key] = value
        elif what < 0.85:
            want[key] = chance.choice((*VALUES, tree(chance, 1)))
    return want | {n: v for n, v in tree(chance, 1).items() if n not in have and chance.random() < 0.5}
