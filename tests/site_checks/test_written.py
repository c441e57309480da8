"""A YAML check: its verdict on facts, and what is refused when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from gpunode.errors import UsageError
from gpunode.model.report import Finding, NotApplicable, Severity
from gpunode.remedy import RepairAction
from gpunode.render.json_schema import json_schema
from gpunode.site_checks.comparisons import COMPARISONS
from gpunode.site_checks.written import WrittenCheck, parse_check

SCHEMA = json_schema()
GOOD = {
    "id": "site.x",
    "title": "x is right",
    "broken": "x is wrong",
    "path": "driver.smi.gpus[*].memory_total_bytes",
    "comparison": "at-least",
    "value": "80",
    "severity": "error",
    "remedy": "mend it",
    "action": "replace",
}
FACTS: dict[str, Any] = {
    "hostname": "gpu07",
    "packages": {"installed": {"docker-ce": {"version": "5:20.10.24~3-0~debian-bookworm"}}},
    "kernel": {"release": "5.14.0-427.13.1.el9_4.x86_64", "modules": ["nvidia", "nvidia_uvm"]},
    "driver": {
        "loaded": "610.57.04",
        "gpus": ["0000:41:00.0"],
        "smi": {
            "gpus": [
                {
                    "name": "NVIDIA H100 80GB HBM3",
                    "memory_total_bytes": 80,
                    "mig_mode": "Disabled",
                    "persistence": True,
                },
                {"name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 40, "mig_mode": None, "persistence": True},
            ]
        },
    },
    "system": {"swap": [], "disks": [], "var_read_only": None},
    "unread": {},
}
MEMORY, NAME, MIG = (f"driver.smi.gpus[*].{key}" for key in ("memory_total_bytes", "name", "mig_mode"))

KERNEL = "kernel.release"
DOCKER = 'packages.installed["docker-ce"].version'


def text_of(**keys: str | None) -> str:
    return "".join(f"{key}: {value}\n" for key, value in (GOOD | keys).items() if value is not None)


def check(**keys: str | None) -> WrittenCheck:
    return parse_check(text_of(**keys), "x.yaml", SCHEMA)


PASS, WRONG, UNKNOWN = "pass", "finding", "not-applicable"


@pytest.mark.parametrize(
    ("path", "comparison", "value", "verdict"),
    [
        (MEMORY, "at-least", "40", PASS),
        (MEMORY, "at-least", "41", WRONG),
        (MEMORY, "at-most", "79", WRONG),
        (MEMORY, "equals", "80", WRONG),
        (MEMORY, "not-equals", "10", PASS),
        (MEMORY, "one-of", "[80, 40]", PASS),
        (MEMORY, "none-of", "[80]", WRONG),
        (MEMORY, "same", None, WRONG),
        (NAME, "same", None, PASS),
        (NAME, "matches", "NVIDIA H100*", PASS),
        (NAME, "not-matches", "'*HBM[12]'", PASS),
        (NAME, "not-matches", "'*HBM?'", WRONG),
        (MIG, "equals", "Disabled", UNKNOWN),
        (MIG, "equals", "Enabled", WRONG),
        (MIG, "same", None, UNKNOWN),
        ("driver.loaded", "version-at-least", "595.91.07", PASS),
        ("driver.loaded", "version-at-least", "610.57.5", WRONG),
        ("driver.loaded", "version-at-most", "610.57", WRONG),
        (DOCKER, "version-at-least", "28.0.4", WRONG),
        (DOCKER, "version-at-least", "20.10.24", PASS),
        (DOCKER, "version-at-most", "19.03", WRONG),
        (DOCKER, "version-at-least", "'5:28.0.4'", WRONG),
        (DOCKER, "version-at-least", "'4:28.0.4'", PASS),
        ("driver.loaded", "version-at-least", "'1:1.0'", WRONG),
        ("driver.loaded", "version-at-most", "610", WRONG),
        (KERNEL, "version-at-least", "5.14.0-570.12.1", WRONG),
        (KERNEL, "version-at-least", "5.14.0-427.13", PASS),
        (KERNEL, "version-at-least", "5.14.0-427.13.1.el9_5", WRONG),
        (KERNEL, "version-at-most", "5.14.0", PASS),
        (KERNEL, "version-at-most", "5.14.0-362", WRONG),
        ("driver.smi.gpus[*].persistence", "equals", "true", PASS),
        ("driver.smi.gpus[*].persistence", "equals", "false", WRONG),
        ("kernel.modules", "contains", "nvidia_uvm", PASS),
        ("kernel.modules", "contains", "nvidia_peermem", WRONG),
        ("kernel.modules", "lacks", "nouveau", PASS),
        ("system.swap", "lacks", "/swap", PASS),
        ("driver.smi.gpus[*]", "count-is", "2", PASS),
        ("driver.smi.gpus[*]", "count-at-least", "3", WRONG),
        ("driver.smi.gpus[mig_mode=Disabled]", "count-at-most", "2", UNKNOWN),
        ("system.disks[*]", "count-is", "0", PASS),
        ("system.disks[*].free_bytes", "at-least", "1", UNKNOWN),
        ("system.var_read_only", "equals", "false", UNKNOWN),
        ("driver.gpus[*]", "same", None, UNKNOWN),
    ],
)
def test_the_verdict(path: str, comparison: str, value: str | None, verdict: str) -> None:
    outcome = check(path=f"'{path}'", comparison=comparison, value=value).judge(FACTS)
    assert {type(None): PASS, Finding: WRONG, NotApplicable: UNKNOWN}[type(outcome)] == verdict


@pytest.mark.parametrize(
    ("has", "wanted", "holds"),
    [
        ("6.8.0-35-generic", "6.8.0-51", False),
        ("6.8.0-35-generic", "6.8.0-35-generic", True),
        ("6.9.0-3", "6.8.0-51", True),
        ("6.8.0", "6.8.0-51", False),
        ("1.6.20-2", "1.6.20-2.1", False),
        ("1.17.8-rc.1", "1.17.8", False),
        ("1.17.8~rc.2-1", "1.17.8-rc.1", True),
        ("1.17.8-1", "1.17.8-rc.1", True),
    ],
)
def test_a_version_is_compared_as_far_as_the_wanted_one_goes(has: str, wanted: str, holds: bool) -> None:
    assert COMPARISONS["version-at-least"].test(has, wanted) is holds


def test_every_comparison_is_tried() -> None:
    (marks,) = (mark for mark in test_the_verdict.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {row[1] for row in marks.args[1]} == set(COMPARISONS)


@pytest.mark.parametrize(
    ("path", "comparison", "value"),
    [
        ("system.disks[*]", "count-is", "0"),
        ("system.swap", "lacks", "/swap"),
        ("system.disks[*]", "count-at-most", "3"),
    ],
)
def test_nothing_found_is_no_pass_where_something_was_not_read(path: str, comparison: str, value: str) -> None:
    made = check(path=f"'{path}'", comparison=comparison, value=value)
    assert made.judge(FACTS) is None
    outcome = made.judge(FACTS | {"unread": {"disks": "permission denied"}})
    assert isinstance(outcome, NotApplicable)
    assert outcome.reason.endswith("not all was read: disks")


def test_a_finding_has_the_words_of_the_file_and_the_values() -> None:
    words = {"broken": "'{count} of {host}: {path}'", "evidence": "'saw {values}, want {wanted}'"}
    found = check(**words).judge(FACTS)
    assert isinstance(found, Finding)
    assert found.summary == "1 of gpu07: driver.smi.gpus[*].memory_total_bytes"
    assert found.evidence == "saw driver.smi.gpus[1].memory_total_bytes = 40, want at-least 80"
    assert (found.remedy.text, found.remedy.action) == ("mend it", RepairAction.REPLACE)
    assert check().severity is Severity.ERROR


def test_a_value_of_the_host_is_no_template() -> None:
    facts = FACTS | {"hostname": "{path}{0.__class__}%s"}
    found = check(broken="'{host}'").judge(facts)
    assert isinstance(found, Finding)
    assert found.summary == "{path}{0.__class__}%s"


def test_long_values_are_cut_and_many_are_counted() -> None:
    gpus = [{"name": "x" * 5000} for _ in range(20)]
    found = check(path=NAME, comparison="equals", value="y").judge(FACTS | {"driver": {"smi": {"gpus": gpus}}})
    assert isinstance(found, Finding)
    assert found.evidence.count("…") == 4
    assert "and 16 more" in found.evidence


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"id": "rt.x"}, "x.yaml:1: id: 'rt.x' is not an id of a site's check"),
        ({"id": "site.A"}, "is not an id"),
        ({"id": "site.x.y"}, "is not an id"),
        ({"title": None}, "x.yaml:1: title is missing"),
        ({"remedy": ""}, "remedy: there is no value"),
        ({"title": "[a]"}, "title: one value is wanted here"),
        ({"title": "x" * 1001}, "it is over 1000 characters"),
        ({"serverity": "error"}, "x.yaml:10: serverity is not a key of a check; did you mean severity?"),
        ({"severity": "fatal"}, "severity: 'fatal' is not a choice; they are error, warning"),
        ({"action": "reboott"}, "did you mean reboot?"),
        ({"comparison": "atleast"}, "did you mean at-least?"),
        ({"comparison": "matches"}, "memory_total_bytes is integer, and it is for string"),
        ({"comparison": "count-is", "path": "gpus"}, "it counts what a path with [*]"),
        ({"path": "driver.smi.gpus[*].memry"}, "path: no facts have driver.smi.gpus[*].memry; "),
        ({"path": "a b"}, "'a b' is not a path"),
        ({"value": None}, "value is missing"),
        ({"value": "eighty"}, "'eighty' is not a whole number"),
        ({"value": "0x50"}, "'0x50' is not a whole number"),
        ({"value": "1e99"}, "'1e99' is not a whole number"),
        ({"value": "[80]"}, "one value is wanted here"),
        ({"comparison": "one-of"}, "a list of 1 to 100 values is wanted"),
        ({"comparison": "one-of", "value": str([1] * 101)}, "a list of 1 to 100 values is wanted"),
        ({"comparison": "same"}, "`same` needs none"),
        ({"path": MIG, "comparison": "version-at-least", "value": "new"}, "'new' is not a version"),
        ({"path": MIG, "comparison": "matches", "value": f"'{'*a' * 9}'"}, "8 times *"),
        ({"path": MIG, "comparison": "matches", "value": "a" * 201}, "at most 200 characters"),
        ({"path": "system.var_read_only", "comparison": "equals", "value": "maybe"}, "they are true, false"),
        ({"evidence": "'{values.__class__}'"}, "{values.__class__} stands for nothing"),
        ({"broken": "'{0}'"}, "{0} stands for nothing"),
        ({"broken": "'{{count}}'"}, "{ stands for nothing"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_what_is_refused(keys: dict[str, str | None], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(**keys)
    assert said in caught.value.evidence
    assert len(caught.value.evidence.splitlines()) == 1


def test_a_key_twice_and_all_faults_together() -> None:
    with pytest.raises(UsageError) as caught:
        parse_check(text_of(severity="bad", action="mend") + "id: site.y\n", "x.yaml", SCHEMA)
    places = [line.split(" ")[0] for line in caught.value.evidence.splitlines()]
    assert places == ["x.yaml:10:", "x.yaml:7:", "x.yaml:9:"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.yaml:1: a check is lines"),
        ("- id", "x.yaml:1: a check is lines"),
        ("id: 'x\n", "x.yaml:"),
        ("id: !!python/object/apply:os.system ['true']\n", "x.yaml:1: "),
        ("a: &a [x]\nb: *a\n", "an alias of a list or mapping"),
        ("a: " + "[" * 200, "nested too deeply"),
        ("id: site.x\n---\nid: site.y\n", "x.yaml:"),
    ],
    ids=["empty", "a list", "no YAML", "a tag of Python", "an alias", "deep", "two documents"],
)
def test_odd_documents_are_refused_by_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_check(text, "x.yaml", SCHEMA)
    assert said in caught.value.evidence
