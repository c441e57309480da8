"""check --site-checks: the site's own checks beside gpunode's, in every format, and marked as foreign."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpunode.checks import all_checks
from gpunode.cli.app import main
from gpunode.errors import ExitCode
from tests.render.exposition import read_metrics
from tests.render.junit_rules import read_junit
from tests.render.published import wrong
from tests.site_checks.places import program, put, trusted_directory

ROOT = Path(__file__).parents[2]
READY = str(ROOT / "examples" / "hosts" / "debian12-ready")
L4 = "value: 24000000000"


@pytest.fixture
def checks() -> Iterator[Path]:
    with trusted_directory() as directory:
        for path in (ROOT / "examples" / "checks").iterdir():
            mode = 0o644 if path.suffix else 0o755
            put(directory, path.name, path.read_text(), mode)
        yield directory


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(words)
    return code, capsys.readouterr().out


def site(document: str) -> dict[str, dict[str, Any]]:
    (host,) = json.loads(document)["hosts"]
    return {check["id"]: check for check in host["checks"] if check["id"].startswith("site.")}


def recorded(checks: Path) -> list[str]:
    return ["check", "--recorded", READY, "--site-checks", str(checks)]


def test_the_examples_on_a_recording(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run([*recorded(checks), "--json"], capsys)
    assert wrong(out, "check-result") == []
    found = site(out)
    assert code == ExitCode.FAILED
    assert found["site.gpu-memory"]["summary"].endswith("have less than 80 GB of memory")
    assert re.fullmatch(
        r"driver\.smi\.gpus\[0\]\.memory_total_bytes = \d+; wanted: at-least 85000000000",
        found["site.gpu-memory"]["evidence"],
    )
    assert found["site.gpu-memory"]["remedy"]["action"] == "replace"
    assert found["site.model-cache"]["reason"].startswith("a program of the site is run only where gpunode runs")
    assert {check["foreign"] for check in found.values()} == {f"{checks}/gpu-memory.yaml", f"{checks}/model-cache"}


def test_the_examples_on_this_machine(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = site(run(["check", "--site-checks", str(checks), "--json"], capsys)[1])
    assert found["site.gpu-memory"]["outcome"] != "pass" or shutil.which("nvidia-smi")
    assert not Path("/srv/models").exists()
    cache = found["site.model-cache"]
    assert (cache["outcome"], cache["severity"]) == ("finding", "error")
    assert cache["summary"].startswith("/srv/models is not mounted")
    assert cache["evidence"] == f"{checks}/model-cache ended with code 2"


def test_the_program_of_the_examples_passes_where_its_cache_is_mounted(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "checks" / "model-cache").read_text()
    there = tmp_path / "there"
    there.write_text(text.replace("cache=/srv/models", "cache=/proc"))  # a file system that is never full
    ended = subprocess.run(["sh", str(there)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) in (
        (0, "/proc is 0 % full\n"),
        (3, ""),
    )  # df has "-" where there is no size


def test_the_page_has_the_examples_whole() -> None:
    page = (ROOT / "docs" / "reference" / "custom-checks.md").read_text()
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    texts = [text for _, text in blocks]
    for path in (ROOT / "examples" / "checks").iterdir():
        assert path.read_text() in texts


def test_the_answer_on_the_page_is_one(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "reference" / "custom-checks.md").read_text()
    (answer,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    program(checks, "ib-links", f"cat <<'END'\n{answer}END")
    found = site(run(["check", "--site-checks", str(checks), "--json"], capsys)[1])["site.ib-links"]
    assert (found["severity"], found["summary"]) == ("warning", "2 of 8 links are down")


def test_gpunodes_own_checks_are_what_they_were(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (without,) = json.loads(run(["check", "--recorded", READY, "--json"], capsys)[1])["hosts"]
    (beside,) = json.loads(run([*recorded(checks), "--json"], capsys)[1])["hosts"]
    assert [check for check in beside["checks"] if check["foreign"] is None] == without["checks"]


def test_no_check_of_gpunode_has_such_an_id() -> None:
    assert [doc.id for doc in all_checks() if doc.id.startswith("site.") or doc.foreign] == []


def test_every_format_tells_that_it_is_foreign(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(recorded(checks), capsys)[1]
    assert re.search(r"FAIL +site\.gpu-memory", text)
    assert f"check of this site, not gpunode's: {checks}/gpu-memory.yaml" in " ".join(text.split())
    junit = read_junit(run([*recorded(checks), "--format", "junit"], capsys)[1])
    (failure,) = junit.iter("failure")
    assert f"check of this site: {checks}/gpu-memory.yaml" in (failure.text or "")
    samples = read_metrics(run([*recorded(checks), "--format", "prometheus"], capsys)[1])
    by_id = {dict(labels).get("id"): value for (_, labels), value in samples.items()}
    assert (by_id["site.gpu-memory"], by_id["site.model-cache"]) == (2, -1)
    events = json.loads(run([*recorded(checks), "--format", "nvsentinel"], capsys)[1])["events"]
    (event,) = [event for event in events if event["checkName"].startswith("site.")]
    assert event["metadata"]["foreign"] == f"{checks}/gpu-memory.yaml"
    assert run([*recorded(checks), "--npd"], capsys)[1].startswith("site.gpu-memory: 1 GPU(s) of")


def test_a_pass_of_the_site_alone_is_no_verdict(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = ROOT / "examples" / "hosts" / "debian12-no-gpu"
    (checks / "gpu-memory.yaml").unlink()
    put(checks, "a.yaml", (ROOT / "examples" / "checks" / "gpu-memory.yaml").read_text().replace("85000000000", "1"))
    code, out = run(["check", "--recorded", str(empty), "--site-checks", str(checks), "--npd"], capsys)
    assert (code, out[:10]) == (run(["check", "--recorded", str(empty), "--npd"], capsys)[0], out[:10])


def test_it_is_listed_and_explained(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--site-checks", str(checks)]
    assert "site.model-cache" in run(["check", "--list", *words], capsys)[1]
    page = run(["check", "--explain", "site.gpu-memory", *words], capsys)[1]
    assert f"a check of this site: {checks}/gpu-memory.yaml" in page
    assert "at-least 85000000000" in " ".join(page.split())
    assert main(["check", "--explain", "site.gpu-memory"]) == ExitCode.USAGE


def test_a_spec_names_the_directory(checks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "node.yaml"
    spec.write_text(f"site_checks: {checks}\n")
    assert len(site(run(["check", "--recorded", READY, "--spec", str(spec), "--json"], capsys)[1])) == 2
    spec.write_text("site_checks: checks\n")
    assert main(["check", "--recorded", READY, "--spec", str(spec)]) == ExitCode.USAGE
    assert "an absolute path" in " ".join(capsys.readouterr().err.split())


def test_what_is_wrong_is_said_before_a_host_is_asked(checks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(checks, "bad.yaml", "id: rt.present\n")
    for words in (["--ssh", "nosuch.invalid"], ["--list"], ["--npd"]):
        assert main(["check", *words, "--site-checks", str(checks)]) == ExitCode.USAGE
        assert "bad.yaml:1: id: 'rt.present' is not an id of a site's check" in " ".join(
            capsys.readouterr().err.split()
        )


def test_hostile_words_of_a_program_are_shown_and_never_obeyed(
    checks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(checks, "odd", r"printf '\033]0;owned\007 token=hunter2secret \342\200\256\n'; exit 1")
    for form in ("text", "json", "junit", "nvsentinel", "prometheus"):
        out = run(["check", "--site-checks", str(checks), "--format", form], capsys)[1]
        assert not set(out) & set("\x1b\x07\u202e")
        assert "hunter2secret" not in out


def test_the_unit_has_the_whole_path(
    checks: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checks.parent)
    out = run(["check", "--site-checks", checks.name, "--unit", "service"], capsys)[1]
    assert f'"--site-checks" "{checks}"' in out


def test_a_check_of_the_site_that_is_not_wanted_is_not_run_and_one_of_it_may_be_named(
    checks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run([*recorded(checks), "--skip", "site.gpu-memory", "--json"], capsys)
    assert (code, set(site(out))) == (ExitCode.DONE, {"site.model-cache"})
    code, out = run([*recorded(checks), "--only", "site", "--json"], capsys)
    assert code == ExitCode.FAILED
    assert site(out)["site.gpu-memory"]["outcome"] == "finding"
    assert main([*recorded(checks), "--only", "site.gpu-memry"]) == ExitCode.USAGE
    assert "did you mean site.gpu-memory?" in " ".join(capsys.readouterr().err.split())
