"""A path into the published facts: what it finds, what it does not know, and what is refused when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from gpunode.errors import UsageError
from gpunode.render.json_schema import json_schema
from gpunode.site_checks.facts_path import MOST_FOUND, FactsPath, Found

FACTS: dict[str, Any] = {
    "hostname": "gpu07",
    "kernel": {"release": "6.8.0-52-generic", "modules": ["nvidia", "nvidia_uvm"]},
    "driver": {"smi": {"gpus": [{"uuid": "GPU-1", "persistence": True}, {"uuid": None, "persistence": False}]}},
    "system": None,
    "services": {"docker.service": {"active": "active"}},
    "pci": [],
}
SCHEMA = json_schema()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("hostname", [("hostname", "gpu07")]),
        ("kernel.modules[*]", [("kernel.modules[0]", "nvidia"), ("kernel.modules[1]", "nvidia_uvm")]),
        ("driver.smi.gpus[*].uuid", [("driver.smi.gpus[0].uuid", "GPU-1"), ("driver.smi.gpus[1].uuid", None)]),
        ("driver.smi.gpus[persistence=true].uuid", [("driver.smi.gpus[0].uuid", "GPU-1")]),
        ("driver.smi.gpus[uuid=GPU-1].persistence", [
            ("driver.smi.gpus[0].persistence", True), ("driver.smi.gpus[1].uuid", None)]),
        ('services["docker.service"].active', [('services["docker.service"].active', "active")]),
        ("services[*].active", [('services["docker.service"].active', "active")]),
        ('services["x"].active', []),
        ("system.disks[*].size_bytes", [("system", None)]),
        ("pci[*].device", []),
    ],
    ids=[
        "a key", "each of a list", "null is not known", "those that have a text", "whose text is not known",
        "a quoted key",
        "each of a mapping", "a key that is not there", "below something that is not known", "an empty list",
    ],
)  # fmt: skip
def test_what_a_path_finds(path: str, found: list[tuple[str, Any]]) -> None:
    assert list(FactsPath.parse(path).look(FACTS)) == [Found(*one) for one in found]


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("hostname", {"string"}),
        ("driver.smi.gpus[*].memory_total_bytes", {"integer"}),
        ("driver.smi.gpus[*].health.power.limit", {"number"}),
        ("kernel.modules", {"array"}),
        ("gpus[*]", {"object"}),
        ("services[*].restarts", {"integer"}),
        ('services["docker.service"].active', {"string"}),
        ("driver.params.EnableGpuFirmware", {"string"}),
        ("system.disks[path=/var/lib/docker].free_bytes", {"integer"}),
        ("driver.loaded_flavour", {"string"}),
    ],
)
def test_its_type_is_that_of_the_schema(path: str, kinds: set[str]) -> None:
    assert FactsPath.parse(path).kinds(SCHEMA) == kinds


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("driver.smi.gpu[*]", "did you mean gpus?"),
        ("hostname.x", "string stands before x"),
        ("hostname[*]", "string stands before [*]"),
        ("gpus[*].memory_total_bytes", "there are address"),
        ("system.disks[pth=/]", "did you mean path?"),
    ],
)
def test_a_path_that_no_facts_have_is_refused(path: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        FactsPath.parse(path).kinds(SCHEMA)
    assert caught.value.problem == f"no facts have {path}"
    assert said in caught.value.evidence


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".a",
        "a..b",
        "a b",
        "a[",
        "a[1]",
        "a[*",
        'a["]',
        "a[x=]",
        "a.__class__()",
        "a;b",
        "a[*]b",
        "$(x)",
        "é",
        "a" * 301,
    ],
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a path"):
        FactsPath.parse(text)


def test_stars_are_bounded() -> None:
    with pytest.raises(UsageError, match="too many"):
        FactsPath.parse("a[*][*][*][*]")


def test_what_it_finds_is_bounded() -> None:
    wide = {"a": [{"b": [0] * 1000} for _ in range(1000)]}
    assert len(FactsPath.parse("a[*].b[*]").look(wide)) == MOST_FOUND
