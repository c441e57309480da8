"""Objects come back from the YAML as they went in, whatever their texts look like."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpunode.kubernetes.documents import documents

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(min_size=1), VALUES, min_size=1, max_size=4), min_size=1, max_size=3))
def test_whatever_is_written_is_read_back(objects: list[dict[str, object]]) -> None:
    assert list(yaml.safe_load_all(documents(objects))) == objects


@pytest.mark.parametrize(
    "text", ["yes", "on", "1e3", "0x1f", "null", "~", "- a", "a: b", "#x", "---\nkind: Pod\n", "a\n"]
)
def test_a_text_stays_one_text(text: str) -> None:
    written = documents([{"data": {"key": text}}, {"kind": "last"}])
    assert list(yaml.safe_load_all(written)) == [{"data": {"key": text}}, {"kind": "last"}]


def test_one_object_that_stands_in_two_places_is_written_twice() -> None:
    labels = {"name": "x"}
    assert "&id" not in documents([{"a": labels, "b": labels}])


def test_the_head_is_a_comment() -> None:
    assert documents([{"a": 1}], "one\n\ntwo") == "# one\n#\n# two\na: 1\n"
