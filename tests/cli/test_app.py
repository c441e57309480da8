"""What a person typed wrongly is one clear message and exit code 2; help is quick and has examples."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpunode.catalog.documents import document
from gpunode.cli import commands
from gpunode.cli.app import main
from gpunode.cli.verbs.catalog import TABLES

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
VERBS = ("detect", "plan", "setup", "check", "catalog")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["plan", "--driver", "5x"], "580.178.04"),
        (["plan", "--flavour", "free"], "auto, open, proprietary"),
        (["plan", "--driver-source", "web"], "auto, cuda, distro, local"),
        (["plan", "--toolkit", "new"], "1.20.0"),
        (["plan", "--toolkit-channel", "beta"], "stable, experimental"),
        (["plan", "--runtime", "lxc"], "docker, containerd"),
        (["plan", "--only", "cuda"], "the parts are driver, toolkit, runtime, kubernetes remedy"),
        (["plan", "--reboot", "always"], "never, if-needed"),
        (["plan", "--mirror", "ftp://x"], "https://"),
        (["plan", "--proxy", "proxy"], "http://"),
        (["plan", "--trust-key", "CC"], "40 hex digits"),
        (["check", "--expect-gpus", "many"], "0 to 9999"),
        (["plan", "--spec", "/nosuch/spec.yaml"], "/nosuch/spec.yaml"),
        (["check", "--format", "xml"], "text, json, jsonl"),
        (["check", "--host-key", "off"], "strict, accept-new"),
        (["check", "--ssh", "h1", "--port", "0"], "1 to 65535"),
        (["check", "--ssh", "h1", "--connect-timeout", "x"], "1 to 3600"),
        (["check", "--ssh", "h1", "--forks", "0"], "1 to 1000"),
        (["check", "--ssh", "h1", "--recorded", "x"], "exclude each other"),
        (["check", "--ssh", "h1,,h2"], "empty host name"),
        (["check", "--user", "root"], "--ssh"),
        (["check", "--become-pass-file", "/nosuch"], "/nosuch"),
        (["check", "--explain", "rt.nosuch"], "gpunode check --list"),
        (["catalog", "cars"], "gpus, architectures, nvswitches, branches"),
        (["catalog", "gpus", "--id", "xyz"], "four hex digits"),
        (["catalog"], "which table?"),
        (["catalog", "gpus", "--stale"], "--stale looks through all tables"),
        (["catalog", "--stale", "--id", "2330"], "--stale looks through all tables"),
        (["catalog", "--days", "90"], "--days is for gpunode catalog --stale"),
        (["catalog", "--stale", "--days", "-1"], "is not a number of days"),
        (["setup", "--plan", "/nosuch.json"], "cannot be read"),
        (["plan", "--nosuch"], "gpunode plan --help"),
        (["nosuch"], "nosuch"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_a_wrong_command_line_is_exit_2_and_names_what_is_allowed(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(argv)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_setup_without_a_terminal_and_without_yes_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup"]) == 2  # pytest's stdin is no terminal
    assert "--yes" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_two_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:")[2].strip().splitlines()
    assert len(examples) == 2
    assert all(line.strip().startswith(f"gpunode {verb}") for line in examples)


@pytest.mark.parametrize("host", ["debian12-l4", "el9-a10", "ubuntu2204-t4"])
def test_detect_and_plan_name_the_distribution_alike(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    heads = []
    for verb in ("detect", "plan"):
        assert main([verb, "--recorded", str(EXAMPLES / host)]) == 0
        heads.append(capsys.readouterr().out.partition(" · ")[0])
    assert heads[0] == heads[1]


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("gpunode 0.")


HEAVY = {"paramiko", "jinja2", "yaml", "rich"}
EDITORS = {"tomlkit", *(f"gpunode.editing.{name}" for name in ("diff", "toml_edit", "toml_place", "toml_scan"))}
JUDGING = {f"gpunode.{room}" for room in ("engines", "editing", "packages", "facts", "planner", "fleet", "transport")}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (["--version"], {*HEAVY, "typer", "click", "gpunode.render", "gpunode.model"}),
        (["--help"], {*HEAVY, *JUDGING, "typer", "click", "gpunode.render", "gpunode.model"}),
        (["check", "--list"], {*HEAVY, *JUDGING}),
        (["check", "--recorded", str(EXAMPLES / "debian12-ready")], {*EDITORS, "gpunode.planner"}),
    ],
    ids=["--version", "--help", "check --list", "check of a healthy host"],
)
def test_nothing_heavy_is_loaded_that_is_not_used(words: list[str], without: set[str]) -> None:
    ran = subprocess.run([sys.executable, "-X", "importtime", "-m", "gpunode", *words], capture_output=True, text=True)
    assert ran.returncode in (0, 1)  # 1: check found something
    # An import that is refused shows up by its bare name; a rich that was loaded brings its modules.
    names = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()} - {"rich"}
    loaded = {*names, *(".".join(name.split(".")[:n]) for name in names for n in (1, 2))}
    assert "gpunode.cli" in loaded
    assert sorted(loaded & without) == []


def test_a_reader_that_leaves_is_not_an_error() -> None:
    ran = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m gpunode catalog gpus | head -1"], capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""


def test_a_fault_of_ours_is_one_line_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    from gpunode.cli.errors import say_crash

    assert say_crash(ValueError("odd")) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    (log,) = (tmp_path / "gpunode" / "runs").glob("crash-*.log")
    assert str(log) in said
    assert "ValueError: odd" in log.read_text()


@pytest.mark.parametrize("table", [table for table in TABLES if table not in ("support", "schema", "checks")])
def test_every_table_of_the_catalog_shows_source_and_grade_of_its_rows(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", table]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.split()[-3:] == ["grade", "checked", "source"]
    assert rows
    assert {row[heads.index("grade") :].split()[0] for row in rows} <= {"documented", "inferred", "unverified"}


def test_stale_rows_are_one_a_line_and_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "--stale", "--days", "99999"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    assert heads.split() == ["table", "row", "why", "checked", "source"]
    assert {line[heads.index("why") :].split()[0] for line in lines} == {"unverified"}
    assert main(["catalog", "--stale", "--days", "99999", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["stale"]
    assert len(rows) == len(lines)
    assert {row["grade"] for row in rows} == {"unverified"}


@pytest.mark.parametrize(("table", "key"), [("versions", "versions"), ("repositories", "dead")])
def test_a_table_shows_every_row_of_its_file_in_its_order(
    table: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = document(f"{table}.yaml")[key]
    assert main(["catalog", table, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": "gpunode.catalog/1", table: rows}
    assert main(["catalog", table]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows)
    assert all(
        line.startswith(str(row.get("program") or row["pattern"])) for line, row in zip(lines, rows, strict=True)
    )
    assert all(line.endswith(row["source"]) for line, row in zip(lines, rows, strict=True))


def test_explain_says_what_kind_of_action_mends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "drv.dkms-next"]) == 0
    assert "Action   upgrade" in capsys.readouterr().out.splitlines()


def test_the_page_that_lists_verbs_is_the_same_without_their_options() -> None:
    """To make the options of all verbs takes longer than everything else that `gpunode --help` does."""
    pages = [
        CliRunner().invoke(commands._tree(listed=listed), ["--help"], prog_name="gpunode").output
        for listed in (False, True)
    ]
    assert pages[0] == pages[1]
    assert "k8s" in pages[1]
