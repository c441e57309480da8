"""What is made once of the same bytes: as if it were made anew, bounded, and nobody can change it for another host."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import pytest

from gpunode.facts import wire
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.facts.seen_again import SeenAgain
from gpunode.facts.wire import HEADER, Section, decode
from gpunode.model.facts import HostFacts
from gpunode.render.encode import to_data

HOSTS = sorted((Path(__file__).parents[2] / "examples" / "hosts").iterdir())
HOST_IDS = [path.name for path in HOSTS]


class Forgetful(SeenAgain[bytes, wire._Part]):
    def get(self, key: bytes) -> None:
        """Nothing was ever seen."""


def of(path: Path) -> HostFacts:
    return assemble(load_recording(path), "host")


@pytest.mark.parametrize("path", HOSTS, ids=HOST_IDS)
def test_facts_are_the_same_whether_their_sections_were_seen_before_or_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = [of(path) for _ in range(3)][-1]  # the third finds all that is held
    stream = load_recording(path)
    sections = decode(stream)
    monkeypatch.setattr(wire, "_ALIKE", Forgetful(limit_bytes=1 << 20))
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
