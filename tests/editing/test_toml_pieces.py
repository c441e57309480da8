"""What tomlkit would have to put together, and what is refused for it."""

from __future__ import annotations

import pytest

from gpunode.editing import toml_text
from gpunode.editing.toml_pieces import MOST_PIECES, is_in_too_many_pieces, pieces
from gpunode.errors import ConfigFileError


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("[a.b]\nk = 1\n[a.b.c]\n[a.d]\n[e]\n", 0),
        ("[a.b]\n[c]\n[a.d]\n", 0),
        ("[a.b.x]\n[a.c]\n[a.b.y]\n", 1),
        ("[a]\nb.c = 1\nb.d = 2\n", 2),
        ("[a]\nb.c = 1\n[a.b.d]\n[a.e]\n", 2),
    ],
    ids=["in order", "back at the root", "back to a table", "dotted keys", "a header below a dotted key"],
)
def test_pieces(text: str, count: int) -> None:
    assert len(list(pieces(text))) == count


@pytest.mark.parametrize("more", [0, 1])
def test_a_table_in_too_many_pieces_is_refused(more: int) -> None:
    text = "[a]\n" + "".join(f"b.k{number} = 1\n" for number in range(MOST_PIECES + more))
    want = toml_text.load("/x", text)
    want["a"]["new"] = 1
    assert is_in_too_many_pieces(text) is bool(more)
    if more:
        with pytest.raises(ConfigFileError, match="cannot be edited safely"):
            toml_text.rewrite("/x", text, want, ("a",))
    else:
        assert toml_text.load("/x", toml_text.rewrite("/x", text, want, ("a",))) == want


def test_pieces_in_another_table_stand_aside() -> None:
    text = "[a]\nk = 1\n[b]\n" + "".join(f"b.k{number} = 1\n" for number in range(MOST_PIECES + 1))
    want = toml_text.load("/x", text)
    want["a"]["k"] = 2
    assert toml_text.rewrite("/x", text, want, ("a",)) == text.replace("k = 1", "k = 2", 1)
