"""docs/reference/json.md is generated, and what gpunode prints is as it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode, UsageError
from gpunode.model.action import PutFile, Reboot, RemoveFile, Run
from gpunode.model.plan import Answer, Kept, Plan, Undoing
from gpunode.model.report import Event, EventKind, HostOutcome
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.encode import dumps
from gpunode.render.json_page import json_page
from gpunode.render.json_schema import json_schema
from gpunode.render.machine import PLAN_SCHEMA, RESULTS, error_json, event_json, host_line, plan_to_json
from tests.recorded.hosts import RECIPES
from tests.render.published import PAGE, PUBLISHED, ROOT, wrong
from tests.render.values import CHECK, PLAN

HOSTS = sorted(path.name for path in (ROOT / "examples" / "hosts").iterdir() if (path / "facts.txt").is_file())
OPTIONS = {recipe.slug: recipe.options for recipe in RECIPES}


def test_the_page_is_what_the_dataclasses_make() -> None:
    assert json_page() == PAGE, "gpunode catalog schema > docs/reference/json.md"


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_the_command_prints_the_schema_of_the_page(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "schema", "--format", form]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out) == json_schema() == PUBLISHED


@pytest.mark.parametrize("slug", HOSTS)
def test_what_is_printed_and_saved_of_a_recorded_host_is_as_published(
    slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded, saved = ["--recorded", str(ROOT / "examples" / "hosts" / slug)], tmp_path / "plan.json"
    for verb, options in (("detect", ()), ("plan", (*OPTIONS.get(slug, ()), "--save", str(saved))), ("check", ())):
        main([verb, *recorded, *options, "--json"])
        out = capsys.readouterr().out
        assert wrong(out, f"{verb}-result") == []
        if verb == "plan" and "plan" in json.loads(out)["hosts"][0]:
            assert wrong(saved.read_text(encoding="utf-8"), "saved-plan") == []


@pytest.mark.parametrize("verb", ["detect", "plan", "check", "setup"])
def test_a_line_is_as_published(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, "--recorded", str(ROOT / "examples" / "hosts" / "debian12-l4"), "--format", "jsonl"])
    assert wrong(capsys.readouterr().out, f"{verb}-line") == []


def test_every_kind_of_action_and_an_undo_are_as_published() -> None:
    actions = (Run(("x",), retry=(1.5,), remedies=((1, "a"),)), PutFile("/a", "b", validate=Run(("c",))))
    steps = (replace(PLAN.steps[0], actions=(*actions, RemoveFile("/a"), Reboot())),)
    undo = Undoing(("r1",), left=(Kept("a", "b"),))
    whole = Plan("h", Spec(), "", steps=steps, undo=undo, answers=(Answer("a", ("install b 1",)),))
    assert wrong(host_line("undo", HostOutcome("h", ExitCode.DONE, plan=whole)), "undo-line") == []
    assert wrong(plan_to_json(whole), "saved-plan") == []


def test_a_host_without_an_answer_and_an_error_are_as_published() -> None:
    lost = HostOutcome(
        "gpu05", ExitCode.UNREACHABLE, problem="connection refused", remedy=Remedy(RepairAction.NONE, "start sshd")
    )
    for verb in RESULTS:
        assert wrong(host_line(verb, lost), f"{verb}-line") == []
    assert wrong(error_json(UsageError("a", evidence="b", remedy="c")), "error") == []


def test_a_remedy_is_an_action_words_and_a_text() -> None:
    found = json.loads(host_line("check", HostOutcome("h", ExitCode.FAILED, check=CHECK)))["checks"]
    assert found[-1]["remedy"] == {"action": "configure", "command": ["gpunode", "setup"], "text": "gpunode setup"}
    assert json.loads(error_json(UsageError("a")))["remedy"] == {"action": "none", "command": [], "text": ""}


def test_every_action_is_on_the_page() -> None:
    assert [action.value for action in RepairAction if f"\n  - `{action.value}`: " not in PAGE] == []


def changed(verb: str, outcome: HostOutcome, **keys: Any) -> str:
    return json.dumps(json.loads(host_line(verb, outcome)) | keys)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (changed("plan", HostOutcome("h", ExitCode.DONE, plan=PLAN), more=1), "plan-line"),
        (changed("plan", HostOutcome("h", ExitCode.DONE, plan=PLAN), plan={}), "plan-line"),
        (changed("plan", HostOutcome("h", ExitCode.DONE, plan=PLAN), code=99), "plan-line"),
        (changed("plan", HostOutcome("h", ExitCode.DONE, plan=PLAN), target=True), "plan-line"),
        (changed("check", HostOutcome("h", ExitCode.DONE, check=CHECK), checks=[{"id": "a"}]), "check-line"),
        (changed("check", HostOutcome("h", ExitCode.DONE, check=CHECK)), "plan-line"),
        (plan_to_json(PLAN).replace('"expect_sha256"', '"expect"'), "saved-plan"),
        (dumps({"schema": PLAN_SCHEMA, "plan": PLAN}), "saved-plan"),
        (event_json(Event(EventKind.NOTE, "h", "a"), at="now").replace('"note"', '"news"'), "event"),
    ],
    ids=[
        "a key more",
        "keys less",
        "no exit code",
        "a wrong type",
        "half a check",
        "another verb's",
        "a saved plan without a file's hash",
        "a plan as it is printed for a saved one",
        "an unknown kind of event",
    ],
)
def test_what_is_not_as_published_is_found(text: str, name: str) -> None:
    assert wrong(text, name)
