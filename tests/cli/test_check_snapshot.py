"""check --snapshot and --against: a node is as its own snapshot says, and what differs is found, and nothing else."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import fields
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import check_ids
from gpunode.checks.expect.snapshot import snapshot
from gpunode.checks.rules.judged import EXPECTATIONS
from gpunode.checks.rules.patterns import first_match
from gpunode.cli.app import main
from gpunode.cli.options.rules import _compared
from gpunode.errors import UsageError
from gpunode.model.spec import Expectation
from gpunode.specfile import KEYS, LONGEST, expectation_text, parse_expectation
from tests.checks import expectations
from tests.checks import hosts as h

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"
HEAD = "gpunode_expectation: 1\n"


def taken(slug: str, path: Path) -> str:
    main(["check", "--recorded", str(HOSTS / slug), "--snapshot", str(path)])
    return path.read_text()


@pytest.mark.parametrize(
    "slug", ["debian12-ready", "ubuntu2404-mig-a100", "ubuntu2404-lost-h100", "rocky10-b200", "debian12-no-gpu"]
)
def test_a_node_is_as_its_own_snapshot_says(slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = taken(slug, tmp_path / "golden.yaml")
    assert "expect:" in text
    capsys.readouterr()
    assert main(["check", "--recorded", str(HOSTS / slug), "--against", str(tmp_path / "golden.yaml"), "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["hosts"][0]["checks"]
    passed = {one["id"] for one in checks if one["outcome"] == "pass"}
    assert passed
    assert all(id.startswith("expect.") or id == "pci.expected-count" for id in passed)
    assert not [one["id"] for one in checks if one["outcome"] == "finding"]


def test_all_that_can_be_expected_is_in_a_snapshot_of_a_whole_node() -> None:
    found, unknown = snapshot(h.READY, load_catalog())
    assert unknown == {}
    assert {f"expect.{key}" for key in found} == {key for key in KEYS if key.startswith("expect.")}
    text, odd = expectation_text(found, "2026-11-23")
    assert odd == ()
    read = parse_expectation(text)
    assert read.model == expectations.EXPECTED.model
    assert (read.mig, read.numa, read.nics) == (
        expectations.EXPECTED.mig, expectations.EXPECTED.numa, expectations.EXPECTED.nics,
    )  # fmt: skip


def test_what_differs_is_found_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken("debian12-ready", tmp_path / "golden.yaml")
    capsys.readouterr()
    other = str(HOSTS / "rocky9-reset-required-a100")
    assert main(["check", "--recorded", other, "--against", str(tmp_path / "golden.yaml")]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "expect.model GPU model: " in text or "expect.model" in text
    assert "health.recovery-action" not in text
    assert "rt.docker-file" not in text


def test_a_snapshot_names_no_node_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    for slug in ("ubuntu2404-lost-h100", "debian12-ready", "rocky9-reset-required-a100"):
        text = taken(slug, path)
        recording = (HOSTS / slug / "facts.txt").read_text(errors="replace")
        hostname = next(line[1:] for line in recording.splitlines() if line.startswith("|"))
        for name in (slug, "GPU-", "MIG-", "0000:"):
            assert name not in text
        assert hostname not in text or len(hostname) < 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_value_of_an_odd_form_is_left_out_and_told() -> None:
    text, odd = expectation_text({"kernel": "6.1\nexpect: {driver: 1}", "gpus": "8", "os": "#"}, "2026-11-23")
    assert odd == ("kernel", "os")
    assert parse_expectation(text).gpus == 8


def test_every_model_of_the_catalog_can_be_expected() -> None:
    names = {model.name for model in load_catalog().models.values()}
    odd = [name for name in sorted(names) if expectation_text({"model": name}, "")[1]]
    assert odd == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "gpunode_expectation is not there"),
        ("expect: {gpus: 8}\n", "gpunode_expectation is not there"),
        (HEAD, "it expects nothing"),
        (f"{HEAD}expect: {{}}\n", "it expects nothing"),
        (f"{HEAD}expect:\n", "expect is not a key of a snapshot"),
        ("gpunode_expectation: 2\nexpect: {gpus: 8}\n", "'2' is not 1"),
        (f"{HEAD}expect: {{gpu: 8}}\n", "expect.gpu is not a key of a snapshot; did you mean expect.gpus?"),
        (f"{HEAD}driver: 580\nexpect: {{gpus: 8}}\n", "driver is not a key of a snapshot"),
        (f"{HEAD}expect: {{gpus: 8, gpus: 4}}\n", "expect.gpus is there twice"),
        (f"{HEAD}expect: {{gpus: many}}\n", "is not a count"),
        (f"{HEAD}expect: {{gpus: {{a: b}}}}\n", "one value is wanted here, not a mapping"),
        (f"{HEAD}expect: &a {{gpus: 8}}\nx: *a\n", "an alias"),
        (f"{HEAD}expect: !!python/object:os.system {{gpus: 8}}\nx: [\n", "line"),
        ("- gpus\n", "is not a mapping"),
        (f"{HEAD}expect: {'[' * 200}\n", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_snapshot_is_refused_by_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_expectation(text, "golden.yaml")
    assert said in f"{caught.value.problem}\n{caught.value.evidence}"


def test_a_file_that_is_too_long_or_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "golden.yaml"
    argv = ["check", "--recorded", str(HOSTS / "debian12-ready"), "--against", str(path)]
    assert main(argv) == 2
    assert "cannot be read" in " ".join(capsys.readouterr().err.split())
    path.write_text("#" * (LONGEST + 1))
    assert main(argv) == 2
    assert f"is over {LONGEST} bytes" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--snapshot", "a", "--against", "b"], "--snapshot and --against exclude each other"),
        (["--snapshot", "a", "--inject", "xid=79,gpu=0"], "--snapshot and --inject exclude each other"),
        (["--snapshot", "a", "--npd"], "exclude each other"),
        (["--snapshot", "no/directory/a"], "--snapshot no/directory/a cannot be written"),
        (["--against", "b", "--expect", "gpus=8"], "--expect and --against exclude each other"),
        (["--against", "b", "--expect-gpus", "8"], "--expect-gpus and --against exclude each other"),
        (["--against", "b", "--profile", "hgx"], "--profile and --against exclude each other"),
        (["--list", "--against", "b"], "--against is for a check of hosts"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    host = [] if "--list" in words else ["--recorded", str(HOSTS / "debian12-ready")]
    assert main(["check", *host, *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert os.listdir(tmp_path) == []


def test_the_specs_own_expectation_is_no_second_opinion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text("expect: {gpus: 8}\n")
    host = str(HOSTS / "debian12-ready")
    assert main(["check", "--recorded", host, "--spec", str(tmp_path / "spec.yaml"), "--against", "x"]) == 2
    assert "expect of the spec and --against exclude each other" in " ".join(capsys.readouterr().err.split())


GOLDEN = "gpunode_expectation: 1\nexpect: {driver: '595', gpus: 1}\n"
CHECKED = "what is expected is checked by expect.driver, pci.expected-count"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "golden.yaml", "--only", "drv"], f"--only drv leaves nothing to compare evidence {CHECKED}"),
        (["--against", "golden.yaml", "--only", "expect.kernel"], f"nothing to compare evidence {CHECKED}"),
        (
            ["--against", "golden.yaml", "--skip", "expect,pci"],
            f"--skip expect,pci leaves nothing to compare evidence {CHECKED}",
        ),
        (["--only", "expect"], "--only expect leaves nothing to compare evidence nothing is expected"),
        (["--only", "expect.kernel", "--expect", "driver=595"], "what is expected is checked by expect.driver"),
        (["--fix", "--only", "expect.*"], "--only expect.* leaves nothing to compare"),
    ],
)
def test_where_nothing_would_be_compared_nothing_is_as_expected(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("golden.yaml").write_text(GOLDEN)
    assert main(["check", "--recorded", str(HOSTS / "debian12-ready"), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--against", "golden.yaml", "--only", "pci"],
        ["--against", "golden.yaml", "--skip", "pci"],
        ["--only", "expect,drv"],
        ["--only", "expect.default-runtime", "--expect", "default_runtime=docker=nvidia"],
    ],
    ids=" ".join,
)
def test_where_something_is_compared_or_asked_besides_it_is_checked(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("golden.yaml").write_text(GOLDEN)
    main(["check", "--recorded", str(HOSTS / "debian12-ready"), *words, "--json"])
    checks = json.loads(capsys.readouterr().out)["hosts"][0]["checks"]
    assert [one for one in checks if one["outcome"] in ("pass", "finding")]


def test_each_expectation_has_the_check_that_compares_it() -> None:
    compared = _compared(expectations.EXPECTED)
    assert compared == {id for id in check_ids() if first_match(id, EXPECTATIONS)}
    assert len(compared) == len(fields(Expectation))


def test_what_is_not_in_a_snapshot_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken("debian12-no-gpu", tmp_path / "golden.yaml")
    said = " ".join(capsys.readouterr().err.split())
    assert f"expectations written to {tmp_path}/golden.yaml" in said
    assert "not in it: driver: there is none" in said
    assert "not in it: cuda: " in said
