"""Every field that docs/how-to/automation.md names is in the schema of the document below whose heading it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpunode.errors import ExitCode
from gpunode.render.json_schema import json_schema

from .commands import ROOT

PAGE = (ROOT / "docs" / "how-to" / "automation.md").read_text(encoding="utf-8")
SCHEMA = json_schema()
HEADING = re.compile(r"^### (gpunode\.[\w-]+/\d+)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)


def fields() -> list[tuple[str, str]]:
    """(schema, path) of each row's first cell."""
    return [
        (schema, path)
        for schema, text in HEADING.findall(PAGE)
        for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for path in re.findall(r"`([^`]+)`", row)
    ]


def below(nodes: list[Any]) -> list[Any]:
    """The same, with references followed and alternatives taken apart."""
    found = []
    for node in nodes:
        if "$ref" in node:
            found += below([SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]])
        elif "anyOf" in node:
            found += below(node["anyOf"])
        else:
            found.append(node)
    return found


def stands(schema: str, path: str) -> bool:
    nodes = [d for d in SCHEMA["$defs"].values() if d.get("properties", {}).get("schema", {}).get("const") == schema]
    for name in path.split("."):
        nodes = [
            n["properties"][name.removesuffix("[]")]
            for n in below(nodes)
            if name.removesuffix("[]") in n.get("properties", {})
        ]
        if name.endswith("[]"):
            nodes = [node["items"] for node in below(nodes) if "items" in node]
    return bool(nodes)


@pytest.mark.parametrize(("schema", "path"), fields())
def test_a_field_that_the_page_names_is_in_the_schema(schema: str, path: str) -> None:
    assert stands(schema, path)


def test_a_field_that_does_not_exist_would_be_found_out() -> None:
    assert stands("gpunode.plan-result/3", "hosts[].plan.steps[].id")
    assert not stands("gpunode.plan-result/3", "hosts[].plan.steps[].name")
    assert not stands("gpunode.plan-result/2", "hosts[].plan.steps[].id")


def test_the_page_has_each_exit_code() -> None:
    rows = re.findall(r"^\| (\d) \|", PAGE.partition("## Exit codes")[2].partition("\n## ")[0], re.MULTILINE)
    assert rows == [str(int(code)) for code in sorted(ExitCode)]


def test_the_statuses_and_outcomes_that_the_page_names_are_all_there_are() -> None:
    steps = SCHEMA["$defs"]["StepResult"]["properties"]["status"]["enum"]
    assert all(f"`{status}`" in PAGE for status in steps)
    assert all(f"`{n['properties']['outcome']['const']}`" in PAGE for n in below([SCHEMA["$defs"]["check"]]))
    assert len(SCHEMA["$defs"]["Remedy"]["properties"]["action"]["enum"]) == 11, "the page says eleven words"


def test_what_is_named_as_an_option_is_one() -> None:
    """In the table of what never happens: each option is of one of the verbs that change a host."""
    from gpunode.cli.commands import _tree

    tree: Any = _tree()
    known = {name for verb in ("setup", "undo", "check") for p in tree.commands[verb].params for name in p.opts}
    table = PAGE.partition("## What never happens")[2].partition("\n## ")[0]
    kubernetes = {"--kubeconfig", "--pod"}
    assert set(re.findall(r"(--[a-z][a-z-]+)", table)) - known - kubernetes == set()
