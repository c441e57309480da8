"""Frozen dataclasses that are made when they are first used, if they ever are, and then as much as is used.

`dataclasses.dataclass` compiles six methods for each class while its module is imported, and writes a docstring where
there is none: 0.7 ms a class, for the 210 of a check 150 ms, and half of them are never used. Here a class is only
marked. Whoever first makes an instance of it, or asks for its fields, has these made; whoever first compares, hashes
or shows an instance has the methods for that made, which most of them never need. `fields`, `replace`, `is_dataclass`
and pattern matching know no difference: what a field is says the standard library, which also makes all methods but
`__init__`, and that too where a class inherits from another, or where anything else about it is special.
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
_OF_CLASS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
# `__init__` comes last: until it is there is no instance.
_MADE = ("__replace__", *_OF_CLASS, "__init__")
_COMPARED = ("__repr__", "__eq__", "__hash__")
_NOT_COPIED = {"__dict__", "__weakref__", "__setattr__", "__delattr__"}
_lock = threading.RLock()  # a class is made after those that it inherits from


class _NotMade:
    """Stands for an attribute of a class that is not made yet."""

    def __init__(self, cls: type, name: str, kw_only: bool) -> None:
        self._cls, self._name, self._kw_only = cls, name, kw_only

    def __get__(self, instance: object, owner: type) -> Any:
        cls, name = self._cls, self._name
        with _lock:
            if cls.__dict__[name] is self:
                (_make_comparison if name in _COMPARED else _make)(cls, self._kw_only)
        made = cls.__dict__[name]
        return made if name in _OF_CLASS else made.__get__(instance, owner)


def _mark(cls: C, kw_only: bool) -> C:
    for name in (*_OF_CLASS, "__init__"):
        if name in cls.__dict__:
            raise TypeError(f"{cls.__qualname__} has a {name} of its own: say init=False")
        setattr(cls, name, _NotMade(cls, name, kw_only))
    for name in _COMPARED:
        if cls.__dict__.get(name) is None:  # a class with an __eq__ of its own has a __hash__ that is None
            setattr(cls, name, _NotMade(cls, name, kw_only))
    cls.__setattr__ = _refuse_assignment  # type: ignore[assignment]
    cls.__delattr__ = _refuse_deletion  # type: ignore[assignment]
    return cls


def _make(cls: type, kw_only: bool) -> None:
    """Give it what the standard decorator gives to a class that is the same, so that no thread sees half of one."""
    own = _own(cls)
    same = _simply_made(cls, own, kw_only) or dataclasses.dataclass(frozen=True, kw_only=kw_only)(_same(cls, own))
    for name in own.keys() & same.__dataclass_fields__.keys():  # type: ignore[attr-defined]
        if name not in same.__dict__:  # it has a default_factory
            delattr(cls, name)
        elif own[name] is not same.__dict__[name]:  # the default of a field()
            setattr(cls, name, same.__dict__[name])
    for name in _MADE:
        if name in same.__dict__ and own.get(name) is not same.__dict__[name]:
            setattr(cls, name, same.__dict__[name])


def _make_comparison(cls: type, kw_only: bool) -> None:
    """What compares, hashes and shows instances, of which there are some."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.name in cls.__annotations__}
    same: Any = dataclasses.dataclass(frozen=True, init=False, kw_only=kw_only)(_same(cls, {**_own(cls), **fields}))
    for name in _COMPARED:
        if isinstance(cls.__dict__[name], _NotMade):
            setattr(cls, name, same.__dict__[name])


def _own(cls: type) -> dict[str, Any]:
    """What was written into its body."""
    return {
        name: value
        for name, value in cls.__dict__.items()
        if name not in _NOT_COPIED and not isinstance(value, _NotMade)
    }


def _same(cls: type, own: dict[str, Any]) -> type:
    return type(cls)(cls.__name__, cls.__bases__, {**own, "__doc__": cls.__doc__ or "-"})  # none is written then


def _simply_made(cls: type, own: dict[str, Any], kw_only: bool) -> type | None:
    """Its fields by the standard library, its `__init__` by us; None where that is not simple."""
    if (
        hasattr(cls, "__post_init__")
        or "__slots__" in own
        or any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__[1:])
    ):
        return None
    # So it compiles nothing: a fifteenth of its time.
    same: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(_same(cls, own))
    if len(dataclasses.fields(same)) != len(same.__dataclass_fields__):  # there is an InitVar or a ClassVar
        return None
    params = same.__dataclass_params__
    params.init = params.repr = params.eq = params.frozen = True
    same.__init__ = _init(cls, dataclasses.fields(same))
    return same  # type: ignore[no-any-return]


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    """As the standard one, but it writes into the instance's dictionary: that one has a call for each field."""
    known: dict[str, Any] = {"__name__": cls.__module__, "_not_given": dataclasses.MISSING}
    placed, named = ["self"], ["*"]
    lines = ["    __values__ = self.__dict__"]
    for f in fields:
        value = f.name
        given = f.name
        if f.default_factory is not dataclasses.MISSING:
            known[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}()"
            if f.init:
                given, value = f"{f.name}=_not_given", f"{value} if {f.name} is _not_given else {f.name}"
        elif f.default is not dataclasses.MISSING:
            known[f"_default_{f.name}"] = f.default
            given = f"{f.name}=_default_{f.name}"
        if f.init:
            (named if f.kw_only else placed).append(given)
        if f.init or f.default_factory is not dataclasses.MISSING:
            lines.append(f"    __values__[{f.name!r}] = {value}")
    parameters = ", ".join(placed if named == ["*"] else placed + named)
    exec("\n".join((f"def __init__({parameters}):", *lines)), known)  # of names that Python took for names already
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{f.name: f.type for f in fields if f.init}, "return": None}
    return init


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
