"""One thing taken out of a YAML file by its place: comments, order and spelling of all else stay, or it is refused."""

from __future__ import annotations

import pytest

from gpunode.editing.yaml_text import Document
from gpunode.errors import ConfigFileError

GATES = """# head
kind: KubeletConfiguration
featureGates:
  # for GPUs
  DevicePlugins: true # since 2018
  "Other": false
# tail
evictionHard: {a: "1", b: '2'}
"""
LIST = "kubelet-arg:\n- \"feature-gates=A=true,B=false\"   # two\n- 'max-pods=3'\ntoken: x"


@pytest.mark.parametrize(
    ("text", "keys", "after"),
    [
        (GATES, ("featureGates", "DevicePlugins"), GATES.replace("  DevicePlugins: true # since 2018\n", "")),
        (GATES, ("evictionHard", "a"), GATES.replace('a: "1", ', "")),
        (GATES, ("evictionHard", "b"), GATES.replace(", b: '2'", "")),
        ("featureGates:\n  # why\n  A: true\nx: 1\n", ("featureGates", "A"), "  # why\nx: 1\n"),
        ('{"f": {"A": true, "B": 1},\r\n "b": 1}\r\n', ("f", "A"), '{"f": {"B": 1},\r\n "b": 1}\r\n'),
        ("a: 1 # x\r\nb: 2\r\n", ("a",), "b: 2\r\n"),
        ("\ufeffa: 1\nb: 2\n", ("a",), "\ufeffb: 2\n"),
        ("b: 2\na: 1", ("a",), "b: 2\n"),
        ("a:\n- 1\n- 2\n# c\nb: 1\n", ("a",), "# c\nb: 1\n"),
        ("a: 1\n", ("a",), ""),
    ],
    ids=[
        "a line of a block", "the first of a flow mapping", "the last of a flow mapping", "a mapping's only one",
        "JSON",
        "CRLF", "byte order mark", "no newline at the end", "a whole list", "all that there is",
    ],
)  # fmt: skip
def test_a_member_goes_and_all_else_stays(text: str, keys: tuple[str, ...], after: str) -> None:
    assert Document.read("/etc/f.yaml", text).without(keys) == after


def test_an_item_of_a_list_goes_or_gets_another_word() -> None:
    document = Document.read("/etc/f.yaml", LIST)
    assert document.without_item(("kubelet-arg",), 0) == "kubelet-arg:\n- 'max-pods=3'\ntoken: x"
    assert document.without_item(("kubelet-arg",), 1) == LIST.replace("- 'max-pods=3'\n", "")
    assert document.with_word(("kubelet-arg",), 0, "feature-gates=B=false") == LIST.replace("A=true,", "")
    flow = Document.read("/etc/f.yaml", "k: [a, b]\n")
    assert flow.without_item(("k",), 1) == "k: [a]\n"
    one = Document.read("/etc/f.yaml", "k:\n- a\nb: 1\n")
    assert one.without_item(("k",), 0) == "b: 1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2\n", "2:1: key 'a' stands twice"),
        ("b: {c: 1, c: 2}\na: 1\n", "1:11: key 'c' stands twice"),
        ("\ta: 1\n", "1:1: found character"),
        ("- a\n", "1:1: the file must hold one mapping"),
        ("a: &x {b: c}\nd: *x\n", "2:4: an alias of a list or mapping"),
        ("a: &x true\nb: *x\n", "cannot be edited without changing something else"),
        ("a: 1\n---\nb: 2\n", "another document"),
        ("a: b\n\udcff#\n", "2:1: this byte is not UTF-8"),
        ("? a\n: b\nc: d\n", "begins behind something else on its line"),
        ("a: |\n  x\nd: e\n", "something stands behind it on its line"),
        ("[a]: 1\n", "a key that is no word"),
        ("a: " + "[" * 200 + "]" * 200, "nested too deeply"),
    ],
    ids=[
        "twice", "twice further in", "a tab", "a list", "an alias of a mapping", "an anchor that another uses",
        "two documents", "not UTF-8", "an explicit key", "a text of lines", "a list as key", "depth",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError) as refusal:
        Document.read("/etc/f.yaml", text).without(("a",))
    assert says in refusal.value.problem
    assert refusal.value.evidence == "the file was not touched"


def test_a_word_that_is_spelled_with_escapes_is_not_replaced() -> None:
    with pytest.raises(ConfigFileError, match="escapes, an anchor or over several lines"):
        Document.read("/etc/f.yaml", 'a: "x\\ty"\n').with_word(("a",), None, "z")
