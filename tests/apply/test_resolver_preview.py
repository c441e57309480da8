"""The resolver is asked read-only, where its answer would be about this plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.resolver_preview import with_answers
from gpunode.model.action import PutFile, Run
from gpunode.model.plan import Answer, Plan, Step
from gpunode.model.spec import Spec
from gpunode.render.plan_text import plan_text
from tests.apply.machine import Machine

ASK = Run(
    ("sh", "-s"),
    env=(("LANG", "C"),),
    stdin='echo "install a 1"; echo "remove b $LANG"',
    read_only=True,
    record_output=True,
)
FAILS = Run(("sh", "-s"), stdin="echo no such package >&2; exit 100", read_only=True, record_output=True)
REFRESH = Run(("apt-get", "update"))
INSTALL = Run(("apt-get", "install", "a"), packages=("a",))
ANSWER = (Answer("toolkit.install", ("install a 1", "remove b C")),)


ANSWERED_432M = Answer("toolkit.install", ("install a 1",), 432013312)


def plan(*actions: Run | PutFile, repository: bool = False) -> Plan:
    steps = (
        Step("first", "before", "", (), changes_repositories=repository),
        Step("toolkit.install", "install a", "", actions),
    )
    return Plan("testhost", Spec(), "now", steps=steps)


@pytest.mark.parametrize(
    ("made", "answers"),
    [
        (plan(ASK, INSTALL), ANSWER),
        (plan(REFRESH, ASK, INSTALL), ANSWER),
        (plan(ASK, INSTALL, repository=True), ()),
        (plan(PutFile("/etc/apt/preferences.d/x", "pin"), ASK), ()),
        (plan(Run(("apt-get", "install", "pin"), packages=("pin",)), ASK), ()),
        (plan(INSTALL), ()),
        (plan(FAILS, INSTALL), ()),
    ],
    ids=[
        "asked",
        "by today's index",
        "not before a repository is there",
        "not before a pin is written",
        "not before a pinning package is in",
        "nothing to ask",
        "a resolver that fails is asked again by setup",
    ],
)
def test_what_is_asked(tmp_path: Path, made: Plan, answers: tuple[Answer, ...]) -> None:
    machine = Machine(tmp_path)
    assert with_answers(made, machine).answers == answers
    assert not any("apt-get" in script for script in machine.scripts)


def test_what_is_more_than_an_install_is_named(tmp_path: Path) -> None:
    shown = plan_text(with_answers(plan(ASK, INSTALL), Machine(tmp_path)))
    assert "the resolver would install 1, remove 1 (remove b C)" in shown


@pytest.mark.parametrize(
    ("says", "answer", "total"),
    [
        ("echo 'install a 1'; echo 'download 432013312'", ANSWERED_432M, "2 steps · download 412 MiB · no engine"),
        ("echo 'install a 1'; echo 'download 0'", Answer("toolkit.install", ("install a 1",), 0), "download 0 bytes"),
        ("echo 'install a 1'", Answer("toolkit.install", ("install a 1",)), "2 steps · no engine"),
        ("echo 'download 1e9'", Answer("toolkit.install", ("download 1e9",)), "2 steps · no engine"),
    ],
    ids=["a size", "all is there already", "a manager that says no size", "no number"],
)
def test_the_total_has_the_size_of_the_download_where_the_resolver_says_it(
    tmp_path: Path, says: str, answer: Answer, total: str
) -> None:
    asked = with_answers(plan(replace(ASK, stdin=says), INSTALL), Machine(tmp_path))
    assert asked.answers == (answer,)
    assert total in plan_text(asked).splitlines()[-1]
