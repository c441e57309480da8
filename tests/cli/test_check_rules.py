"""--only, --skip, --profile and the rules of a spec on the command line: every format tells the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from gpunode.cli.app import main
from gpunode.errors import UsageError
from gpunode.specfile import parse_file, parse_spec

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"
HOST = str(HOSTS / "rocky9-reset-required-a100")
ID = "health.recovery-action"
YEARS = "9999-12-31"
ACCEPTED = f"acknowledge:\n  - {{id: {ID}, reason: the window is on Sunday, expires: {YEARS}}}\n"


def check(tmp_path: Path, spec: str, *words: str, host: str = HOST) -> int:
    (tmp_path / "spec.yaml").write_text(spec)
    only = ("--only", "health") if host == HOST else ()  # it has other findings as well
    return main(["check", "--recorded", host, "--spec", str(tmp_path / "spec.yaml"), *only, *words])


def row(capsys: pytest.CaptureFixture[str], id: str = ID) -> dict[str, Any]:
    host = json.loads(capsys.readouterr().out)["hosts"][0]
    found: dict[str, Any] = next(one for one in host["checks"] if one["id"] == id)
    return found


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("severity: {os.swpa: error}\n", "no check is called 'os.swpa' evidence did you mean os.swap?"),
        ("severity: {os.swap: eror}\n", "severity of os.swap: 'eror' is not a choice; did you mean error?"),
        ("severity: {os.swap: off}\n", "acknowledge accepts a finding, --skip leaves a check out"),
        ("severity: [os.swap]\n", "a mapping is wanted here"),
        ("severity: {os.swap: error, os.swap: warning}\n", "os.swap is there twice"),
        ("profile: hxg\n", "did you mean hgx?"),
        ("profile: [hgx]\n", "the name of a profile is wanted here"),
        ("acknowledge: {id: os.swap}\n", "a list is wanted here"),
        ("acknowledge: [{id: os.swap, reason: x}]\n", "expires must be there"),
        ("acknowledge: [{id: os.swap, expires: 2026-12-31}]\n", "reason must be there"),
        ("acknowledge: [{id: os.swap, reason: ' ', expires: 2026-12-31}]\n", "reason must be there"),
        ("acknowledge: [{id: os.swap, reason: x, expires: tomorrow}]\n", "it is a date such as 2026-12-31"),
        ("acknowledge: [{id: os.swap, reason: x, expires: 2026-02-30}]\n", "is not a day"),
        ("acknowledge: [{id: os.swap, reason: x, expires: 2026-12-31, until: x}]\n", "'until' is not a key of it"),
        ("acknowledge: [{id: os.swpa, reason: x, expires: 2026-12-31}]\n", "did you mean os.swap?"),
        ("acknowledge: [{id: os.swap, reason: [x], expires: 2026-12-31}]\n", "is not KEY: VALUE"),
        (f"severity: {{{', '.join(f'a.b{n}: error' for n in range(201))}}}\n", "at most 200"),
        ("profil: hgx\n", "did you mean profile?"),
    ],
)
def test_a_fault_of_the_rules_is_told_and_nothing_is_checked(
    spec: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path, spec) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())


def test_the_rules_of_a_file_change_nothing_of_what_is_wanted() -> None:
    text = f"driver: 580\nprofile: hgx\nseverity: {{os.swap: error}}\n{ACCEPTED}"
    file = parse_file(text)
    assert file.spec == parse_spec("driver: 580\n")
    assert (file.rules.profile, file.rules.severity) == ("hgx", (("os.swap", "error"),))
    assert [str(one) for one in file.rules.acknowledge] == [ID]


def test_faults_of_rules_and_of_wishes_are_told_together() -> None:
    with pytest.raises(UsageError, match="2 faults"):
        parse_spec("driver: 5x\nseverity: {os.swap: off}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "helth"], "did you mean health?"),
        (["--skip", "os.swpa"], "did you mean os.swap?"),
        (["--only", ""], "no check or group is called that"),
        (["--profile", "dokcer"], "did you mean docker?"),
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--recorded", HOST, *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "mig", "--skip", "mig"], "--only mig --skip mig leaves nothing to check"),
        (["--only", "drv.taint", "--skip", "drv"], "--only drv.taint --skip drv leaves nothing to check"),
        (["--only", "expect", "--skip", "*"], "remedy leave one of them out"),
        (["--skip", "*"], "--skip * leaves nothing to check"),
        (["--fix", "--only", "mig", "--skip", "mig"], "leaves nothing to check"),
    ],
)
def test_where_no_check_is_left_nothing_is_well(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--recorded", HOST, *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_only_and_skip_decide_what_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--recorded", HOST, "--only", "drv,pci.*"]) == 0
    assert "left out" in " ".join(capsys.readouterr().out.split())  # where a line ends depends on how long it took
    assert main(["check", "--recorded", HOST, "--only", "health", "--json"]) == 1
    assert row(capsys, "drv.taint") == {
        "id": "drv.taint", "severity": "warning", "outcome": "not-applicable", "reason": "--only health",
        "left_out": True, "foreign": None,
    }  # fmt: skip


def test_an_accepted_finding_is_told_in_every_format_and_counts_in_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path, "") == 1
    capsys.readouterr()
    assert check(tmp_path, ACCEPTED) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "FAIL" not in text
    assert f"(acknowledged until {YEARS}: the window is on Sunday)" in text
    assert "1 acknowledged" in text
    assert check(tmp_path, ACCEPTED, "--json") == 0
    found = row(capsys)
    assert found["outcome"] == "finding"
    assert found["acknowledged"] == {"reason": "the window is on Sunday", "expires": YEARS, "ended": False}
    assert check(tmp_path, ACCEPTED, "--format", "prometheus") == 0
    metrics = capsys.readouterr().out
    assert f'gpunode_check_status{{id="{ID}",host="rocky9-reset-required-a100"}} -2' in metrics
    assert 'outcome="acknowledged"} 1' in metrics
    assert check(tmp_path, ACCEPTED, "--format", "junit", "--strict") == 0
    case = next(one for one in fromstring(capsys.readouterr().out).iter("testcase") if one.get("name") == ID)
    assert [(child.tag, "the window is on Sunday" in child.get("message", "")) for child in case] == [("skipped", True)]
    assert check(tmp_path, ACCEPTED, "--format", "nvsentinel") == 0
    events = json.loads(capsys.readouterr().out)["events"]
    event = next(one for one in events if one["checkName"] == ID)
    assert (event["isFatal"], event["isHealthy"], event["recommendedAction"]) == (False, False, "NONE")
    for flag in ("--npd", "--nhc"):
        assert check(tmp_path, ACCEPTED, flag) == 0
        assert ID not in capsys.readouterr().out


def test_an_acknowledgement_that_ended_counts_again_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path, ACCEPTED.replace(YEARS, "2026-01-31")) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert f"FAIL {ID}" in text
    assert "the acknowledgement ended on 2026-01-31: the window is on Sunday" in text
    assert check(tmp_path, ACCEPTED.replace(YEARS, "2026-01-31"), "--nhc") == 1


def test_an_acknowledgement_that_matches_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, ACCEPTED, host=str(HOSTS / "debian12-ready")) == 0
    assert f"note the acknowledgement of {ID} matches no finding" in " ".join(capsys.readouterr().out.split())
    assert check(tmp_path, ACCEPTED, "--json", host=str(HOSTS / "debian12-ready")) == 0
    assert json.loads(capsys.readouterr().out)["hosts"][0]["idle_acknowledgements"][0].startswith(f"{ID}: ")


def test_an_error_is_never_lowered_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lowered = f"severity: {{{ID}: warning}}\n"
    assert check(tmp_path, lowered) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"WARN {ID}" in text
    assert "severity warning, as the spec says; error by itself" in text
    assert check(tmp_path, lowered, "--strict") == 9
    capsys.readouterr()
    assert check(tmp_path, lowered, "--json") == 0
    found = row(capsys)
    assert (found["severity"], found["weighed"]) == ("warning", {"before": "error", "by": "the spec", "reason": ""})
    assert check(tmp_path, lowered, "--format", "junit") == 0
    assert "severity: warning, as the spec says; error by itself" in capsys.readouterr().out


def test_the_profile_is_named_with_who_chose_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spec, words, name, why in (
        ("", (), "docker", "no kubelet"),
        ("profile: hgx\n", (), "hgx", "the spec"),
        ("profile: hgx\n", ("--profile", "image"), "image", "--profile"),
        ("profile: hgx\n", ("--profile", "auto"), "docker", "no kubelet"),
    ):
        check(tmp_path, spec, *words, "--json", host=str(HOSTS / "debian12-ready"))
        profile = json.loads(capsys.readouterr().out)["hosts"][0]["profile"]
        assert profile["name"] == name
        assert profile["why"].startswith(why)
        check(tmp_path, spec, *words, host=str(HOSTS / "debian12-ready"))
        assert f"profile {name} ·" in " ".join(capsys.readouterr().out.split())


def test_a_unit_repeats_the_rules_that_were_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--unit", "service", "--skip", "os", "--profile", "hgx", "--expect", "gpus=8"]) == 0
    assert '"--expect" "gpus=8" "--skip" "os" "--profile" "hgx"' in capsys.readouterr().out
