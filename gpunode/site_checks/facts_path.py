"""Where in the published facts a value stands: `driver.smi.gpus[*].uuid`, `system.disks[path=/var].free_bytes`.

A path is walked, never evaluated. It is held against the schema of the facts when it is read, so that a misspelt one
is refused and not a check that never finds anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.regex import regex
from gpunode.values import dataclass

LONGEST = 300  # characters
MOST_FOUND = 10_000  # values; a host has fewer packages than that
_MOST_STARS = 3
_STEP = regex(
    r'\.?(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<star>\*)\]|\["(?P<key>[^"]{1,200})"\]'
    r"|\[(?P<field>[a-z_][a-z0-9_]*)=(?P<text>[^\]]{1,200})\]"
)
FORMS = 'NAME.NAME, NAME[*] (each), NAME[KEY=TEXT] (those whose KEY is TEXT), NAME["KEY"] (a key with other characters)'

Schema = Mapping[str, Any]
Step = tuple[str, str, str]  # kind ("name", "key", "each", "those"), its word, and the text behind "="


@dataclass(frozen=True)
class Found:
    """One value: where it stands, "driver.smi.gpus[3].uuid", and what it is. None: not known."""

    place: str
    value: Any


@dataclass(frozen=True)
class FactsPath:
    text: str
    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> FactsPath:
        """Raises UsageError that names the forms."""
        steps: list[Step] = []
        at = 0
        while at < len(text) <= LONGEST and (found := _STEP.match(text, at)):
            if found["name"] and (found[0][0] == ".") != bool(steps):
                break
            steps.append(_step(found))
            at = found.end()
        if at < len(text) or not steps:
            raise UsageError(f"{text[:60]!r} is not a path", evidence=f"the forms are {FORMS}")
        if (stars := sum(kind == "each" for kind, _, _ in steps)) > _MOST_STARS:
            raise UsageError(f"{stars} times [*] are too many", evidence=f"{_MOST_STARS} at most")
        return cls(text, tuple(steps))

    @property
    def many(self) -> bool:
        """Whether it may find more than one value."""
        return any(kind in ("each", "those") for kind, _, _ in self.steps)

    def look(self, facts: Mapping[str, Any]) -> tuple[Found, ...]:
        """What is there, MOST_FOUND at most. A value that is not known ends its way early, and is None."""
        found = [Found("", facts)]
        for step in self.steps:
            found = [one for before in found for one in _taken(before, step)][:MOST_FOUND]
        return tuple(found)

    def kinds(self, schema: Schema) -> frozenset[str]:
        """The JSON types that may stand there, "null" aside. Raises UsageError for a path that no host's facts have."""
        known = schema["$defs"]
        here = list(_alternatives({"$ref": "#/$defs/HostFacts"}, known))
        for step in self.steps:
            inside = [kind for one in here for kind in _inside(one, step, known)]
            if not inside:
                raise UsageError(f"no facts have {self.text}", evidence=_nearest(step, here, known))
            here = inside
        return frozenset(one["type"] for one in here)


def _step(found: re.Match[str]) -> Step:
    if found["name"]:
        return ("name", found["name"], "")
    if found["key"]:
        return ("key", found["key"], "")
    return ("each", "", "") if found["star"] else ("those", found["field"], found["text"])


def _taken(before: Found, step: Step) -> Iterator[Found]:
    """One step further. Nothing where a list is empty, or a key is not there."""
    kind, word, text = step
    value = before.value
    if value is None:
        yield before
    elif kind in ("name", "key"):
        if isinstance(value, Mapping) and word in value:
            yield Found(
                f"{before.place}.{word}".lstrip(".") if kind == "name" else f'{before.place}["{word}"]', value[word]
            )
    else:
        for name, one in _members(value):
            place = f"{before.place}[{name}]"
            if kind == "each":
                yield Found(place, one)
            elif (has := one.get(word) if isinstance(one, Mapping) else None) is None:
                yield Found(f"{place}.{word}", None)  # nobody knows whether it is one of those
            elif _spelt(has) == text:
                yield Found(place, one)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f'"{key}"', one) for key, one in value.items())
    elif isinstance(value, list):
        yield from ((str(number), one) for number, one in enumerate(value))


def _spelt(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _alternatives(schema: Schema, known: Mapping[str, Schema]) -> Iterator[dict[str, Any]]:
    """Each JSON type that it allows, null aside, as {"type": ..., what it holds}."""
    if "$ref" in schema:
        yield from _alternatives(known[schema["$ref"].rpartition("/")[2]], known)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _alternatives(one, known)
    elif "enum" in schema:
        yield {"type": "string"}
    else:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        yield from ({**schema, "type": one} for one in types if one != "null")


def _inside(schema: Schema, step: Step, known: Mapping[str, Schema]) -> Iterator[dict[str, Any]]:
    kind, word, _ = step
    if kind in ("name", "key"):
        inner = schema.get("properties", {}).get(word) or _others(schema)
        yield from _alternatives(inner, known) if inner else ()
    else:
        yield from (one for one in _each(schema, known) if kind == "each" or word in one.get("properties", {}))


def _each(schema: Schema, known: Mapping[str, Schema]) -> Iterator[dict[str, Any]]:
    """The members of a list or mapping."""
    for member in (*filter(None, (schema.get("items"), _others(schema))), *schema.get("prefixItems", ())):
        yield from _alternatives(member, known)


def _others(schema: Schema) -> Schema | None:
    """What a mapping holds under keys that are not known; False is there where all are."""
    return schema.get("additionalProperties") or None


def _nearest(step: Step, here: list[dict[str, Any]], known: Mapping[str, Schema]) -> str:
    holders = [inner for one in here for inner in _each(one, known)] if step[0] == "those" else here
    names = [name for one in holders for name in one.get("properties", {})]
    if not names:
        return f"{' or '.join(sorted({one['type'] for one in here}))} stands before {step[1] or '[*]'}"
    return f"{meant(step[1], names)}there are {', '.join(names)}"
