"""Frozen dataclasses that are made when they are first used, if they ever are.

`dataclasses.dataclass` compiles six methods for each class while its module is imported, and writes a docstring where
there is none: 0.7 ms a class, for the 210 of a check 150 ms, and half of them are never used. Here a class is only
marked. Whoever first makes an instance of it, or asks for its fields, has it made, by the standard library: `fields`,
`replace`, `is_dataclass` and pattern matching know no difference.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen: bool = False, kw_only: bool = False, **more: bool) -> Any:
        """As `dataclasses.dataclass`; what is not frozen, or is to be otherwise, is made at once."""
        if cls is not None or not frozen or more:
            return dataclasses.dataclass(cls, frozen=frozen, kw_only=kw_only, **more)
        return lambda marked: _mark(marked, kw_only)


C = TypeVar("C", bound=type)

# What may be asked of a class before there is an instance of it.
_ASKED_FIRST = ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__init__")
# And of instances. `__init__` comes last: until it is there is none, and nobody compares or hashes one.
_MADE = ("__repr__", "__eq__", "__hash__", "__replace__", *_ASKED_FIRST)
_NOT_COPIED = {"__dict__", "__weakref__", "__setattr__", "__delattr__", *_ASKED_FIRST}
_lock = threading.RLock()  # a class is made after those that it inherits from


class _NotMade:
    """Stands for an attribute of a class that is not made yet."""

    def __init__(self, cls: type, name: str, kw_only: bool) -> None:
        self._cls, self._name, self._kw_only = cls, name, kw_only

    def __get__(self, instance: object, owner: type) -> Any:
        cls, name = self._cls, self._name
        with _lock:
            if cls.__dict__[name] is self:
                _make(cls, self._kw_only)
        made = cls.__dict__[name]
        return made.__get__(instance, owner) if name == "__init__" else made


def _mark(cls: C, kw_only: bool) -> C:
    for name in _ASKED_FIRST:
        if name in cls.__dict__:
            raise TypeError(f"{cls.__qualname__} has a {name} of its own: say init=False")
        setattr(cls, name, _NotMade(cls, name, kw_only))
    cls.__setattr__ = _refuse_assignment  # type: ignore[assignment]
    cls.__delattr__ = _refuse_deletion  # type: ignore[assignment]
    return cls


def _make(cls: type, kw_only: bool) -> None:
    """Give it what the standard decorator gives to a class that is the same, so that no thread sees half of one."""
    own = {name: value for name, value in cls.__dict__.items() if name not in _NOT_COPIED}
    same = type(cls)(cls.__name__, cls.__bases__, {**own, "__doc__": cls.__doc__ or "-"})  # it writes none then
    dataclasses.dataclass(frozen=True, kw_only=kw_only)(same)
    for name in own.keys() & same.__dataclass_fields__.keys():  # type: ignore[attr-defined]
        if name not in same.__dict__:  # it has a default_factory
            delattr(cls, name)
        elif own[name] is not same.__dict__[name]:  # the default of a field()
            setattr(cls, name, same.__dict__[name])
    for name in _MADE:
        if name in same.__dict__ and own.get(name) is not same.__dict__[name]:
            setattr(cls, name, same.__dict__[name])


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
