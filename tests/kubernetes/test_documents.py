"""Objects come back from the YAML as they went in, whatever their texts look like."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpunode.kubernetes.documents import documents
from tests.kubernetes.go_yaml import reads_a_text

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


# What looks like a number, a time or a word of YAML, and texts of the same characters.
SCALARS = st.one_of(
    st.text("0123456789_+-.eExXoObBpPaf:", max_size=8),
    st.from_regex(r"\A[-+]?_?0?_?[xXoObB]?[-+]?[0-9a-f_]{0,4}(\.[0-9_]{0,2})?([eE][-+_]?[0-9_]{1,3})?\Z"),
    st.from_regex(r"\A[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]{1,3})?Z?)?\Z"),
    st.sampled_from(
        [
            "y",
            "Y",
            "n",
            "N",
            "yes",
            "No",
            "ON",
            "off",
            "True",
            "null",
            "Null",
            "~",
            ".inf",
            "-.Inf",
            ".NaN",
            "<<",
            "=",
            "e",
            "1e",
            "0x",
            "0o",
            "0b",
            "-",
        ]
    ),
)


@given(SCALARS)
def test_what_is_written_without_quotes_is_a_text_for_python_and_for_go(text: str) -> None:
    written = documents([{text: text}])
    scalars = [one for one in yaml.parse(written, Loader=yaml.SafeLoader) if isinstance(one, yaml.ScalarEvent)]
    assert [one.value for one in scalars] == [text, text]
    assert all(one.style in ("'", '"') or reads_a_text(text) for one in scalars)
    assert yaml.safe_load(written) == {text: text}


@pytest.mark.parametrize("text", ["1e3", "0o17", "1_000", "on", "y", "N", "-_1", "0x1F", "08", "1E-5", ".5", "0b-1"])
def test_a_text_that_some_reader_takes_for_something_else_is_quoted(text: str) -> None:
    assert not reads_a_text(text)
    assert documents([{"a": text}]) == f"a: '{text}'\n"


@pytest.mark.parametrize("text", ["10.0.0.1", "128Mi", "v1", "100m", "4.5.3-4.8.2", "nvidia", "no-gpu", "1.34.2", "e1"])
def test_a_text_that_no_reader_mistakes_is_not_quoted(text: str) -> None:
    assert reads_a_text(text)
    assert documents([{"a": text}]) == f"a: {text}\n"


def test_one_object_that_stands_in_two_places_is_written_twice() -> None:
    labels = {"name": "x"}
    assert "&id" not in documents([{"a": labels, "b": labels}])


def test_the_head_is_a_comment() -> None:
    assert documents([{"a": 1}], "one\n\ntwo") == "# one\n#\n# two\na: 1\n"
