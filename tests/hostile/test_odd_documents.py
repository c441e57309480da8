"""JSON, TOML and YAML that no daemon means: refused by name and place, nothing touched, no internal error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import UsageError
from gpunode.foreign import NotRead, hex_number, read_json, read_toml, read_yaml, whole_number
from gpunode.specfile import parse_spec

V2 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd'
CRIO = "[crio.runtime.runtimes.runc]\n"


@pytest.fixture(autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def configured(directory: Path, engine: str, text: bytes, *more: str) -> tuple[int, bytes]:
    """(exit code, what the file holds afterwards) of `runtime configure ENGINE` on a file of that text."""
    path = directory / ("daemon.json" if engine == "docker" else "config.toml")
    path.write_bytes(text)
    code = main(["runtime", "configure", engine, "--config", str(path), *more])
    assert [p.name for p in directory.iterdir()] == [path.name]
    return code, path.read_bytes()


REFUSED = {
    "docker: half a pair as a path": ("docker", rb'{"runtimes": {"nvidia": {"path": "\ud800"}}}', "surrogate"),
    "docker: ... as a runtime's name": ("docker", rb'{"runtimes": {"\udbff": {"path": "/x"}}}', "surrogate"),
    "docker: ... as the default": ("docker", rb'{"default-runtime": "\ud800x"}', "surrogate"),
    "docker: ... of a runtimeType": ("docker", rb'{"runtimes": {"a": {"runtimeType": "\ud800"}}}', "surrogate"),
    "docker: a byte that is not UTF-8": ("docker", b'{"labels": ["caf\xe9"]}', "1:17: byte 0xe9 is not UTF-8"),
    "docker: deep lists": ("docker", b'{"a": ' + b"[" * 200_000, "1:106: nested too deeply"),
    "docker: deep and closed": ("docker", b'{"a": ' + b'{"a": ' * 2000 + b"1" + b"}" * 2001, "nested too deeply"),
    "docker: a number of 5000 digits": ("docker", b'{"mtu": ' + b"1" * 5000 + b"}", "1:9: a number of 5000 digits"),
    "docker: a number beyond float64": ("docker", b'{"mtu": 1e999}', "1:9: a number too large"),
    "docker: a runtime that is a text": ("docker", b'{"runtimes": {"crun": "x"}}', "dockerd wants an object"),
    "docker: options that are a list": ("docker", b'{"runtimes": {"nvidia": {"options": []}}}', "wants an object"),
    "containerd: options that are a text": (
        "containerd", f'{V2}.runtimes.nvidia]\noptions = "x"\n'.encode(), "nvidia.options is 'x', and containerd wants",
    ),
    "containerd: options that are a list": (
        "containerd", f"{V2}.runtimes.runc]\noptions = []\n".encode(), "runc.options is [], and containerd wants",
    ),
    "containerd: a runtime that is a text": (
        "containerd", f'{V2}.runtimes]\nrunc = "string"\n'.encode(), "runtimes.runc is 'string', and containerd wants",
    ),
    "containerd: a default that is a number": (
        "containerd", f"{V2}]\ndefault_runtime_name = 1\n".encode(), "default_runtime_name is 1, and containerd wants",
    ),
    "containerd: SystemdCgroup as a text": (
        "containerd", f'{V2}.runtimes.runc.options]\nSystemdCgroup = "true"\n'.encode(), "wants true or false",
    ),
    "containerd: a number of 5000 digits": ("containerd", b"version = 2\nx = " + b"1" * 5000 + b"\n", "config.toml:"),
    "containerd: a number of 5000 hexadecimal digits": (
        "containerd", b"version = 2\nx = 0x" + b"f" * 5000 + b"\n", "config.toml:2:5: a number of more than 300 digits",
    ),
    "containerd: ... in a list in a table": (
        "containerd", b"version = 2\nx = {a = [1, 0o" + b"7" * 5000 + b"]}\n", "a number of more than 300 digits",
    ),
    "crio: a number of 301 digits": ("crio", b"x = " + b"1" * 301 + b"\n", "1:5: a number of more than 300"),
    "containerd: a dotted key of 20,000 parts": ("containerd", b"a" + b".a" * 20_000 + b" = 1\n", "nested too deeply"),
    "containerd: a half pair": ("containerd", b'x = "\\ud800"\n', "config.toml:1:"),
    "containerd: deep tables in a list": ("containerd", b"x = [" + b"{a = [" * 400, "nested too deeply"),
    "crio: a runtime that is a text": ("crio", b'[crio.runtime.runtimes]\nrunc = "x"\n', "CRI-O wants a table"),
    "crio: a runtime_type that is a number": ("crio", f"{CRIO}runtime_type = 1\n".encode(), "CRI-O wants a text"),
}  # fmt: skip


@pytest.mark.parametrize(("engine", "text", "said"), REFUSED.values(), ids=REFUSED)
def test_a_document_that_makes_no_sense_is_refused_and_not_touched(
    engine: str, text: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, after = configured(tmp_path, engine, text)
    shown = " ".join(capsys.readouterr().err.split())
    assert (code, after) == (1, text)
    assert said in shown
    assert "internal error" not in shown


def test_a_daemon_that_replaces_such_bytes_still_gets_its_file(tmp_path: Path) -> None:
    """docker 20.10 starts on it; the label is nothing that gpunode speaks of."""
    code, after = configured(tmp_path, "docker", b'{"labels": ["caf\xe9"]}', "--daemon-version", "20.10.24")
    assert code == 0
    assert after.startswith(b'{"labels": ["caf\xe9"], "runtimes"')


def test_a_half_pair_in_somebody_elses_value_is_left_alone(tmp_path: Path) -> None:
    code, after = configured(tmp_path, "docker", rb'{"labels": ["half=\ud800"]}')
    assert code == 0
    assert after.startswith(rb'{"labels": ["half=\ud800"], "runtimes"')


BOMB = "driver: &a [x, x]\nflavour: &b [*a, *a]\ntoolkit: [*b, *b]\n"
SPECS = {
    "an alias of a list": (BOMB, "line 2, column 14: an alias of a list or mapping"),
    "an alias in itself": ("driver: &a [*a]\n", "line 1, column 13"),
    "deep": ("driver: " + "[" * 5000, "nested too deeply"),
    "deep and closed": ("driver: " + "[" * 500 + "]" * 500, "nested too deeply"),
    "deep by indentation": ("".join(f"{' ' * n}a:\n" for n in range(400)), "nested too deeply"),
    "a half pair": ('driver: "\\ud800"\n', "half of a surrogate pair"),
    "a character beyond Unicode": ('driver: "\\UFFFFFFFF"\n', "it cannot be read"),
    "a YAML version of 5000 digits": (f"%YAML 1.{'1' * 5000}\n---\ndriver: auto\n", "it cannot be read"),
    "a byte that is not UTF-8": ("driver: caf\udce9\n", "is not YAML"),
    "a NUL": ("driver: \0\n", "is not YAML"),
    "a driver in other digits": ("driver: ٥٨٠\n", "is not a driver"),
    "a superscript count": ("expect: {gpus: ²}\n", "is not a count"),
    "a MIG layout in other digits": ("mig: all=١g.10gb\n", "is not a layout"),
}


@pytest.mark.parametrize(("text", "said"), SPECS.values(), ids=SPECS)
def test_a_spec_that_makes_no_sense_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_spec(text)
    assert said in f"{refusal.value.problem} {refusal.value.evidence}"


def test_an_alias_of_a_word_is_as_good_as_the_word() -> None:
    assert parse_spec("driver: &word auto\ntoolkit: *word\n").toolkit.kind == "auto"


def test_ten_thousand_hosts_are_the_most_of_one_run() -> None:
    from gpunode.fleet.inventory import parse_ssh_targets

    with pytest.raises(UsageError, match="10000"):
        parse_ssh_targets(["gpu[1-9999].a[1-9999].b[1-9999]"])
    with pytest.raises(UsageError, match="is not a host"):
        parse_ssh_targets(["gpu[١-٣]"])


JSON: dict[str, tuple[str, str]] = {
    "NaN behind a text that says so": ('["NaN", NaN]', "1:9: NaN is not JSON"),
    "depth 101": ("[" * 101 + "]" * 101, "1:101: nested too deeply"),
    "a text that never ends": ('["' + '\\"' * 5000, "1:2"),
    "a lone backslash at the end": ('"\\', "1:1"),
    "a half pair": ('["a",\n "\\uDc00"]', "2:3: \\uDc00 is half"),
    "a half pair, then a whole one": ('["\\ud800\\ud83d\\ude80"]', "1:3: \\ud800 is half"),
    "an undecodable byte": ('["\udcff"]', "1:3: this byte is not UTF-8"),
    "301 digits": ("1" * 301, "1:1: a number of 301 digits"),
}


@pytest.mark.parametrize(("text", "said"), JSON.values(), ids=JSON)
def test_json_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(NotRead) as refusal:
        read_json(text)
    assert str(refusal.value).startswith(said)


def test_toml_with_300_digits_is_read() -> None:
    assert read_toml("x = " + "1" * 300)["x"] == int("1" * 300)
    assert read_toml(f"x = 0x{10**300 - 1:x}")["x"] == 10**300 - 1


def test_json_that_only_looks_odd_is_read() -> None:
    assert read_json('["\\\\ud800", "\\ud83d\\ude80", "[[[", ' + "[" * 99 + "]" * 99 + "]")[:3] == [
        "\\ud800",
        "🚀",
        "[[[",
    ]
    assert read_json("1" * 300) == int("1" * 300)
    assert read_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(NotRead, match="stands twice"):
        read_json('{"a": 1, "a": 2}', unique=True)


def test_what_gpunode_wrote_carries_undecodable_bytes_and_no_other_half() -> None:
    assert read_json('"\\udce9"', own=True) == "\udce9"
    with pytest.raises(NotRead, match="surrogate"):
        read_json('"\\ud800"', own=True)
    with pytest.raises(NotRead, match="surrogate"):
        read_json('"\\udc00"', own=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b\nc: \udce9\n", "2:4: this byte is not UTF-8"),
        ("a: b\nc:  \0\n", "2:5: special characters are not allowed"),
    ],
)
def test_a_character_that_yaml_does_not_take_is_told_with_its_place(text: str, says: str) -> None:
    with pytest.raises(NotRead) as refused:
        read_yaml(text)
    assert str(refused.value) == says


@pytest.mark.parametrize("read", [read_json, read_toml, read_yaml], ids=lambda read: read.__name__)
@pytest.mark.parametrize(
    "text",
    ["\0", "\ufeff", "\udcff", "[" * 100_000, "{" * 100_000, "\x1b[0m", "'" * 999, '"' * 999, "%" * 9, "- " * 9999],
)
def test_no_text_is_answered_with_anything_but_a_value_or_the_one_error(
    read: Callable[[str], object], text: str
) -> None:
    try:
        read(text)
    except NotRead as refusal:
        fault = refusal
    else:
        return
    assert min(fault.line, fault.column) >= 1


@pytest.mark.parametrize(
    "text", [None, "", " 1", "1\n", "²", "١", "1_000", "+1", "1" * 19, "0x1", "1e3", "\0", "\ud800"]
)
def test_what_is_no_whole_number(text: str | None) -> None:
    assert whole_number(text) is None


def test_numbers() -> None:
    assert (whole_number("007"), whole_number("-1"), whole_number("9" * 18)) == (7, -1, int("9" * 18))
    assert (hex_number("0x10de"), hex_number("10DE"), hex_number("x"), hex_number("１")) == (0x10DE, 0x10DE, None, None)


def test_a_saved_plan_of_brackets_is_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("[" * 500_000, '{"schema": ' * 5000, '{"schema": "\\ud800"}', '{"plan": ' + "9" * 5000 + "}"):
        plan = tmp_path / "plan.json"
        plan.write_text(text)
        assert main(["setup", "--plan", str(plan), "--yes"]) == 2
        said = capsys.readouterr().err
        assert "not a plan gpunode saved" in said
        assert "internal error" not in said
    assert os.listdir(tmp_path) == ["plan.json"]
