"""A YAML file as keys with their lines, before anything is checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_file, read_yaml
from gpunode.values import dataclass

if TYPE_CHECKING:
    import yaml

LONGEST = 256 * 1024  # bytes; a spec is a page of text, and YAML of any size can be made slow to read


@dataclass(frozen=True)
class Entry:
    """One `key: value` of the file as text, before it is checked."""

    line: int
    key: str
    text: str | None  # None: no value
    shape: Literal["scalar", "list", "mapping"]
    node: object = None  # its value as YAML has it


def text_of(path: Path, what: str, flag: str) -> str:
    try:
        raw = read_file(path, LONGEST)
    except OSError as error:
        raise UsageError(
            f"the {what} {path} cannot be read", evidence=str(error.strerror), remedy=f"name a YAML file with {flag}"
        ) from error
    if len(raw) > LONGEST:
        raise UsageError(f"the {what} {path} is over {LONGEST} bytes", remedy=f"name a YAML file with {flag}")
    return raw.decode("utf-8", "surrogateescape")


def root_of(text: str, name: str) -> yaml.MappingNode | None:
    """The file's mapping; None for an empty file. Scalars keep their spelling: to YAML 580.10 is the number 580.1."""
    import yaml

    try:
        root = read_yaml(text)
    except NotRead as fault:
        raise UsageError(
            f"{name} is not YAML",
            evidence=f"line {fault.line}, column {fault.column}: {fault.what}",
            remedy=f"correct {name}; nothing was touched",
        ) from fault
    if root is None:
        return None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(
            f"{name} is not a mapping", evidence="a spec is lines of `key: value`", remedy="see examples/specs/"
        )
    return root


def pairs(mapping: object, nested: Collection[str], prefix: str = "") -> Iterator[Entry]:
    """Its keys in their order. Below those of `nested` are keys as well: "expect.gpus"."""
    import yaml

    assert isinstance(mapping, yaml.MappingNode)
    for key, value in mapping.value:
        line = key.start_mark.line + 1
        name = prefix + (key.value if isinstance(key, yaml.ScalarNode) else "?")
        if isinstance(value, yaml.MappingNode) and not prefix and name in nested:
            yield from pairs(value, nested, f"{name}.")
        elif isinstance(value, yaml.SequenceNode):
            items = [v.value if isinstance(v, yaml.ScalarNode) else "?" for v in value.value]
            yield Entry(line, name, ",".join(items), "list", value)
        elif isinstance(value, yaml.ScalarNode):
            null = value.tag == "tag:yaml.org,2002:null"
            yield Entry(line, name, None if null else str(value.value), "scalar", value)
        else:
            yield Entry(line, name, None, "mapping", value)


def texts_of(node: object, form: str) -> dict[str, str]:
    """A mapping of plain values. Raises UsageError for anything else, and for a key that stands twice."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"a mapping is wanted here: {form}")
    texts: dict[str, str] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
            raise UsageError(f"line {key.start_mark.line + 1} is not KEY: VALUE; wanted is {form}")
        if key.value in texts:
            raise UsageError(f"{key.value[:80]} is there twice")
        texts[key.value] = value.value
    return texts
