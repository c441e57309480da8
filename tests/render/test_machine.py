"""JSON that is loaded again is the same plan; what is no plan is refused by name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.errors import ExitCode, UsageError
from gpunode.model.action import (
    Action,
    PutFile,
    Reboot,
    RemoveFile,
    Run,
)
from gpunode.model.driver import (
    Alternative,
    BranchKind,
    BranchStatus,
    Confidence,
    DriverChoice,
    DriverOrigin,
    ForeignDriver,
    Grade,
    ModuleFlavour,
)
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.report import CheckReport, HostOutcome
from gpunode.model.spec import DriverRequest, Expectation, Flavour, RebootPolicy, RuntimeSpec, Spec, ToolkitRequest
from gpunode.model.summary import EngineVersion, GpuCount, HostSummary
from gpunode.render.machine import hosts_json, plan_from_json, plan_to_json
from tests.render.published import wrong
from tests.render.values import CHECK, FOUND, PLAN

words = st.text(max_size=12)  # with surrogates: a file that is not UTF-8
number = st.floats(0, 1e6, allow_nan=False)
runs = st.builds(
    Run,
    argv=st.lists(words, max_size=3).map(tuple),
    ok_codes=st.lists(st.integers(0, 255), max_size=3).map(tuple),
    timeout_s=number,
    env=st.lists(st.tuples(words, words), max_size=2).map(tuple),
    stdin=words,
    detach=st.booleans(),
    retry=st.lists(number, max_size=2).map(tuple),
    description=words,
)
puts = st.builds(
    PutFile,
    path=words,
    text=words,
    mode=st.integers(0, 0o777),
    expect_sha256=st.none() | words,
    validate=st.none() | runs,
)
actions: st.SearchStrategy[Action] = st.one_of(
    runs, puts, st.builds(RemoveFile, path=words, expect_sha256=st.none() | words), st.builds(Reboot, wait_s=number)
)
several = st.lists(actions, max_size=2).map(tuple)
steps = st.builds(Step, id=words, title=words, why=words, actions=several, undo=several, diff=words)
specs = st.builds(
    Spec,
    driver=st.sampled_from(["auto", "none", "580", "580.178.04"]).map(DriverRequest.parse),
    toolkit=st.sampled_from(["auto", "1.20.0"]).map(ToolkitRequest.parse),
    flavour=st.sampled_from(Flavour),
    reboot=st.sampled_from(RebootPolicy),
    runtimes=st.sampled_from([None, (), ("docker",)]),
    runtime=st.builds(RuntimeSpec, default=st.booleans(), cdi=st.booleans()),
    hold=st.booleans(),
    expect=st.builds(Expectation, gpus=st.none() | st.integers(0, 16)),
)
summaries = st.builds(
    HostSummary,
    system=words,
    kernel=words,
    gpus=st.lists(st.builds(GpuCount, model=words, count=st.integers(1, 16)), max_size=2).map(tuple),
    nvswitches=st.integers(0, 6),
    engines=st.lists(st.builds(EngineVersion, words, st.none() | words, st.none() | words), max_size=2).map(tuple),
)
flavours = st.sampled_from(get_args(ModuleFlavour))
origins = st.sampled_from(get_args(DriverOrigin))
others = st.builds(
    Alternative, words, words, words, branch=st.none() | st.integers(300, 700), flavour=st.none() | flavours
)
choices = st.builds(
    DriverChoice,
    branch=st.integers(300, 700),
    version=st.none() | words,
    flavour=flavours,
    reasons=st.lists(words, max_size=2).map(tuple),
    branch_kind=st.sampled_from(get_args(BranchKind)),
    branch_status=st.sampled_from(get_args(BranchStatus)),
    source=origins,
    kept=st.booleans(),
    foreign=st.none() | st.builds(ForeignDriver, words, words, words),
    alternatives=st.lists(others, max_size=2).map(tuple),
    confidence=st.lists(st.builds(Confidence, words, st.sampled_from(get_args(Grade)), words), max_size=2).map(tuple),
)
plans = st.builds(
    Plan,
    target=words,
    spec=specs,
    facts_sha256=words,
    about=summaries,
    driver=st.none() | choices,
    steps=st.lists(steps, max_size=2).map(tuple),
    kept=st.lists(st.builds(Kept, id=words, text=words), max_size=2).map(tuple),
    reboot=st.none() | words,
    replan_after=st.booleans(),
    hostname=words,
)


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    assert plan_from_json(plan_to_json(plan)) == plan


def test_bytes_that_are_not_utf8_survive() -> None:
    odd = replace(PLAN, steps=(Step("a", "b", "c", (PutFile("/f", b"\xff\n".decode("utf-8", "surrogateescape")),)),))
    text = plan_to_json(odd)
    text.encode("utf-8")
    assert plan_from_json(text) == odd


def test_a_proxys_password_is_not_saved() -> None:
    text = plan_to_json(replace(PLAN, spec=Spec(proxy="http://user:hunter2@proxy:3128")))
    assert "hunter2" not in text
    assert "http://***@proxy:3128" in text


def _changed(path: tuple[str | int, ...], value: object) -> str:
    document = json.loads(plan_to_json(PLAN))
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "schema is None"),
        ("[" * 100_000, "not JSON"),
        (_changed(("schema",), "gpunode.plan/9"), "gpunode.plan/9"),
        (_changed(("plan",), None), "plan: it is null"),
        (_changed(("plan", "target"), KeyError), "plan.target: it is missing"),
        (_changed(("plan", "extra"), 1), "plan.extra: no such key"),
        (_changed(("plan", "steps"), "x"), "plan.steps: it is a string, a list is wanted"),
        (_changed(("plan", "steps", 0, "actions", 0, "kind"), "eval"), "plan.steps[0].actions[0].kind: it is 'eval'"),
        (_changed(("plan", "steps", 0, "actions", 0, "argv"), [1]), "argv[0]: it is a whole number"),
        (_changed(("plan", "steps", 0, "actions", 0, "timeout_s"), True), "timeout_s: it is true or false"),
        (_changed(("plan", "spec", "driver"), "5x"), "plan.spec.driver: the forms are"),
        (_changed(("plan", "spec", "reboot"), "maybe"), "never, if-needed"),
    ],
    ids=lambda v: v[:40] if v.startswith(("plan", "schema", "not")) else "",
)
def test_what_is_no_plan_is_refused_by_place(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_from_json(text)
    assert said in caught.value.evidence


def test_a_check_result_has_schema_hosts_and_checks() -> None:
    document = json.loads(
        "".join(hosts_json("check", [HostOutcome("gpu04", ExitCode.FAILED, check=CHECK)], seconds_s=3.14159))
    )
    assert (document["schema"], document["seconds_s"]) == ("gpunode.check-result/2", 3.142)
    rows = {c["id"]: c["outcome"] for c in document["hosts"][0]["checks"]}
    assert rows == {
        "drv.loaded": "pass",
        "drv.mig": "not-applicable",
        "drv.dkms-next": "finding",
        "rt.effective-default": "finding",
    }


def test_a_pass_may_say_what_it_found() -> None:
    told = CheckReport("gpu04", {r.id: r for r in (CHECK.results["drv.loaded"], FOUND)})
    text = "".join(hosts_json("check", [HostOutcome("gpu04", ExitCode.DONE, check=told)], seconds_s=1))
    assert [row.get("evidence") for row in json.loads(text)["hosts"][0]["checks"]] == [None, "64 × performance"]
    assert (told.passed, wrong(text, "check-result")) == (2, [])


def test_facts_in_json_hold_no_file_text() -> None:
    secret = FileFacts("/etc/docker/daemon.json", text='{"auth": "hunter2"}', sha256="a")
    plain = FileFacts("/etc/docker/key.json", text='{"a": "b"}', sha256="b")
    files = {file.path: file for file in (secret, plain)}
    host = HostFacts("h", "h", OsFacts("debian", "12"), KernelFacts("6.1"), True, files=files, stream_sha256="c")
    text = "".join(hosts_json("detect", [HostOutcome("h", ExitCode.DONE, facts=host)], seconds_s=0))
    assert "hunter2" not in text
    facts = json.loads(text)["hosts"][0]["facts"]
    assert facts["files"][plain.path]["sha256"] == "b"
    assert facts["files"][secret.path]["sha256"] == hashlib.sha256(b'{"auth": "MASKED"}').hexdigest()
    assert "stream_sha256" not in facts
