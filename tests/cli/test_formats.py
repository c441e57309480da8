"""One table of formats: what is in it goes through every verb that has it, and every other pair is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpunode.cli import results
from gpunode.cli.app import main
from gpunode.cli.commands import command_tree
from gpunode.cli.options.groups import OutputOptions
from gpunode.cli.results import TABLE, formats_of
from gpunode.cli.typer_classes import _flags, _verbs
from gpunode.errors import ExitCode
from gpunode.fleet.runs.record import About, begin
from gpunode.model.report import FleetReport, HostOutcome, RunReport

HOST = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")
NODE = str(Path(HOST).parent / "ubuntu2404-node-l40s-ready")
ARGV: dict[type, list[list[str]]] = {
    results.Detected: [["detect", "--recorded", HOST]],
    results.Planned: [["plan", "--recorded", HOST]],
    results.Explained: [["plan", "--explain", "--recorded", HOST]],
    results.Checked: [["check", "--recorded", HOST]],
    results.Fixed: [["check", "--fix", "--recorded", HOST]],
    results.Locked: [["lock", "--recorded", HOST]],
    results.RunList: [["runs"]],
    results.RunShown: [["runs", "show", "last"], ["runs", "merge", "last"]],
    results.Runtimes: [["runtime", "show", "--recorded", HOST]],
    results.Labelled: [["k8s", "labels", "--recorded", HOST]],
    results.Verified: [["k8s", "verify", "--recorded", NODE]],
    results.Preflighted: [["k8s", "preflight", "--to", "1.37", "--recorded", NODE]],
    results.Configured: [["runtime", "configure", "docker", "--config", "daemon.json"]],
    results.Verdict: [["check", flag, "--recorded", HOST] for flag in ("--npd", "--nhc")],
    results.CheckList: [["check", "--list"]],
    results.CheckPage: [["check", "--explain", "drv.dkms-next"]],
    results.CatalogTable: [["catalog", table] for table in ("gpus", "mig", "versions", "repositories")],
    results.SupportPage: [["catalog", "support"]],
    results.ChecksPage: [["catalog", "checks"]],
    results.SchemaPage: [["catalog", "schema"]],
}
KINDS = {kind for _, kind in TABLE}
LINES = [pytest.param(kind, words, id=" ".join(words[:2])) for kind, rows in ARGV.items() for words in rows]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with begin(About("setup", ("h1", "h2"), "ann"), complain=print) as record:
        record.host_ends(HostOutcome("h1", ExitCode.DONE))


def test_every_result_of_the_table_is_tried_here() -> None:
    # Ended needs a host that is changed; the --format that is typed with --unit is the unit's; LabelsSet needs an API
    # server (tests/cluster/test_labels_set.py).
    assert {*ARGV, results.Ended, results.UnitFile, results.LabelsSet, results.SelfChecked} == KINDS


def _of_verbs() -> dict[str, set[type]]:
    """ "runs show" -> the results that it may end with."""
    ends: dict[str, set[type]] = {
        "setup": {results.Ended},
        "undo": {results.Ended},
        "self check": {results.SelfChecked},
    }
    for kind, rows in ARGV.items():
        for words in rows:
            verbs = words[:2] if words[0] in ("k8s", "runtime") or words[1:2] in (["show"], ["merge"]) else words[:1]
            ends.setdefault(" ".join(verbs), set()).add(kind)
    return ends


@pytest.mark.parametrize(("path", "kinds"), [pytest.param(*pair, id=pair[0]) for pair in _of_verbs().items()])
def test_help_offers_the_formats_that_its_verb_has_in_the_table(
    path: str, kinds: set[type], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path.split(), "--help"]) == 0
    offered = next(line.split()[1] for line in capsys.readouterr().out.splitlines() if "--format" in line)
    assert sorted(offered.split("|")) == sorted({name for name, kind in TABLE if kind in kinds})


def test_every_verb_that_has_formats_is_tried_here() -> None:
    having = {path.partition(" ")[2] for path, one in _verbs(command_tree()) if "--format" in _flags(one)}
    assert having == set(_of_verbs())


def test_the_page_names_the_formats_of_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
    assert all(f"{name}`" in page for name, _ in TABLE)


@pytest.mark.parametrize(("kind", "words"), LINES)
def test_a_new_format_is_printed_where_it_is_in_the_table_and_refused_elsewhere(
    kind: type, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = formats_of(kind)
    assert main([*words, "--format", "shout"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert f"its formats are {', '.join(before)} " in " ".join(err.split())
    assert not list(tmp_path.iterdir()), "what was refused wrote a file"
    monkeypatch.setitem(TABLE, ("shout", kind), lambda result, style: type(result).__name__.upper())
    assert main([*words, "--format", "shout"]) in (ExitCode.DONE, ExitCode.FAILED)
    assert capsys.readouterr().out == f"{kind.__name__.upper()}\n"
    for other in KINDS - {kind}:
        assert "shout" not in formats_of(other)


def test_setup_has_a_format_only_where_both_of_its_ends_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["setup", "--recorded", HOST, "--format", "shout"]
    monkeypatch.setitem(TABLE, ("shout", results.Planned), lambda result, style: "PLAN")
    assert main(words) == ExitCode.USAGE
    assert "its formats are text, json, jsonl " in " ".join(capsys.readouterr().err.split())
    monkeypatch.setitem(TABLE, ("shout", results.Ended), lambda result, style: "END")
    assert main(words) == ExitCode.DONE
    assert capsys.readouterr().out == "PLAN\n"
    ended = results.Ended("setup", FleetReport((HostOutcome("h1", ExitCode.DONE, run=RunReport("h1")),)))
    assert results.finish(ended, OutputOptions(format="shout")) == ExitCode.DONE
    assert capsys.readouterr().out == "END\n"


@pytest.mark.parametrize(("kind", "words"), LINES)
def test_every_format_of_every_result_has_its_renderer(
    kind: type, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for form in formats_of(kind):
        assert main([*words, "--format", form]) in (ExitCode.DONE, ExitCode.FAILED)
        out, err = capsys.readouterr()
        assert out
        assert "internal error" not in err
        if form == "json":
            json.loads(out)
        if form == "jsonl":
            assert [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    "words",
    [["plan", "--explain", "--recorded", HOST], ["catalog", "support"], ["catalog", "checks"]],
    ids=" ".join,
)
def test_a_page_for_people_is_no_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == 2
    assert "its formats are text " in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["plan", "--flavour", "opne", "--json"], 2),
        (["plan", "--json", "--nosuch"], 2),
        (["nosuch", "--format", "json"], 2),
        (["check", "--format=jsonl", "--explain", "rt.nosuch"], 2),
        (["detect", "--json", "--recorded", "/nosuch"], 2),
        (["detect", "--json", "--output", "no/directory/x", "--recorded", HOST], 2),
    ],
    ids=lambda v: " ".join(v[:3]) if isinstance(v, list) else None,
)
def test_a_failure_is_an_object_on_stdout_for_whoever_asked_for_json(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert (said["schema"], said["code"]) == ("gpunode.error/2", code)
    assert said["problem"] in " ".join(err.split())
    assert ("jsonl" in " ".join(words)) == (len(out.splitlines()) == 1)


@pytest.mark.parametrize("words", [["plan", "--nosuch"], ["catalog", "gpu", "--", "--json"]], ids=" ".join)
def test_nobody_asked_for_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == ExitCode.USAGE
    assert capsys.readouterr().out == ""


def test_a_fault_of_ours_is_json_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(result: object, style: object) -> str:
        raise ValueError("odd")

    monkeypatch.setitem(TABLE, ("json", results.SupportPage), broken)
    assert main(["catalog", "support", "--json"]) == ExitCode.FAILED
    assert "internal error (ValueError)" in json.loads(capsys.readouterr().out)["problem"]
