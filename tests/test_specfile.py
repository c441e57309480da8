"""YAML and flags become a Spec by one table; what is wrong is said all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpunode.errors import UsageError
from gpunode.model.spec import DriverRequest, Expectation, RebootPolicy, RuntimeSpec, Spec, ToolkitRequest
from gpunode.specfile import load_spec, parse_spec, put_all, spec_text

EXAMPLES = sorted((Path(__file__).parent.parent / "examples" / "specs").glob("*.yaml"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", Spec()),
        ("driver: 580\n", Spec(driver=DriverRequest("branch", 580))),
        ("driver: 580.10\n", Spec(driver=DriverRequest("exact", 580, "580.10"))),
        ("runtime: [docker, containerd]\n", Spec(runtimes=("docker", "containerd"))),
        ("runtime: none\n", Spec(runtimes=())),
        ("default: no\ncdi: true\n", Spec(runtime=RuntimeSpec(default=False, cdi=True))),
        ("reboot: if-needed\nhold: off\n", Spec(reboot=RebootPolicy.IF_NEEDED, hold=False)),
    ],
    ids=[
        "an empty file is gpunode's own choice",
        "a bare number is a branch",
        "a trailing zero of a version survives YAML",
        "a list names engines",
        "none is no engine",
        "nested fields are set together",
        "yes and off are words of YAML",
    ],
)
def test_a_spec_reads(text: str, want: Spec) -> None:
    assert parse_spec(text) == want


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_the_example_specs_load(path: Path) -> None:
    assert load_spec(path) != Spec() or path.name == "docker-default.yaml"


def test_three_faults_are_three_lines_with_number_and_choices() -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec("driver: 5x\nhold: true\nflavor: open\nreboot: maybe\n", "node.yaml")
    assert caught.value.problem == "node.yaml: 3 faults"
    first, second, third = caught.value.evidence.splitlines()
    assert first.startswith("line 1: driver: '5x'")
    assert "580.178.04" in first
    assert second.startswith("line 3: flavor is not a key of a spec; did you mean flavour?")
    assert third.startswith("line 4: reboot: 'maybe'")
    assert "never, if-needed" in third


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("driver: 580\ndriver: 595\n", "line 2: driver is there twice; the first is on line 1"),
        ("driver:\n", "line 1: driver: there is no value"),
        ("driver: [580, 595]\n", "one value is wanted here, not a list"),
        ("driver: {branch: 580}\n", "one value is wanted here, not a mapping"),
        ("expect:\n  gpu: 8\n", "line 2: expect.gpu is not a key of a spec; did you mean expect.gpus?"),
        ("- driver\n", "a spec is lines of `key: value`"),
        ("driver: 'x\n", "line 2"),
        ("hold: perhaps\n", "true, false"),
        ("mirror: http://mirror.example\n", "https://"),
        ("trust_keys: [ABCD1234]\n", "40 hex digits"),
    ],
    ids=[
        "a key twice",
        "a key without value",
        "a list for one value",
        "a mapping for one value",
        "an unknown nested key suggests the nearest",
        "a list for a spec",
        "broken YAML names the line",
        "a boolean that is none",
        "a mirror without TLS",
        "a short key id",
    ],
)
def test_a_fault_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert said in f"{caught.value.problem}\n{caught.value.evidence}"


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://user:hunter2@proxy:1", "http://user:hunter2@proxy:3128", "user:hunter2@proxy", "http://user:hunter2"),
        *("http://user:hun/hunter2@proxy", "http:/user:hunter2@proxy", "http://proxy?password=hunter2", "hunter2"),
    ],
)
def test_a_proxy_with_a_password_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        put_all(Spec(), {"proxy": text})
    assert "hunter2" not in f"{caught.value.problem}{caught.value.evidence}{caught.value.remedy.text}"
    with pytest.raises(UsageError) as caught:
        parse_spec(f"proxy: {text}\n")
    assert "hunter2" not in f"{caught.value.problem}{caught.value.evidence}{caught.value.remedy.text}"


@pytest.mark.parametrize(
    "text", ["http://proxy", "https://proxy.example:3128/", "http://10.0.0.1:8080", "http://[fd00::1]:3128/x"]
)
def test_a_proxy_without_a_password_is_taken(text: str) -> None:
    assert put_all(Spec(), {"proxy": text}).proxy == text


def test_flags_win_over_the_file_and_leave_the_rest() -> None:
    spec = put_all(parse_spec("driver: 580\nhold: false\n"), {"driver": "595"})
    assert (str(spec.driver), spec.hold) == ("595", False)


def test_two_wrong_flags_are_reported_together() -> None:
    with pytest.raises(UsageError, match="2 options are wrong") as caught:
        put_all(Spec(), {"driver": "5x", "reboot": "maybe"})
    assert "--driver" in caught.value.evidence
    assert "--reboot" in caught.value.evidence


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_spec(tmp_path / "nosuch.yaml")


@pytest.mark.parametrize(
    "spec",
    [
        Spec(),
        Spec(driver=DriverRequest("exact", 580, "580.178.04"), hold=False, runtimes=()),
        Spec(runtime=RuntimeSpec(default=False, cdi=True), only=("driver",), expect=Expectation(8)),
        Spec(proxy="http://proxy:3128/", trust_keys=("A" * 40, "B" * 40), toolkit=ToolkitRequest("none")),
        parse_spec(
            "toolkit_config: {mode: cdi, log_level: debug, no_cgroups: true}\nexpect: {gpus: 8, kernel: 6.8.0}\n"
        ),
    ],
    ids=["gpunode's choice", "no engine", "nested fields", "lists and a proxy", "several keys below one"],
)
def test_a_spec_written_out_reads_back_the_same(spec: Spec) -> None:
    text = spec_text(spec)
    assert parse_spec(text) == spec
    keys = [line.partition(":")[0] for line in text.splitlines()]
    assert len(set(keys)) == len(keys), "of a key that is there twice other readers of YAML keep the last"
    assert list(yaml.safe_load(text) or ()) == keys
