"""JSON -> a value of a given type. Nothing is guessed: a wrong type, a missing or unknown key is a fault by name."""

from __future__ import annotations

import reprlib
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gpunode.errors import GpunodeError, UsageError
from gpunode.model.spec import DriverRequest, ToolkitRequest
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.render.encode import KINDS

_PARSED: dict[Any, Callable[[str], Any]] = {DriverRequest: DriverRequest.parse, ToolkitRequest: ToolkitRequest.parse}


def from_data(kind: Any, data: Any, where: str) -> Any:
    """`data` as a `kind` (a dataclass, tuple, enum, union or plain type). Raises UsageError that names `where`."""
    if kind in _PARSED:
        return _parsed(kind, data, where)
    if kind is Remedy:
        return _remedy(data, where)
    if is_dataclass(kind):
        return _dataclass(kind, data, where)
    if get_origin(kind) in (Union, types.UnionType):
        return _union(get_args(kind), data, where)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), data, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of({member.value: member for member in kind}, data, where)
    if get_origin(kind) is Literal:
        return _one_of({word: word for word in get_args(kind)}, data, where)
    return _plain(kind, data, where)


def _parsed(kind: Any, data: Any, where: str) -> Any:
    try:
        return _PARSED[kind](_plain(str, data, where))
    except GpunodeError as error:
        raise _fault(where, error.evidence or error.problem) from error


def _dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise _fault(where, f"it is {_called(data)}, an object is wanted")
    known = {f.name: f for f in fields(kind)}
    given = {k: v for k, v in data.items() if not (k == "kind" and KINDS.get(v if isinstance(v, str) else "") is kind)}
    if unknown := sorted(set(given) - set(known)):
        raise _fault(f"{where}.{unknown[0][:60]}", f"no such key; the keys are {', '.join(known)}")
    for name, field in known.items():
        if name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise _fault(f"{where}.{name}", "it is missing")
    hints = get_type_hints(kind)
    return kind(**{name: from_data(hints[name], value, f"{where}.{name}") for name, value in given.items()})


def _remedy(data: Any, where: str) -> Remedy:
    """Its words; the command in them is for programs that read the plan, and a fresh plan makes its own."""
    if not isinstance(data, dict) or set(data) != {"action", "command", "text"}:
        raise _fault(where, f"it is {_called(data)}, an object with action, command and text is wanted")
    action = from_data(RepairAction, data["action"], f"{where}.action")
    return Remedy(action, from_data(str, data["text"], f"{where}.text"))


def _union(options: tuple[Any, ...], data: Any, where: str) -> Any:
    if data is None and type(None) in options:
        return None
    rest = [o for o in options if o is not type(None)]
    if len(rest) == 1:
        return from_data(rest[0], data, where)
    name = data.get("kind") if isinstance(data, dict) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind not in rest:
        raise _fault(f"{where}.kind", f"it is {shortened(name)}; the kinds are {', '.join(KINDS)}")
    return from_data(kind, data, where)


def _tuple(items: tuple[Any, ...], data: Any, where: str) -> Any:
    if not isinstance(data, list):
        raise _fault(where, f"it is {_called(data)}, a list is wanted")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(from_data(items[0], value, f"{where}[{i}]") for i, value in enumerate(data))
    if len(items) != len(data):
        raise _fault(where, f"it has {len(data)} entries, {len(items)} are wanted")
    return tuple(
        from_data(kind, value, f"{where}[{i}]") for i, (kind, value) in enumerate(zip(items, data, strict=True))
    )


def _one_of(choices: dict[Any, Any], data: Any, where: str) -> Any:
    for written, value in choices.items():
        if written == data:
            return value
    raise _fault(where, f"it is {shortened(data)}; the choices are {', '.join(map(str, choices))}")


def _plain(kind: Any, data: Any, where: str) -> Any:
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is kind:  # not isinstance: true is no number
        return data
    raise _fault(where, f"it is {_called(data)}, {_NAMES[kind]} is wanted")


_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    dict: "an object",
    list: "a list",
}


def shortened(data: Any) -> str:
    """A value of the file for a message, however long or deep it is."""
    return reprlib.repr(data) if not isinstance(data, str) or len(data) > 60 else repr(data)


def _called(data: Any) -> str:
    return _NAMES.get(type(data), type(data).__name__)


def _fault(where: str, what: str) -> UsageError:
    return UsageError("this is not a plan gpunode saved", evidence=f"{where}: {what}", remedy=REMEDY)


REMEDY = Remedy(RepairAction.NONE, "make it again with ", gpunode("plan", "--save"))
