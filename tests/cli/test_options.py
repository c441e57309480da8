"""A verb offers what it reads and refuses the rest; help has headings; a misspelt word gets one proposal."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.options.groups import CheckOptions
from gpunode.cli.options.setup import SpecOptions
from gpunode.cli.options.spec import flag_texts, wanted_spec
from gpunode.errors import UsageError
from gpunode.model.spec import Flavour
from gpunode.specfile import parse_spec, spec_text

HOST = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What stderr says of a command line that is refused: one message, and nothing on stdout."""
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" or json.loads(out)["schema"] == "gpunode.error/2"
    assert err.count("gpunode: ") == 1
    return " ".join(err.split())


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--mirror", "/x", "--mig", "all=off"],
        ["check", "--driver", "580"],
        ["check", "--reboot", "never"],
        ["plan", "--expect-gpus", "8"],
        ["setup", "--expect-gpus", "8"],
        ["undo", "--recorded", HOST],
        ["detect", "--spec", "spec.yaml"],
        ["catalog", "-v", "gpus"],
        ["catalog", "-q", "gpus"],
        ["runtime", "show", "-v"],
        ["runtime", "configure", "-v", "docker"],
        ["runtime", "configure", "--ssh", "h1", "docker"],
    ],
    ids=" ".join,
)
def test_an_option_that_a_verb_would_ignore_is_none_of_its_own(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flag = next(word for word in words if word.startswith("-"))
    said = refusal(words, capsys)
    assert f"no such option: {flag} evidence it is an option of gpunode " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--recorded", HOST, "--user", "u"], "--user is for hosts over SSH"),
        (["check", "--recorded", HOST, "--identity", "k"], "--identity is for hosts over SSH"),
        (["check", "--recorded", HOST, "--host-key", "strict"], "--host-key is for hosts over SSH"),
        (["check", "--recorded", HOST, "--forks", "2"], "--forks is for hosts over SSH"),
        (["detect", "--recorded", HOST, "--ask-become-pass"], "--ask-become-pass is for hosts"),
        (["detect", "--recorded", HOST, "--become-pass-file", "/p"], "--become-pass-file is for hosts"),
        (["check", "--host-key", "strict"], "--host-key is for hosts over SSH"),
        (["check", "--jump", ""], "--jump is for hosts over SSH"),
        (["plan", "--forks", "2"], "--forks is for hosts over SSH"),
        (["check", "--list", "--ssh", "h1"], "--ssh is for a check of hosts"),
        (["check", "--list", "--expect-gpus", "8"], "--expect-gpus is for a check of hosts"),
        (["check", "--list", "--strict"], "--strict is for a check of hosts"),
        (["check", "--list", "-v"], "-q and -v are for a check of hosts"),
        (["check", "--list", "--explain", "drv.dkms-next"], "--list and --explain exclude each other"),
        (["check", "--ctk-set", "mode=cdi", "--recorded", HOST], "no-cgroups"),
        (["check", "--expect", "drvier=580", "--recorded", HOST], "did you mean driver?"),
        (["check", "--expect", "driver", "--recorded", HOST], "has no value"),
        (["check", "--expect", "driver=1", "--recorded", HOST], "a branch such as 580"),
        (["check", "--expect", "gpus=8", "--expect-gpus", "8", "--recorded", HOST], "gpus is expected twice"),
        (["detect", "--recorded", HOST, "--mask-host"], "--mask-host is for --record"),
        (["detect", "--recorded", HOST, "--json", "--format", "jsonl"], "exclude each other"),
        (["detect", "--recorded", HOST, "-q", "-v"], "-q and -v exclude each other"),
        (["detect", "--recorded", HOST, "--json", "-v"], "-v is for text"),
        (["plan", "--recorded", HOST, "--format", "jsonl", "-v"], "-v is for text"),
        (["check", "--inventory", "a", "--inventory=b"], "--inventory is there twice"),
        (["check", "--recorded", HOST, "--recorded", HOST], "--recorded is there twice"),
        (["plan", "--recorded", HOST, "--spec", "a", "--spec", "b"], "--spec is there twice"),
        (["plan", "--recorded", HOST, "--only", "driver", "--only", "toolkit"], "--only is there twice"),
        (["plan", "--recorded", HOST, "--runtime", "docker", "--runtime", "crio"], "--runtime is there twice"),
        (["detect", "--format", "json", "--recorded", HOST, "--format", "text"], "--format is there twice"),
        (["setup", "--retry-failed", "--retry-failed", "last"], "--retry-failed is there twice"),
        (["plan", "--recorded", HOST, "--ctk-set", "mode=cdi", "--ctk-set", "mode=legacy"], "sets mode twice"),
    ],
    ids=lambda v: " ".join(v[:1] + [w for w in v if w.startswith("-")]) if isinstance(v, list) else None,
)
def test_an_option_that_nothing_would_read_this_time_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(words, capsys)


def test_setup_says_more_on_stderr_beside_a_result_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--recorded", HOST, "--json", "-v"]) == 0
    assert capsys.readouterr().out.startswith("{")


def test_options_of_many_values_are_typed_as_often_as_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    several = ("--expect", "driver=580", "--expect", "gpus=99", "-v", "-v")
    assert main(["check", "--recorded", HOST, *several]) == 1
    assert "99" in capsys.readouterr().out
    settings = ("--ctk-set", "mode=cdi", "--ctk-set", "log-level=info")
    assert main(["plan", "--recorded", HOST, *settings]) == 0


def test_check_takes_what_its_checks_read(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--toolkit", "none", "--ctk-set", "no-cgroups=true", "--runtime", "docker", "--no-default", "--cdi")
    assert main(["check", "--recorded", HOST, *flags, "--expect-gpus", "99"]) == 1
    assert "99" in capsys.readouterr().out


def test_each_flag_of_check_is_a_key_of_the_spec() -> None:
    by_file = (None, "none", ["no-cgroups=true"], "docker", True, True, "dra")
    typed = CheckOptions(*by_file, "8", ["driver=580"], Path("checks"))
    assert len(flag_texts(typed)) == len(fields(CheckOptions)) - 1  # --spec is the file
    spec = wanted_spec(typed)
    assert (spec.toolkit.kind, spec.toolkit_config.no_cgroups, spec.runtimes) == ("none", True, ("docker",))
    assert (spec.runtime.default, spec.runtime.cdi, spec.kubernetes.mode) == (False, True, "dra")
    assert (spec.expect.gpus, spec.expect.driver) == (8, "580")
    assert spec.site_checks == str(Path("checks").absolute())


def test_nothing_typed_leaves_the_spec_alone() -> None:
    assert flag_texts(SpecOptions()) == flag_texts(CheckOptions()) == {}


@pytest.mark.parametrize(
    ("words", "headings"),
    [
        (["detect"], ["Options:", "Hosts:", "Output:"]),
        (["plan"], ["Options:", "Hosts:", "What is wanted:", "Output:"]),
        (
            ["setup"],
            ["Options:", "Hosts:", "What is wanted:", "An earlier run:", "Rollout:", "Output:"],
        ),
        (["check"], ["Options:", "Hosts:", "What is wanted:", "Active tests:", "Which checks:", "Output:"]),
        (["undo"], ["Options:", "Hosts:", "Rollout:", "Output:"]),
        (["catalog"], ["Arguments:", "Options:", "Output:"]),
        (["runtime", "show"], ["Arguments:", "Options:", "Hosts:", "Output:"]),
        (["runtime", "configure"], ["Arguments:", "Options:", "Output:"]),
    ],
    ids=lambda v: " ".join(v) if v[0].islower() else None,
)
def test_help_groups_the_options_under_headings(
    words: list[str], headings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--help"]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert [line for line in lines if line and not line[0].isspace() and not line.startswith("Usage")] == headings
    assert page.index("--help") < page.index("\nOutput:") < page.index("--json") < page.index("Examples:")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["chek"], "did you mean check?"),
        (["Plan"], "did you mean plan?"),
        (["runtime", "configre"], "did you mean configure?"),
        (["plan", "--driver-sorce", "cuda"], "did you mean --driver-source?"),
        (["plan", "--no-hodl"], "did you mean --no-hold?"),
        (["plan", "--flavour", "opne"], "did you mean open?"),
        (["plan", "--driver", "non"], "did you mean none?"),
        (["plan", "--toolkit", "atuo"], "did you mean auto?"),
        (["plan", "--reboot", "if_needed"], "did you mean if-needed?"),
        (["plan", "--only", "runtimes"], "did you mean runtime?"),
        (["plan", "--runtime", "docker,contanerd"], "did you mean containerd?"),
        (["plan", "--runtime", "dokcer@ann"], "did you mean docker?"),
        (["plan", "--ctk-set", "mdoe=cdi"], "did you mean mode?"),
        (["plan", "--ctk-set", "mode=cid"], "did you mean cdi?"),
        (["plan", "--ctk-set", "no-cgroups=ture"], "did you mean true?"),
        (["check", "--format", "jsno"], "did you mean json?"),
        (["check", "--ssh", "h1", "--host-key", "accept_new"], "did you mean accept-new?"),
        (["check", "--explain", "drv.dkms-nxt"], "did you mean drv.dkms-next?"),
        (["catalog", "gpu"], "did you mean gpus?"),
        (["runtime", "show", "dockr"], "did you mean docker?"),
        (["runtime", "configure", "nvidia-container-runtim"], "did you mean nvidia-container-runtime?"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_one_word_is_proposed_for_a_misspelt_one(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(argv, capsys)
    assert said in told
    assert told.count("did you mean") == 1


def test_flavor_is_another_spelling_of_flavour(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for flag in ("--flavour", "--flavor"):
        assert main(["plan", "--recorded", HOST, flag, "proprietary", "--json"]) == 0
        pages.append(json.loads(capsys.readouterr().out)["hosts"][0]["plan"]["spec"]["flavour"])
    assert pages == ["proprietary", "proprietary"]


def test_a_key_of_a_spec_file_is_proposed_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text("driver: 580\nflavor: open\n")
    assert "line 2: flavor is not a key of a spec; did you mean flavour?" in refusal(
        ["plan", "--spec", str(tmp_path / "spec.yaml")], capsys
    )


@pytest.mark.parametrize("argv", [["zzz"], ["plan", "--zzz"], ["plan", "--flavour", "zzz"]], ids=" ".join)
def test_what_is_like_nothing_gets_no_proposal(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in refusal(argv, capsys)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["--driver", "none", "--flavour", "open"], "--flavour"),
        (["--driver", "none", "--driver-source", "distro", "--mig", "all=off"], "--driver-source, --mig"),
        (["--driver", "none", "--cuda", "13.0"], "--cuda"),
        (["--toolkit", "none", "--toolkit-channel", "experimental"], "--toolkit-channel"),
    ],
    ids=["flavour", "source and MIG", "CUDA", "channel"],
)
def test_what_none_leaves_nothing_for_is_refused(
    words: list[str], flags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(["plan", "--recorded", HOST, *words], capsys)
    assert f"{words[0]} none leaves nothing for {flags} evidence" in said


@pytest.mark.parametrize(
    ("text", "typed", "refused"),
    [
        ("driver: none\nflavour: open\n", {}, True),
        ("driver: none\n", {"flavour": "open"}, True),
        ("flavour: open\n", {"driver": "none"}, False),
        ("driver: none\nflavour: open\n", {"driver": "580"}, False),
    ],
    ids=["both in the file", "a flavour typed over the file's none", "none typed over the file's flavour", "neither"],
)
def test_of_a_file_and_flags_only_what_one_hand_wrote_is_a_contradiction(
    tmp_path: Path, text: str, typed: dict[str, str], refused: bool
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    options = SpecOptions(spec=spec, **typed)  # type: ignore[arg-type]
    if refused:
        with pytest.raises(UsageError, match="--driver none leaves nothing for --flavour"):
            wanted_spec(options)
        return
    wanted = wanted_spec(options)
    assert parse_spec(spec_text(wanted)) == wanted, "a saved plan and the resume after a reboot read it again"
    assert wanted.flavour is (Flavour.OPEN if wanted.driver.kind != "none" else Flavour.AUTO)
