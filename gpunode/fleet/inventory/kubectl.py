"""Names of nodes in what `kubectl get nodes` prints: what is dialled is the name, not an address."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_json

LISTS = ("List", "NodeList")


def names_in_table(text: str) -> Iterator[str]:
    """The first column of the table, with or without -o wide; nodes that are not ready are hosts as well."""
    for line in text.splitlines()[1:]:
        if line.strip():
            yield line.split()[0]


def names_in_json(text: str) -> Iterator[str]:
    """`-o json`, of all nodes or of one. Raises UsageError for a list of something else."""
    for place, item in enumerate(_items(text), 1):
        metadata = item.get("metadata") if isinstance(item, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        kind = item.get("kind", "Node") if isinstance(item, dict) else None
        if kind != "Node" or not isinstance(name, str):
            raise UsageError(
                f"what stands at place {place} of this JSON is no node of Kubernetes",
                remedy="give it what kubectl get nodes -o json prints, or -o name",
            )
        yield name


def _items(text: str) -> list[object]:
    try:
        data = read_json(text)
    except NotRead as fault:
        raise UsageError(
            "this is not JSON", evidence=str(fault), remedy="kubectl get nodes -o name is enough"
        ) from fault
    items = data.get("items") if isinstance(data, dict) and data.get("kind") in LISTS else [data]
    return items if isinstance(items, list) else []
