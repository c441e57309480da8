"""The client is an extra: without it two options say how to get it, and with it nothing else loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

from gpunode.cli.app import main
from gpunode.cluster.library import REQUIREMENT
from gpunode.errors import ExitCode

ROOT = Path(__file__).parents[2]
SAMPLE = str(ROOT / "examples" / "hosts" / "ubuntu2404-node-l40s-ready")


@pytest.mark.parametrize(
    "words",
    [
        ["labels", "--recorded", SAMPLE, "--kubeconfig", "/nowhere", "--yes"],
        ["verify", "--kubeconfig", "/nowhere"],
    ],
    ids=["labels", "verify"],
)
def test_without_it_the_command_that_installs_it_is_named(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    assert main(["k8s", *words]) == ExitCode.UNSUPPORTED
    out, err = capsys.readouterr()
    assert out == ""
    assert "the official Kubernetes client is not installed" in err
    assert f"{sys.executable} -m pip install '{REQUIREMENT}'" in err


def test_what_is_named_is_the_extra() -> None:
    extras = tomlkit.parse((ROOT / "pyproject.toml").read_text()).unwrap()["project"]["optional-dependencies"]
    assert extras["kubernetes"] == [REQUIREMENT]
    assert REQUIREMENT in extras["dev"]


@pytest.mark.parametrize(
    "words", [["labels", "--recorded", SAMPLE], ["verify", "--recorded", SAMPLE], ["labels", "--help"]]
)
def test_nothing_of_it_is_loaded_without_a_kubeconfig(words: list[str]) -> None:
    program = (
        "import sys; from gpunode.cli.app import main; main(['k8s', *sys.argv[1:]]);"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'kubernetes', 'urllib3', 'cryptography'}))"
    )
    done = subprocess.run((sys.executable, "-c", program, *words), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
