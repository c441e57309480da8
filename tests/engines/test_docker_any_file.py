"""Any legal daemon.json, in any spelling: what is not gpunode's stays, twice is once, and undo gives back the bytes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpunode.editing import json_text
from gpunode.engines.docker import edit
from gpunode.model.spec import RuntimeSpec
from tests.engines.docker_cases import CDI, DEFAULT, NO_DEFAULT, rewritten
from tests.engines.test_docker_cases import OURS, Members, member, pairs_of, without

BLANK = st.sampled_from(["", " ", "\n    ", "\r\n\t", "\r", "  \n\n "])
DIGITS = st.sampled_from(["0", "7", "42", "9223372036854775807", "123456789012345678901234567890"])
NUMBER = st.builds(
    "".join, st.tuples(st.sampled_from(["", "-"]), DIGITS, st.sampled_from(["", ".0", ".50", "e3", "E+2", ".1e-7"]))
)
TEXT = st.text(max_size=8) | st.sampled_from(["runtimes", "nvidia", '{"a"', "}]", "\\", "\ud800"])
KEY = TEXT.filter(lambda key: key.lower() not in OURS and not key.startswith("\ufeff"))


@st.composite
def spelled(draw: st.DrawFn, text: str) -> str:
    """A string in one of JSON's spellings."""
    as_is = not draw(st.booleans()) and not any("\ud800" <= c <= "\udfff" for c in text)
    return json.dumps(text, ensure_ascii=not as_is)


@st.composite
def listed(draw: st.DrawFn, brackets: str, items: list[str]) -> str:
    """`items` between brackets, with any blanks around each."""
    blank = draw(BLANK)
    return brackets[0] + ",".join(blank + item + draw(BLANK) for item in items) + blank + brackets[1]


@st.composite
def an_object(draw: st.DrawFn, members: dict[str, str]) -> str:
    """An object of ready-made values."""
    colon = draw(BLANK) + ":" + draw(BLANK)
    items = [draw(spelled(key)) + colon + value for key, value in members.items()]
    return draw(listed("{}", items))


SCALAR = NUMBER | TEXT.flatmap(spelled) | st.sampled_from(["null", "true", "false"])
VALUE = st.recursive(
    SCALAR,
    lambda inner: (
        st.lists(inner, max_size=3).flatmap(lambda items: listed("[]", items))
        | st.dictionaries(KEY, inner, max_size=3).flatmap(an_object)
    ),
    max_leaves=4,
)
ARGUMENTS = st.lists(TEXT.flatmap(spelled) | st.just("null"), max_size=3).flatmap(lambda items: listed("[]", items))
ENTRY = st.fixed_dictionaries(
    {"path": st.sampled_from(['"/opt/x"', '"nvidia-container-runtime"'])},
    optional={"runtimeArgs": ARGUMENTS, "x-note": VALUE},
)
RUNTIME_NAME = st.sampled_from(["nvidia", "crun", "a.b", "Nvidia", ""])
RUNTIMES = st.just("null") | st.dictionaries(RUNTIME_NAME, ENTRY.flatmap(an_object), max_size=3).flatmap(an_object)
FEATURE = st.sampled_from(["true", "false", "null"])
FEATURES = st.just("null") | st.dictionaries(st.sampled_from(["cdi", "x", "Cdi"]), FEATURE).flatmap(an_object)
DEFAULTS = st.sampled_from(["null", '""', '"runc"', '"run\\u0063"', '"io.containerd.runc.v2"'])


@st.composite
def daemon_json(draw: st.DrawFn) -> str:
    """A file that some dockerd starts on: members in any order, any layout."""
    others = draw(st.dictionaries(KEY, VALUE, max_size=4))
    ours = {"runtimes": RUNTIMES, "features": FEATURES, "default-runtime": DEFAULTS}
    chosen = {key: draw(strategy) for key, strategy in ours.items() if draw(st.booleans())}
    whole = {**others, **chosen}
    order = draw(st.permutations(list(whole)))
    text = draw(an_object({key: whole[key] for key in order}))
    return draw(st.sampled_from(["", "", "\ufeff"])) + draw(BLANK) + text + draw(BLANK)


WANTED = st.sampled_from([DEFAULT, NO_DEFAULT, CDI, RuntimeSpec(default=False, cdi=True)])
ANY_FILE = daemon_json() | st.sampled_from(["", " \n", "null", "\ufeff", "\ufeff null\n"])


@settings(max_examples=100, deadline=None)
@given(ANY_FILE, WANTED)
def test_what_is_not_gpunodes_is_unchanged_and_a_second_time_changes_nothing(text: str, want: RuntimeSpec) -> None:
    first = rewritten(text, "26.1.5", want)
    before, after = pairs_of(text), pairs_of(first.main.after)
    assert [key for key, _ in after][: len(before)] == [key for key, _ in before]
    assert without(after, *OURS) == without(before, *OURS)
    assert without(member(after, "runtimes"), "nvidia") == without(member(before, "runtimes"), "nvidia")
    assert without(member(after, "features"), "cdi") == without(member(before, "features"), "cdi")
    entry = without(member(before, "runtimes", "nvidia"))
    assert without(member(after, "runtimes", "nvidia"))[: len(entry)] == entry
    assert member(after, "default-runtime") == ("nvidia" if want.default else member(before, "default-runtime"))
    assert member(after, "features", "cdi") == (True if want.cdi else member(before, "features", "cdi"))
    assert not rewritten(first.main.after, "26.1.5", want).changed


@settings(max_examples=100, deadline=None)
@given(ANY_FILE, WANTED)
def test_undo_gives_the_original_bytes(text: str, want: RuntimeSpec) -> None:
    after = rewritten(text, "26.1.5", want).main.after
    assert edit.removed(after, "nvidia", named(text), before=text) == text


@settings(max_examples=100, deadline=None)
@given(ANY_FILE, WANTED)
def test_undo_without_the_old_text_leaves_all_that_is_not_gpunodes(text: str, want: RuntimeSpec) -> None:
    before = pairs_of(text)
    undone = pairs_of(edit.removed(rewritten(text, "26.1.5", want).main.after, "nvidia", named(text)))
    assert without(undone, *OURS) == without(before, *OURS)
    assert without(member(undone, "runtimes"), "nvidia") == without(member(before, "runtimes"), "nvidia")
    assert member(undone, "runtimes", "nvidia") is None
    assert member(undone, "default-runtime") == named(text)


@settings(max_examples=100, deadline=None)
@given(ANY_FILE, WANTED, VALUE)
def test_undo_leaves_what_was_written_since(text: str, want: RuntimeSpec, value: str) -> None:
    after = json_text.put(rewritten(text, "26.1.5", want).main.after.removeprefix("\ufeff") or "{}", ("since",), 1)
    since = after.replace('"since": 1', f'"since": {value}', 1)
    undone = edit.removed(since, "nvidia", named(text), before=text)
    before = without(pairs_of(text), "since")
    assert without(pairs_of(undone), "since") == before
    assert member(pairs_of(undone), "since") == member(pairs_of(since), "since")


def named(text: str) -> Any:
    """The default runtime that `text` names."""
    return member(pairs_of(text), "default-runtime")


def test_the_reader_of_these_tests_sees_order_and_spelling() -> None:
    assert pairs_of('{"b": 1.0, "a": [1e3]}') == [("b", "1.0"), ("a", ["1e3"])]
    assert pairs_of('{"a": 1}') != pairs_of('{"a": 1.0}')
    assert isinstance(pairs_of("{}"), Members)
