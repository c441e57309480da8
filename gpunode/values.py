"""Frozen dataclasses that are made when they are first used, if they ever are, and then as much as is used.

`dataclasses.dataclass` compiles six methods for each class while its module is imported, and writes a docstring where
there is none: 0.7 ms a class, for the 210 of a check 150 ms, and half of them are never used. Here a class is only
marked. Whoever first makes an instance of it has its `__init__` made; whoever first asks for its fields has those made,
and whoever first compares, hashes or shows an instance the methods for that: most classes never need either. `fields`,
`replace`, `is_dataclass` and pattern matching know no difference: what a field is says the standard library, which also
makes all methods but `__init__`, and that too where anything about a class is special.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import MISSING
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

_FIELDS = "__dataclass_fields__"
_OF_CLASS = (_FIELDS, "__dataclass_params__", "__match_args__")  # no methods: asked of the class
_WITH_FIELDS = (*_OF_CLASS, "__replace__") if hasattr(dataclasses, "_replace") else _OF_CLASS  # Python 3.13
_COMPARED = ("__repr__", "__eq__", "__hash__")
_NOT_COPIED = {"__dict__", "__weakref__", "__setattr__", "__delattr__"}
_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")  # the standard library knows whether these words mean what they seem to
_lock = threading.RLock()  # a class is made after those that it inherits from
_kw_only: dict[type, bool] = {}  # of each that is marked
_said: dict[type, dict[str, dataclasses.Field[Any]]] = {}  # the `field(...)` that its body had


class _NotMade:
    """Stands for an attribute of a class that is not made yet."""

    def __init__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> Any:
        cls, name = self._cls, self._name
        with _lock:
            if cls.__dict__[name] is self:
                make = _make_init if name == "__init__" else _make_comparison if name in _COMPARED else _make_fields
                make(cls)
        made = cls.__dict__[name]
        return made if name in _OF_CLASS else made.__get__(instance, owner)


def _mark(cls: C, kw_only: bool) -> C:
    for name in (*_WITH_FIELDS, "__init__"):
        if name in cls.__dict__:
            raise TypeError(f"{cls.__qualname__} has a {name} of its own: say init=False")
        setattr(cls, name, _NotMade(cls, name))
    for name in _COMPARED:
        if cls.__dict__.get(name) is None:  # a class with an __eq__ of its own has a __hash__ that is None
            setattr(cls, name, _NotMade(cls, name))
    cls.__setattr__ = _refuse_assignment  # type: ignore[assignment]
    cls.__delattr__ = _refuse_deletion  # type: ignore[assignment]
    _kw_only[cls] = kw_only
    _said[cls] = {name: value for name, value in cls.__dict__.items() if isinstance(value, dataclasses.Field)}
    for name, said in _said[cls].items():
        if said.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, said.default)
    return cls


def _make_fields(cls: type) -> None:
    """Give it what the standard decorator gives to a class that is the same, so that no thread sees half of one."""
    inherits = any(_FIELDS in base.__dict__ for base in cls.__mro__[1:])
    # With frozen it does compile, and without it complains where a class inherits from a frozen one.
    compiles_nothing: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=inherits, kw_only=_kw_only[cls]
    )
    same = compiles_nothing(_same(cls))
    params = same.__dataclass_params__
    params.init = params.repr = params.eq = params.frozen = True
    for name in _WITH_FIELDS:
        setattr(cls, name, same.__dict__[name])


def _make_comparison(cls: type) -> None:
    """What compares, hashes and shows instances, of which there are some."""
    same: Any = dataclasses.dataclass(frozen=True, init=False, kw_only=_kw_only[cls])(_same(cls))
    for name in _COMPARED:
        if isinstance(cls.__dict__[name], _NotMade):
            setattr(cls, name, same.__dict__[name])


def _make_init(cls: type) -> None:
    parameters = _parameters(cls)
    if parameters is not None:
        cls.__init__ = _init(cls, parameters)  # type: ignore[misc]
        return
    same: Any = dataclasses.dataclass(frozen=True, repr=False, eq=False, kw_only=_kw_only[cls])(_same(cls))
    cls.__init__ = same.__init__  # type: ignore[misc]


def _body(cls: type) -> dict[str, Any]:
    """What was written into it."""
    own = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in _NOT_COPIED and not isinstance(value, _NotMade)
    }
    return own | _said[cls]


def _same(cls: type) -> type:
    return type(cls)(cls.__name__, cls.__bases__, {**_body(cls), "__doc__": cls.__doc__ or "-"})  # so none is written


class _Parameter:
    """One of `__init__`: its field's default, or what makes one; both MISSING where it has to be given."""

    def __init__(self, hint: str, default: Any, factory: Any, kw_only: bool) -> None:
        self.hint, self.default, self.factory, self.kw_only = hint, default, factory, kw_only


def _parameters(cls: type) -> dict[str, _Parameter] | None:
    """By name, as they stand in `__init__`; None where anything about them is special."""
    found: dict[str, _Parameter] = {}
    for base in reversed(cls.__mro__):
        if base in _kw_only:
            body = _body(base)
            if "__slots__" in body:
                return None
            for name, hint in base.__annotations__.items():
                one = _parameter(base, name, hint, body.get(name, MISSING))
                if one is None:
                    return None
                found[name] = one
        elif _FIELDS in base.__dict__:  # by the standard decorator
            return None
    return found


def _parameter(cls: type, name: str, hint: Any, value: Any) -> _Parameter | None:
    if not isinstance(hint, str) or any(word in hint for word in _SPECIAL):
        return None
    kw_only, factory = _kw_only[cls], MISSING
    if isinstance(value, dataclasses.Field):
        if not value.init:
            return None
        kw_only = kw_only if value.kw_only is MISSING else value.kw_only
        value, factory = value.default, value.default_factory
    elif value is MISSING and hasattr(cls, name):  # it inherits its default
        return None
    if type(value) not in _kw_only and type(value).__hash__ is None:  # a list; it is refused as a default
        return None
    return _Parameter(hint, value, factory, kw_only)


def _init(cls: type, parameters: dict[str, _Parameter]) -> Any:
    """As the standard one, but it writes into the instance's dictionary: that one has a call for each field."""
    known: dict[str, Any] = {"__name__": cls.__module__, "_not_given": MISSING}
    placed, named = ["self"], ["*"]
    lines = ["    __values__ = self.__dict__"]
    for name, one in parameters.items():
        given = value = name
        if one.factory is not MISSING:
            known[f"_make_{name}"] = one.factory
            given, value = f"{name}=_not_given", f"_make_{name}() if {name} is _not_given else {name}"
        elif one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            given = f"{name}=_default_{name}"
        (named if one.kw_only else placed).append(given)
        lines.append(f"    __values__[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    taken = ", ".join(placed if named == ["*"] else placed + named)
    exec("\n".join((f"def __init__({taken}):", *lines)), known)  # of names that Python took for names already
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{name: one.hint for name, one in parameters.items()}, "return": None}
    return init


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
