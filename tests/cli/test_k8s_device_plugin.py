"""gpunode k8s device-plugin: the result on stdout, what is to be known on stderr, faults as exit code 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from gpunode.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["k8s", "device-plugin", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_manifest_goes_to_stdout_and_notes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--plugin-version", "0.19.0")
    assert (code, yaml.safe_load(out)["kind"]) == (0, "DaemonSet")
    assert err.startswith("gpunode: v0.19.0 switches gds-enabled, mofed-enabled, gdrcopy-enabled on by itself")


def test_a_manifest_may_go_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "--output", str(tmp_path / "plugin.yaml"))
    assert (code, out, err) == (0, "", "")
    assert yaml.safe_load((tmp_path / "plugin.yaml").read_text())["kind"] == "DaemonSet"


def test_a_config_file_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("version: v1\nflags: {migStrategy: mixed}\n")
    code, out, _ = run(capsys, "--config", str(config), "--form", "helm", "--set", "gds-enabled=true")
    assert code == 0
    values = yaml.safe_load(out)
    assert (values["migStrategy"], values["gdsEnabled"]) == ("mixed", True)


def test_a_group_has_a_file_of_its_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("")
    code, out, err = run(capsys, "--config", f"a={config}", "--config", f"b={config}", "--form", "configmap")
    assert code == 0
    assert list(yaml.safe_load(out)["data"]) == ["a", "b"]
    assert "nvidia.com/device-plugin.config" in err


@pytest.mark.parametrize(
    "words",
    [
        ("--form", "x"),
        ("--set", "x"),
        ("--spelling", "flag", "--form", "helm"),
        ("--kubernetes", "1.7"),
        ("--runtime-class", "A B"),
        ("--config", "/nonexistent"),
        ("--config", "/dev/null/x"),
        ("--config", "a=/nonexistent"),
        ("--plugin-version", "latest"),
        ("--config", "/proc/self/mem"),
    ],
)
def test_faults_are_exit_code_2_and_print_no_manifest(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("gpunode: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("host", "words", "says"),
    [
        ("ubuntu2404-node-l40s", (), ""),
        ("ubuntu2404-k3s-agent-l4", (), ""),
        ("ubuntu2204-microk8s-addon-t4", (), ""),
        ("ubuntu2204-aks134-a100", (), ""),
        ("ubuntu2404-k3s-l4", (), "k3s starts containers by runc"),
        ("ubuntu2404-k3s-l4", ("--runtime-class", "nvidia"), "k3s has no handler nvidia"),
        ("debian12-k0s-a30", ("--set", "device-list-strategy=cdi-cri"), "CDI is not enabled in k0s"),
        ("ubuntu2204-rke2-a30", ("--set", "device-list-strategy=cdi-cri"), "the plugin's own container"),
        ("ubuntu2204-rke2-a30", ("--form", "helm", "--set", "device-list-strategy=cdi-cri"), "own container"),
        ("ubuntu2204-rke2-a30", ("--form", "unit", "--set", "device-list-strategy=cdi-cri"), ""),
        ("ubuntu2204-rke2-old-gates-a30", (), "cpuManagerPolicy is static"),
        ("ubuntu2204-rke2-old-gates-a30", ("--set", "pass-device-specs=true"), ""),
        ("ubuntu2004-kubelet120-t4", (), "docker starts containers by runc"),
        ("ubuntu2004-kubelet123-a100", ("--set", "device-list-strategy=cdi-cri"), "a kubelet of 1.28 or later"),
    ],
)
def test_a_recorded_host_is_held_against_it(
    capsys: pytest.CaptureFixture[str], host: str, words: tuple[str, ...], says: str
) -> None:
    code, out, err = run(capsys, "--recorded", f"examples/hosts/{host}", *words)
    assert (code, bool(out)) == ((4, False) if says else (0, True))
    assert says in " ".join(err.split())


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"version: v1\nflags: {migStrategy: \xe9}\n", "2:22: this byte is not UTF-8"),
        (b"version: v1\n\0", "2:1: special characters are not allowed"),
        (b"\xff\xfev\0", "1:1: this byte is not UTF-8"),
        (b"a: &a [x]\nb: *a\n", "2:4: an alias of a list or mapping"),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "an alias of a list or mapping"),
        (b"version: v1\nversion: v1\n", "line 2: version: it stands twice"),
        (b"version: v1\n---\nversion: v1\n", "2:1: but found another document"),
        (b"!!python/object/apply:os.system [id]\n", "is no mapping"),
        (b"\x1b]0;x\x07: 1\n", "1:1: special characters are not allowed"),
        (b"flags: {? {a: b} : c}\n", "a key is a list or a mapping"),
        (b"[" * 60_000, "is not YAML"),
        (b"#" * 65_537, "is over 65536 bytes"),
    ],
    ids=["latin 1", "a zero", "UTF-16", "an alias", "a bomb", "a key twice", "two documents", "a tag of Python's",
         "an escape", "an odd key", "brackets", "too long"],
)  # fmt: skip
def test_a_config_that_is_none_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, raw: bytes, says: str
) -> None:
    (tmp_path / "c").write_bytes(raw)
    code, out, err = run(capsys, "--config", str(tmp_path / "c"))
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())
    assert err.startswith("gpunode: ")
    assert "\x1b" not in err


def test_an_anchor_that_nobody_names_again_does_no_harm(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "c").write_text("flags: &f {migStrategy: &s none, deviceDiscoveryStrategy: nvml}\n")
    code, out, _ = run(capsys, "--config", str(tmp_path / "c"), "--form", "config")
    assert (code, yaml.safe_load(out)["flags"]["migStrategy"]) == (0, "none")
    assert "&" not in out


@pytest.mark.parametrize("config", ["", "a=", "{}/", "a={}"])
def test_what_names_no_file_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: str) -> None:
    code, out, err = run(capsys, "--config", config.format(tmp_path))
    assert (code, out) == (2, "")
    assert "names no file" in err or "Is a directory" in err


def test_a_large_file_and_a_pipe_nobody_writes_to_are_no_trap(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with (tmp_path / "large").open("wb") as large:
        large.truncate(100 << 20)
    assert run(capsys, "--config", str(tmp_path / "large"))[0] == 2
    os.mkfifo(tmp_path / "pipe")
    assert run(capsys, "--config", str(tmp_path / "pipe"))[0] == 0
    (tmp_path / "bytes").write_bytes(b"flags: {migStrategy: \xff}")
    assert run(capsys, "--config", str(tmp_path / "bytes"))[0] == 2
