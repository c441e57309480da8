"""One row of a catalog file, read field by field: every fault names the file, the row, the key and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar, get_args

from gpunode.catalog.documents import document
from gpunode.errors import UsageError
from gpunode.model.driver import Grade

_Word = TypeVar("_Word", bound=str)
GRADES: tuple[Grade, ...] = get_args(Grade)


class Row:
    """A mapping in a catalog file. The readers raise UsageError; `done` refuses keys that nobody read."""

    def __init__(self, file: str, label: str, values: object) -> None:
        self.file = file
        self.label = label
        self._read: set[str] = set()
        if not isinstance(values, Mapping):
            raise self.fault("", f"a row is a mapping, this is {type(values).__name__}")
        self._values: Mapping[str, Any] = values

    def fault(self, key: str, says: str) -> UsageError:
        where = f"{self.label}.{key}" if key else self.label
        return UsageError(
            f"catalog/{self.file}: {where}: {says}",
            evidence="the catalog is data that ships with gpunode",
            remedy="correct the row, or reinstall gpunode",
        )

    def get(self, key: str) -> Any:
        self._read.add(key)
        if key not in self._values:
            raise self.fault(key, f"missing; the row has {', '.join(map(str, self._values))}")
        return self._values[key]

    def text(self, key: str, allowed: Sequence[str] = ()) -> str:
        value = self.get(key)
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self.fault(key, f"{value!r} is not {' | '.join(allowed) or 'text'}")
        return value

    def one_of(self, key: str, allowed: tuple[_Word, ...]) -> _Word:
        value = self.text(key, allowed)
        return next(word for word in allowed if word == value)

    def maybe_one_of(self, key: str, allowed: tuple[_Word, ...]) -> _Word | None:
        return None if self._absent(key) else self.one_of(key, allowed)

    def maybe_text(self, key: str) -> str | None:
        return None if self._absent(key) else self.text(key)

    def number(self, key: str) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fault(key, f"{value!r} is not a whole number")
        return value

    def maybe_number(self, key: str) -> int | None:
        return None if self._absent(key) else self.number(key)

    def flag(self, key: str) -> bool:
        value = self.get(key)
        if not isinstance(value, bool):
            raise self.fault(key, f"{value!r} is not true | false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fault(key, f"{value!r} is not a list of texts")
        return tuple(value)

    def numbers(self, key: str) -> tuple[int, ...]:
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise self.fault(key, f"{value!r} is not a list of whole numbers")
        return tuple(value)

    def maybe_texts(self, key: str) -> tuple[str, ...]:
        return () if self._absent(key) else self.texts(key)

    def maybe_numbers(self, key: str) -> tuple[int, ...]:
        return () if self._absent(key) else self.numbers(key)

    def counts(self, key: str) -> Mapping[str, int]:
        value = self.get(key)
        if not isinstance(value, dict) or not all(isinstance(v, int) for v in value.values()):
            raise self.fault(key, f"{value!r} is not a mapping of names to counts")
        return value

    def maybe_counts(self, key: str) -> Mapping[str, int]:
        return {} if self._absent(key) else self.counts(key)

    def maybe_rows(self, key: str) -> tuple[Row, ...]:
        """The mappings in a list; () where the key is absent or null."""
        if self._absent(key):
            return ()
        values = self.get(key)
        if not isinstance(values, list):
            raise self.fault(key, f"{values!r} is not a list of mappings")
        return tuple(Row(self.file, f"{self.label}.{key}[{n}]", v) for n, v in enumerate(values, 1))

    def maybe_flag(self, key: str) -> bool:
        return False if self._absent(key) else self.flag(key)

    def lists(self, key: str) -> tuple[tuple[str, ...], ...]:
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(v, list) for v in value):
            raise self.fault(key, f"{value!r} is not a list of lists")
        return tuple(tuple(map(str, v)) for v in value)

    def row(self, key: str) -> Row:
        return Row(self.file, f"{self.label}.{key}", self.get(key))

    def maybe_row(self, key: str) -> Row | None:
        return None if self._absent(key) else self.row(key)

    def day(self, key: str) -> str:
        value = self.text(key)
        try:
            date.fromisoformat(value)
        except ValueError as error:
            raise self.fault(key, f"{value!r} is not a date such as 2026-11-21") from error
        return value

    def provenance(self) -> tuple[str, str, Grade]:
        """(source, checked, grade): where the facts come from, the day they were looked at, how sure they are."""
        return self.text("source"), self.day("checked"), self.one_of("grade", GRADES)

    def done(self) -> None:
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            raise self.fault("", f"unknown key {', '.join(unknown)}; known are {', '.join(sorted(self._read))}")

    def _absent(self, key: str) -> bool:
        self._read.add(key)
        return self._values.get(key) is None


def rows(file: str, key: str, label: str) -> Iterator[Row]:
    """The rows below `key` of catalog/<file>; each is named by the value of its key `label`."""
    values = document(file).get(key)
    if not isinstance(values, list):
        raise UsageError(f"catalog/{file}: {key}: not a list", remedy="reinstall gpunode")
    for number, value in enumerate(values, 1):
        name = value.get(label, f"row {number}") if isinstance(value, dict) else f"row {number}"
        yield Row(file, f"{key}[{name}]", value)
