"""gpunode k8s dra, typed: nothing is printed for a node that check fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode
from tests.golden_text import EXAMPLES


def test_a_containerd_from_before_cdi_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = (EXAMPLES / "ubuntu2404-dra136-h200" / "facts.txt").read_text(encoding="utf-8").replace("1.7.28", "1.6.36")
    (tmp_path / "facts.txt").write_text(facts.replace(', "enableCDI": false', ""), encoding="utf-8")
    assert main(["k8s", "dra", "--recorded", str(tmp_path)]) == ExitCode.UNSUPPORTED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "CDI is off in containerd" in " ".join(shown.err.split())


@pytest.mark.parametrize("name", ["gpu-token", "node-password1", "db.secret"])
def test_a_name_that_reads_as_a_secrets_leaves_each_line_its_words(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host, slug = tmp_path / name, "ubuntu2204-rke2-old-gates-a30"
    host.mkdir()
    (host / "facts.txt").write_bytes((EXAMPLES / slug / "facts.txt").read_bytes())

    def said(recorded: Path, *words: str) -> str:
        assert main(["k8s", *words, "--recorded", str(recorded)]) == ExitCode.UNSUPPORTED
        return " ".join(capsys.readouterr().err.split())

    for verb in ("dra", "device-plugin"):
        shown = said(EXAMPLES / slug, verb)
        assert said(host, verb) == shown.replace(f"{slug}: ", f"[{name}] ") != shown
