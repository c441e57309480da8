"""Facts that are read from the same sections as before are not read again: hosts of a fleet have most of them alike.

Each reader is watched the first time: which sections and files it looked at, and whether it went through all names.
What it then made depends on nothing else, and whoever has all of these the same gets the same, frozen value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from gpunode.facts.seen_again import SeenAgain
from gpunode.facts.wire import Sections
from gpunode.model.files import FileFacts

Part = TypeVar("Part")
Held = TypeVar("Held")

_MOST_WAYS = 8  # of sections that a reader looks at: another one for each kind of host
_ENTRY_BYTES = 256
# Of what all readers looked at; facts are up to 25 times as large (wire.py). An HGX node's are 60 KiB.
_HELD: SeenAgain[Hashable, tuple[Any]] = SeenAgain(limit_bytes=1024 * 1024)


class _Looked(NamedTuple):
    """What a reader looked at."""

    commands: tuple[str, ...]
    files: tuple[str, ...]
    all_commands: bool  # it went through their names
    all_files: bool

    def at(self, sections: Sections) -> Hashable:
        """All of it, on this host."""
        return (
            tuple([sections.commands.get(name) for name in self.commands]),
            tuple([_whole(sections.files.get(path)) for path in self.files]),
            tuple(sections.commands) if self.all_commands else None,
            tuple(sections.files) if self.all_files else None,
        )

    def size_bytes(self, sections: Sections) -> int:
        commands = (sections.commands[name].text for name in self.commands if name in sections.commands)
        files = (sections.files[path].text or "" for path in self.files if path in sections.files)
        return _ENTRY_BYTES + sum(map(len, (*commands, *files)))


class KeptPart(Generic[Part]):
    """`read` of sections and `more`, as long as it depends on nothing else. For any thread."""

    def __init__(self, read: Callable[..., Part]) -> None:
        self._read = read
        self._ways: dict[_Looked, None] = {}

    def __call__(self, sections: Sections, *more: Hashable) -> Part:
        """Raises what `read` raises, each time anew."""
        for looked in tuple(self._ways):
            if (found := _HELD.get((self, looked, looked.at(sections), more))) is not None:
                part: Part = found[0]
                return part
        commands, files = _Watched(sections.commands), _Watched(sections.files)
        part = self._read(Sections(commands, files), *more)
        looked = _Looked(tuple(commands.seen), tuple(files.seen), commands.went_through, files.went_through)
        if looked not in self._ways:
            self._ways = {**(self._ways if len(self._ways) < _MOST_WAYS else {}), looked: None}
        _HELD.put((self, looked, looked.at(sections), more), (part,), looked.size_bytes(sections))
        return part


class _Watched(Mapping[str, Held]):
    """The same, and what was looked for in it."""

    def __init__(self, held: Mapping[str, Held]) -> None:
        self._held = held
        self.seen: dict[str, None] = {}
        self.went_through = False

    def __getitem__(self, name: str) -> Held:
        self.seen[name] = None
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        self.went_through = True
        return iter(self._held)

    def __len__(self) -> int:
        self.went_through = True
        return len(self._held)


def _whole(file: FileFacts | None) -> tuple[FileFacts, int | None] | None:
    """With what counts for no comparison of two files."""
    return None if file is None else (file, file.written_at)
