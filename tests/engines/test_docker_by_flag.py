"""Runtimes that only a flag of dockerd names are still there after gpunode's reload, and after the one of its undo."""

from __future__ import annotations

import json

import pytest

from gpunode.engines.docker.engine import Docker
from gpunode.model.action import PutFile
from gpunode.model.spec import RuntimeSpec
from tests.engines.docker_cases import NO_DEFAULT, rewritten
from tests.engines.hosts import engine_facts

FLAG = ("--add-runtime=myrunc=/usr/sbin/runc", "-H", "fd://")


@pytest.mark.parametrize(
    ("text", "flags", "want", "runtimes"),
    [
        ("{}", FLAG, RuntimeSpec(), ["myrunc", "nvidia"]),
        (None, ("--add-runtime", "MyRunc = /x"), NO_DEFAULT, ["myrunc", "nvidia"]),
        ('{"runtimes": {"crun": {"path": "crun"}}}', FLAG, RuntimeSpec(), ["crun", "myrunc", "nvidia"]),
        ('{"runtimes": {"myrunc": {"path": "/other"}}}', FLAG, RuntimeSpec(), ["myrunc", "nvidia"]),
        ("{}", ("--add-runtime=nvidia=/x", "--add-runtime=a=/y"), RuntimeSpec(), []),
        ('{"runtimes": {}}', ("--add-runtime=nvidia=/x",), RuntimeSpec(), ["nvidia"]),
        ("{}", ("--add-runtime-like=a=/y",), RuntimeSpec(), ["nvidia"]),
    ],
    ids=[
        "a new table", "as dockerd spells it", "a table that is there", "one that both name", "no table is written",
        "a table that is empty", "another flag",
    ],
)  # fmt: skip
def test_a_table_of_runtimes_lists_those_of_the_flags(
    text: str | None, flags: tuple[str, ...], want: RuntimeSpec, runtimes: list[str]
) -> None:
    done = rewritten(text, want=want, flags=flags)
    assert sorted(json.loads(done.main.after).get("runtimes", {})) == runtimes
    again = rewritten(done.main.after, want=want, flags=flags)
    assert not again.changed


def test_the_plan_says_whose_runtime_it_adds_and_why() -> None:
    done = rewritten("{}", flags=FLAG)
    assert json.loads(done.main.after)["runtimes"]["myrunc"] == {"path": "/usr/sbin/runc"}
    assert "+ runtimes.myrunc" in done.added
    assert "myrunc: named by --add-runtime only, and a reload would drop it" in done.notes


def test_the_reload_of_an_undo_drops_none_either() -> None:
    facts = engine_facts("docker", "28.5.2", flags=FLAG)
    neutral, old = (a.text for a in Docker().undo(facts, rewritten("{}", flags=FLAG)) if isinstance(a, PutFile))
    assert json.loads(neutral) == {"default-runtime": "runc", "runtimes": {"myrunc": {"path": "/usr/sbin/runc"}}}
    assert old == "{}"
