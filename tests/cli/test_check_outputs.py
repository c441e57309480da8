"""What check prints for programs that are not gpunode's own readers, through the command line."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.errors import INTERRUPTED
from gpunode.cli.start.verdict_words import NO_VERDICT
from gpunode.errors import ExitCode
from gpunode.render.junit import junit_xml
from gpunode.render.prometheus import prometheus_text
from gpunode.render.verdict import UNKNOWN
from tests.render.exposition import read_metrics
from tests.render.hostile import HOSTILE, lost_outcome, odd_outcome
from tests.render.junit_rules import read_junit

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"
READY, BARE = str(HOSTS / "debian12-ready"), str(HOSTS / "debian12-l4")


@pytest.mark.parametrize(("form", "mode"), [("prometheus", 0o644), ("junit", 0o600), ("json", 0o600)])
def test_metrics_are_for_another_users_program_and_other_results_for_their_owner(
    form: str, mode: int, tmp_path: Path
) -> None:
    path = tmp_path / "gpunode.prom"
    path.write_text("old")
    path.chmod(0o640)
    assert main(["check", "--recorded", READY, "-q", "--format", form, "--output", str(path)]) == ExitCode.DONE
    assert path.stat().st_mode & 0o7777 == mode
    assert [p.name for p in tmp_path.iterdir()] == ["gpunode.prom"]


@pytest.mark.parametrize(("host", "code"), [(READY, ExitCode.DONE), (BARE, ExitCode.FAILED)], ids=["ready", "bare"])
def test_a_host_of_the_examples_in_both_formats(host: str, code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--recorded", host, "--format", "prometheus"]) == code
    samples = read_metrics(capsys.readouterr().out)
    status = {dict(labels)["id"]: value for (name, labels), value in samples.items() if name == "gpunode_check_status"}
    assert main(["check", "--recorded", host, "--format", "junit"]) == code
    root = read_junit(capsys.readouterr().out)
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert failed == {id for id, value in status.items() if value == 2}
    assert bool(failed) == (code is ExitCode.FAILED)
    assert len(status) == int(root.get("tests", "0"))


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _printed(form: str, encoding: str, monkeypatch: pytest.MonkeyPatch, kind: type[io.TextIOWrapper]) -> bytes:
    """What two hosts, whose names no locale but UTF-8 has both, are on such a stdout."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", kind(written, encoding=encoding))
    main(["check", "--recorded", ".", "--format", form])
    return written.getvalue()


@pytest.fixture
def _two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("gpu-é", "gpu-ۛ"):
        shutil.copytree(READY, name)


@pytest.mark.usefixtures("_two_hosts")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("form", ["json", "jsonl", "junit", "prometheus"])
def test_programs_get_utf_8_whatever_the_locale(form: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _printed(form, encoding, monkeypatch, io.TextIOWrapper).decode("utf-8")
    assert all(name in text for name in ("gpu-é", "gpu-ۛ"))


@pytest.mark.usefixtures("_two_hosts")
@pytest.mark.parametrize("form", ["json", "jsonl", "junit", "prometheus"])
def test_a_terminal_gets_its_own_encoding(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = _printed(form, "latin-1", monkeypatch, _Terminal)
    assert "gpu-é".encode("latin-1") in printed
    assert b"\x9b" not in printed, "the second byte of a letter, which begins a command of an 8-bit terminal"


def test_strict_makes_failures_of_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    warned = str(HOSTS / "debian12-toolkit-cve-held")
    failures = []
    for more in ([], ["--strict"]):
        main(["check", "--recorded", warned, "--format", "junit", *more])
        failures.append(int(read_junit(capsys.readouterr().out).get("failures", "0")))
    assert failures[0] < failures[1]


NO_GPUS = ("debian12-no-gpu", "debian12-docker-build-no-options", "debian12-docker-build-no-kernel")
UNJUDGED = "no verdict: no check of a GPU, driver or engine applies here"


@pytest.mark.parametrize("flag", ["--npd", "--nhc"])
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--recorded", READY], 0, r"\d+ checks pass"),
        (["--recorded", BARE], 1, r"[a-z]+\.[a-z-]+: [^\n]+( \(and \d+ more\))?"),
        *((["--recorded", str(HOSTS / host)], 2, UNJUDGED) for host in NO_GPUS),
        (["--recorded", "/nosuch"], 2, "no verdict: /nosuch is not a recorded host"),
        (["--spec", "/nosuch"], 2, "no verdict: the spec /nosuch cannot be read"),
    ],
    ids=["fit", "unfit", *NO_GPUS, "no host", "no spec"],
)
def test_one_line_and_the_codes_of_the_protocol(
    flag: str, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", flag, *words]) == code
    lead = "gpunode: " if flag == "--nhc" else ""
    assert re.fullmatch(f"{lead}{said}\n", capsys.readouterr().out)


def test_a_fault_of_ours_is_no_verdict_and_no_unfit_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("gpunode.checks.run_all", broken)
    assert main(["check", "--npd", "--recorded", READY]) == 2
    assert capsys.readouterr().out == "no verdict: internal error: ValueError: odd\n"


def test_no_thread_to_look_with_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any host is asked: what the kernel refuses to gpunode says nothing of the GPUs."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("gpunode.cli.hosts.look_at", broken)
    assert main(["check", "--nhc", "--recorded", READY]) == UNKNOWN
    said = capsys.readouterr()
    assert said.out == "gpunode: no verdict: internal error: RuntimeError: can't start new thread\n"
    assert "please report it" in said.err


def test_where_not_even_the_failure_can_be_said_it_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("gpunode.cli.errors.ended_by", broken)
    assert main(["check", "--npd", "--bogus"]) == NO_VERDICT == UNKNOWN
    assert capsys.readouterr().err.endswith("MemoryError\n")
    with pytest.raises(MemoryError):
        main(["check", "--bogus"])


def test_an_interrupted_verdict_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpunode.cli.hosts.look_at", interrupted)
    assert main(["check", "--npd", "--recorded", READY]) == INTERRUPTED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--npd", "--nhc"], "--npd and --nhc exclude each other"),
        (["--npd", "--watch", "5"], "--npd and --watch exclude each other"),
        (["--list", "--unit", "timer"], "--list and --unit exclude each other"),
        (["--npd", "--ssh", "h1"], "--npd is of the node that it runs on"),
        (["--nhc", "-v"], "--nhc has one line"),
        (["--npd", "--json"], "its formats are text"),
        (["--unit", "tmier"], "--unit 'tmier' is not a choice"),
        (["--unit", "service", "--ask-become-pass", "--ssh", "h1"], "--ask-become-pass needs a terminal"),
        (["--unit", "service", "--format", "xml"], "is not a format"),
        (["--watch", "0"], "--watch '0' is not a whole number from 1 to 86400"),
        (["--watch", "5", "--json"], "json is one document"),
        (["--watch", "5", "--format", "prometheus"], "prometheus is one document"),
        (["--watch", "5", "--recorded", READY], "a recording does not change"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) and "--recorded" not in v else None,
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *words]) == ExitCode.USAGE
    assert said in " ".join(capsys.readouterr().err.split())


# Also beside this Python, where scripts/check puts it.
PROMTOOL = shutil.which("promtool", path=os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.prefix, "bin")))))


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: not installed, and scripts/check could not fetch it")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_real_promtool_takes_metrics_of_hostile_names(text: str) -> None:
    made = "".join(prometheus_text([odd_outcome(text), lost_outcome("gpu05")], seconds_s=1, at_s=1))
    assert PROMTOOL is not None
    told = subprocess.run((PROMTOOL, "check", "metrics"), input=made.encode(), capture_output=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


needs_xmllint = pytest.mark.skipif(shutil.which("xmllint") is None, reason="xmllint is not installed (libxml2-utils)")
SCHEMA = Path(__file__).parents[1] / "render" / "junit.xsd"


def validated(document: str) -> tuple[int, str]:
    command = ("xmllint", "--noout", "--huge", "--schema", str(SCHEMA), "-")
    told = subprocess.run(command, input=document.encode(), capture_output=True, check=False)
    return told.returncode, told.stderr.decode(errors="replace")


@needs_xmllint
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
def test_junit_of_hostile_words_is_valid_by_its_schema(text: str, strict: bool) -> None:
    document = "".join(junit_xml([odd_outcome(text), lost_outcome("gpu05")], seconds_s=1, at_s=1, strict=strict))
    assert validated(document) == (0, "- validates\n")


@needs_xmllint
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<testcase ", "<case "),
        ('tests="', 'test="'),
        ('errors="1"', 'errors="one"'),
        ("<skipped ", "<failure type='a'/><skipped "),
    ],
    ids=["an element", "an attribute", "a number", "two ends"],
)
def test_the_schema_refuses_what_is_not_junit(old: str, new: str) -> None:
    document = "".join(junit_xml([odd_outcome("a"), lost_outcome("gpu05")], seconds_s=1, at_s=1, strict=False))
    assert old in document
    assert validated(document.replace(old, new, 1))[0] != 0
