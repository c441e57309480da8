"""What is made once of the same bytes: as if it were made anew, bounded, and nobody can change it for another host."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.kept_parts import KeptPart
from gpunode.facts.recordings import load_recording
from gpunode.facts.seen_again import SeenAgain
from gpunode.facts.wire import HEADER, Section, Sections, decode, file_facts
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.render.encode import to_data
from tests.facts.forgetful import forget

HOSTS = sorted((Path(__file__).parents[2] / "examples" / "hosts").iterdir())
HOST_IDS = [path.name for path in HOSTS]


def of(path: Path) -> HostFacts:
    return assemble(load_recording(path), "host")


@pytest.mark.parametrize("path", HOSTS, ids=HOST_IDS)
def test_facts_are_the_same_whether_their_sections_were_seen_before_or_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = [of(path) for _ in range(3)][-1]  # the third finds all that is held
    stream = load_recording(path)
    sections = decode(stream)
    forget(monkeypatch)
    assert to_data(of(path)) == to_data(remembered)
    anew = decode(stream)
    assert anew == sections
    assert [one.written_at for one in anew.files.values()] == [one.written_at for one in sections.files.values()]


def test_two_hosts_with_one_section_hold_it_once_and_what_differs_apart() -> None:
    first, second, third = (
        decode(f"{HEADER}\n@ os rc=0\n|ID=debian\n@ identity rc=0\n|hostname={name}\n@end\n".encode()) for name in "abc"
    )
    assert second.commands["os"] is third.commands["os"]
    assert [one.text("identity") for one in (first, second, third)] == [f"hostname={name}\n" for name in "abc"]


def test_a_file_that_was_written_at_another_time_is_not_the_one_that_was_seen() -> None:
    # Its time counts for no comparison of two files, and all the same it is this host's.
    streams = [f"{HEADER}\n@ file:/etc/x bytes=2 mtime={time}\n|a\n@end\n".encode() for time in (5, 5, 6, 6)]
    assert [decode(stream).files["/etc/x"].written_at for stream in streams] == [5, 5, 6, 6]


def test_a_section_that_makes_no_sense_is_refused_however_often_it_comes() -> None:
    for _ in range(3):
        with pytest.raises(Exception, match="is not the probe's"):
            decode(f"{HEADER}\n@ os rc=0\n|ID=debian\nhello\n@end\n".encode())


@pytest.mark.parametrize("path", HOSTS, ids=HOST_IDS)
def test_nothing_in_the_facts_of_a_host_can_be_changed(path: Path) -> None:
    assert not list(changeable(of(path), "facts"))


def changeable(value: object, where: str) -> list[str]:
    """Where something stands that could be changed."""
    if value is None or isinstance(value, str | bytes | int | float | Enum):
        return []
    parts: dict[object, object]
    if is_dataclass(value) and getattr(type(value), "__dataclass_params__").frozen:  # noqa: B009
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
    elif isinstance(value, MappingProxyType):
        parts = dict(value)
    elif isinstance(value, tuple | frozenset):
        parts = dict(enumerate(value))
    else:
        return [f"{where}: {type(value).__name__}"]
    return [found for name, part in parts.items() for found in changeable(part, f"{where}.{name}")]


def test_what_came_once_is_not_held_and_what_came_twice_is() -> None:
    held: SeenAgain[str, int] = SeenAgain(limit_bytes=1000)
    held.put("once", 1, 10)
    assert held.get("once") is None
    held.put("once", 1, 10)
    assert held.get("once") == 1


def test_it_is_bounded_and_what_is_asked_for_stays() -> None:
    held: SeenAgain[int, Section] = SeenAgain(limit_bytes=1600, most=10)
    section = Section("x")
    for key in range(1000):
        for _ in range(2):
            held.put(key, section, 50)
        held.get(0)
        assert len(held._young) <= 10
        assert len(held._old) <= 10
    assert held.get(0) is section
    assert held.get(1) is None


def test_what_takes_a_large_part_of_it_is_not_held() -> None:
    held: SeenAgain[str, int] = SeenAgain(limit_bytes=1600)
    for _ in range(3):
        held.put("large", 1, 101)
    assert held.get("large") is None


class Counted:
    """A reader that looks at one section, at a second where the first says so, or at all of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.kept = KeptPart(self.read)

    def read(self, sections: Sections, *more: object) -> tuple[object, ...]:
        self.calls += 1
        first = sections.text("first").strip()
        if first == "all":
            return (tuple(sections.commands), len(sections.files))
        if first == "file":
            return (sections.files["/f"].text, sections.files["/f"].written_at)
        return (first, sections.text("second") if first == "more" else None, *more)


def made(files: dict[str, FileFacts] | None = None, **texts: str) -> Sections:
    return Sections({name: Section(text) for name, text in texts.items()}, files or {})


def test_what_was_read_of_the_same_sections_is_not_read_again() -> None:
    reader = Counted()
    for number in range(5):
        assert reader.kept(made(first="one", other=str(number))) == ("one", None)
    assert reader.calls == 2  # what came once is not held


@pytest.mark.parametrize(
    ("before", "now", "answer"),
    [
        (made(first="a"), made(first="b"), ("b", None)),
        (made(first="more", second="a"), made(first="more", second="b"), ("more", "b")),
        (made(first="a", second="x"), made(first="more", second="x"), ("more", "x")),
        (made(first="more"), made(first="more", second="b"), ("more", "b")),
        (made(first="all"), made(first="all", third=""), (("first", "third"), 0)),
        (made(first="all"), made({"/f": file_facts("/f", "a")}, first="all"), (("first",), 1)),
        (
            made({"/f": replace(file_facts("/f", "a"), written_at=1)}, first="file"),
            made({"/f": replace(file_facts("/f", "a"), written_at=2)}, first="file"),
            ("a", 2),
        ),
    ],
    ids=["another text", "second section", "now it asks for more", "one is there now", "a section more", "a file more",
         "a file of another time"],
)  # fmt: skip
def test_whatever_it_looked_at_makes_it_look_again_where_that_differs(
    before: Sections, now: Sections, answer: tuple[object, ...]
) -> None:
    reader = Counted()
    for _ in range(3):
        reader.kept(before)
    assert [reader.kept(now) for _ in range(3)] == [answer] * 3


def test_what_it_is_told_besides_counts_as_well() -> None:
    reader = Counted()
    assert [reader.kept(made(first="a"), word) for word in "xxyyx"] == [("a", None, word) for word in "xxyyx"]


def test_two_readers_of_the_same_sections_have_their_own_answers() -> None:
    upper, lower = KeptPart(lambda s: s.text("first").upper()), KeptPart(lambda s: s.text("first").lower())
    for _ in range(3):
        assert (upper(made(first="Ab")), lower(made(first="Ab"))) == ("AB", "ab")


def test_a_fault_is_raised_each_time() -> None:
    def faulty(sections: Sections) -> str:
        raise ValueError(sections.text("first"))

    kept = KeptPart(faulty)
    for _ in range(3):
        with pytest.raises(ValueError, match="odd"):
            kept(made(first="odd"))
