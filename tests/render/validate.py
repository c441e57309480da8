"""JSON Schema (draft 2020-12) as far as gpunode's own schema goes; a keyword that is not here is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
KNOWN = {"$schema", "$defs", "$ref", "description", "anyOf", "type", "enum", "const"}
KNOWN |= {"items", "prefixItems", "minItems", "properties", "required", "additionalProperties"}


def faults(value: Any, schema: Any, root: Any, where: str = "") -> Iterator[str]:
    """What of `value` is not as `schema` has it; nothing for a document that is valid."""
    if isinstance(schema, bool):
        yield from () if schema else (f"{where}: nothing may stand here",)
        return
    assert not set(schema) - KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, where)
    if "anyOf" in schema:
        tried = [list(faults(value, one, root, where)) for one in schema["anyOf"]]
        yield from () if [] in tried else (f"{where}: none of {len(tried)} fits: {min(tried, key=len)}",)
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not one of {schema['enum']}"
    names = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if names and not any(_is(value, name) for name in names):
        yield f"{where}: {value!r} is not {' or '.join(names)}"
    if isinstance(value, list):
        yield from _list(value, schema, root, where)
    if isinstance(value, dict):
        yield from _object(value, schema, root, where)


def _is(value: Any, name: str) -> bool:
    """Python counts true as a number; JSON does not."""
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _list(value: list[Any], schema: Any, root: Any, where: str) -> Iterator[str]:
    first = schema.get("prefixItems", [])
    if len(value) < schema.get("minItems", 0):
        yield f"{where}: {len(value)} entries are too few"
    for number, item in enumerate(value):
        one = first[number] if number < len(first) else schema.get("items", True)
        yield from faults(item, one, root, f"{where}[{number}]")


def _object(value: dict[str, Any], schema: Any, root: Any, where: str) -> Iterator[str]:
    yield from (f"{where}.{name}: it is missing" for name in schema.get("required", []) if name not in value)
    known = schema.get("properties", {})
    for name, item in value.items():
        yield from faults(item, known.get(name, schema.get("additionalProperties", True)), root, f"{where}.{name}")
