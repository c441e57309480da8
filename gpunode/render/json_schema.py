"""What `--json` prints and gpunode keeps, as one JSON Schema (draft 2020-12), walked from the dataclasses."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import field, is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gpunode.errors import ExitCode
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.model.report import ChosenProfile, Event, Finding, RunReport, Severity, Untouched
from gpunode.model.spec import DriverRequest, ToolkitRequest
from gpunode.remedy import Remedy
from gpunode.render.encode import KIND_OF, SAID_TOO, keys_of
from gpunode.render.machine import ERROR_SCHEMA, EVENT_SCHEMA, PLAN_SCHEMA, RESULTS
from gpunode.values import dataclass

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
AS_TYPED = (DriverRequest, ToolkitRequest)  # "580", as the user types it


def json_schema() -> Schema:
    """One document: it is valid for every result, and `$defs` holds each by its verb, then the values in it."""
    values = _Values()
    documents = {f"{verb}-result": _result(schema, _host(verb, values)) for verb, schema in RESULTS.items()}
    documents |= {f"{verb}-line": _line(schema, _host(verb, values)) for verb, schema in RESULTS.items()}
    documents["error"] = _object({"schema": {"const": ERROR_SCHEMA}, "code": values.of(ExitCode), **_problem(values)})
    documents["event"] = _object({"schema": {"const": EVENT_SCHEMA}, "at": {"type": "string"}} | values.keys(Event))
    saved = _Values(values.definitions, secrets=True)
    documents["saved-plan"] = _object({"schema": {"const": PLAN_SCHEMA}, "plan": saved.of(Plan)})
    parts = {"check": _check(values)} | dict(sorted(values.definitions.items()))
    return {"$schema": DIALECT, "anyOf": [_reference(name) for name in documents], "$defs": documents | parts}


@dataclass
class _Values:
    """Schemas of types; a dataclass is described once, by its name. `secrets`: as a file has it that is applied, which
    has keys more than what is printed; a dataclass of which that is so is called Saved...
    """

    definitions: dict[str, Schema] = field(default_factory=dict)
    secrets: bool = False

    def of(self, kind: Any) -> Schema:
        if kind in NAMES:
            return {"type": NAMES[kind]}
        if kind in AS_TYPED:
            return {"type": "string"}
        if is_dataclass(kind) and isinstance(kind, type):
            return self._reference(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        return self._composed(get_origin(kind), get_args(kind))

    def _composed(self, origin: Any, inner: tuple[Any, ...]) -> Schema:
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, types.UnionType):
            return self._union(inner)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if origin is frozenset or (origin is tuple and inner[1:] == (Ellipsis,)):
            return {"type": "array", "items": self.of(inner[0])}
        if origin is tuple:
            items = [self.of(kind) for kind in inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
        raise TypeError(f"JSON has no form for {origin or inner}")

    def _union(self, inner: tuple[Any, ...]) -> Schema:
        """{"type": ["string", "null"]} where that is all."""
        schemas = [self.of(kind) for kind in inner]
        if all(list(schema) == ["type"] for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}

    def _reference(self, kind: type) -> Schema:
        name = f"Saved{kind.__name__}" if self.secrets and _has_secrets(kind) else kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # taken, for types that hold their own kind
            self.definitions[name] = self._described(kind)
        return _reference(name)

    def _described(self, kind: type) -> Schema:
        summary = (kind.__doc__ or "").partition("\n")[0]
        # dataclasses give a class that is not frozen, and has no docstring, its signature.
        described = {} if not summary or summary.startswith(f"{kind.__name__}(") else {"description": summary}
        return described | _object(self.keys(kind))

    def keys(self, kind: type) -> Schema:
        hints = get_type_hints(kind) | {name: _answer(kind, name) for name in SAID_TOO.get(kind, ())}
        tag = {"kind": {"const": KIND_OF[kind]}} if kind in KIND_OF else {}
        return tag | {key: self.of(hints[name]) for key, name in keys_of(kind, secrets=self.secrets).items()}


def _has_secrets(kind: Any) -> bool:
    """Whether a saved file contains more of it, or of something in it, than what is printed."""
    if inner := get_args(kind):
        return any(map(_has_secrets, inner))
    if kind in AS_TYPED or not is_dataclass(kind) or not isinstance(kind, type):
        return False
    hints, printed, saved = get_type_hints(kind), keys_of(kind), keys_of(kind, secrets=True)
    return printed != saved or any(_has_secrets(hints.get(name)) for name in printed.values())


def _answer(kind: type, name: str) -> Any:
    """The type that a property answers."""
    return get_type_hints(getattr(kind, name).fget)["return"]


def _object(keys: Schema, optional: Schema | None = None) -> Schema:
    required = {"required": list(keys)} if keys else {}
    return {"type": "object", "properties": keys | (optional or {}), **required, "additionalProperties": False}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _result(schema: str, host: tuple[Schema, Schema]) -> Schema:
    hosts = {"type": "array", "items": _object(*host)}
    return _object({"schema": {"const": schema}, "hosts": hosts, "seconds_s": {"type": "number"}})


def _line(schema: str, host: tuple[Schema, Schema]) -> Schema:
    always, optional = host
    return _object({"schema": {"const": schema}} | always, optional)


def _host(verb: str, values: _Values) -> tuple[Schema, Schema]:
    """The keys that every host has, and those that one has or lacks (machine.host_data)."""
    plan, run = {"plan": values.of(Plan)}, {"run": values.of(RunReport)}
    checks: dict[str, Schema] = {
        "checks": {"type": "array", "items": _reference("check")},
        "profile": values.of(ChosenProfile | None),
        "idle_acknowledgements": values.of(tuple[str, ...]),
    }
    ids = {"type": "array", "items": {"type": "string"}}
    found: dict[str, Schema] = {
        "detect": {"facts": values.of(HostFacts)},
        "plan": plan,
        "setup": plan | run,
        "undo": plan | run,
        "check": checks,
        "fix": plan | run | checks | {"findings_before": ids, "gone": ids},
    }
    fault = _problem(values) | {"check_id": values.of(str | None), "untouched": values.of(Untouched | None)}
    fault |= {"left_out_why": values.of(str)}
    return {"target": {"type": "string"}, "code": values.of(ExitCode)}, fault | found[verb]


def _problem(values: _Values) -> Schema:
    return {"problem": values.of(str), "evidence": values.of(str), "remedy": values.of(Remedy)}


def _check(values: _Values) -> Schema:
    """One check and how it ended (machine.host_data)."""
    head = {"id": {"type": "string"}, "severity": values.of(Severity), "foreign": {"type": ["string", "null"]}}
    passed = head | {"outcome": {"const": "pass"}}
    unchecked = head | {
        "outcome": {"const": "not-applicable"},
        "reason": {"type": "string"},
        "left_out": values.of(bool),
    }
    found = values.keys(Finding) | head | {"outcome": {"const": "finding"}}
    return {"anyOf": [_object(passed, {"evidence": values.of(str)}), _object(unchecked), _object(found)]}
