"""gpunode runtime configure and show, as a person types them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

from gpunode.cli.app import main

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "hosts"
V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


def configure(*words: str | Path) -> int:
    return main(["runtime", "configure", *map(str, words)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "docker" / "daemon.json"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  "debug": true,\n  "registry-auth": "hunter2"\n}\n')
    path.chmod(0o640)
    return path


def test_changed_then_unchanged_and_both_are_exit_0(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert configure("docker", "--config", file) == 0
    assert capsys.readouterr().out == f"changed {file}\n"
    written, at = file.read_text(), file.stat().st_mtime_ns
    assert json.loads(written)["default-runtime"] == "nvidia"
    assert configure("docker", "--config", file) == 0
    assert capsys.readouterr().out == f"unchanged {file}\n"
    assert (file.read_text(), file.stat().st_mtime_ns, file.stat().st_mode & 0o7777) == (written, at, 0o640)
    assert [p.name for p in file.parent.iterdir()] == ["daemon.json"]


def test_json_has_the_same_with_its_schema(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert configure("docker", "--config", file, "--json", "--backup") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["changed"], said["dry_run"]) == ("gpunode.runtime-configure/1", True, False)
    (one,) = said["files"]
    assert (one["path"], one["changed"], one["created"]) == (str(file), True, False)
    assert Path(one["backup"]).read_text().startswith('{\n  "debug": true')
    assert Path(one["backup"]).stat().st_mode & 0o7777 == 0o640
    assert configure("docker", "--config", file, "--format", "jsonl") == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False


def test_dry_run_prints_the_new_text_to_the_byte_and_writes_nothing(
    file: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file.write_bytes('{"name": "größe", "b": 9007199254740993}'.encode())
    before = file.read_bytes()
    assert configure("docker", "--config", file, "--dry-run", "--no-set-as-default") == 0
    printed = capfdbinary.readouterr().out
    assert file.read_bytes() == before
    assert configure("docker", "--config", file, "--no-set-as-default", "-q") == 0
    assert file.read_bytes() == printed
    assert "größe".encode() in printed
    assert b"9007199254740993" in printed
    assert b"default-runtime" not in printed


def test_diff_shows_no_secret_and_still_writes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert configure("docker", "--config", file, "--diff") == 0
    out = capsys.readouterr().out
    assert '+  "default-runtime": "nvidia"' in out
    assert out.endswith(f"changed {file}\n")
    assert "hunter2" not in out
    assert "hunter2" in file.read_text()


def test_a_new_file_and_its_directory_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "home" / ".config" / "docker" / "daemon.json"
    assert configure("docker", "--config", path, "--name", "gpu", "--path", "/opt/nvidia/run") == 0
    assert json.loads(path.read_text())["runtimes"]["gpu"]["path"] == "/opt/nvidia/run"
    said = capsys.readouterr().err
    assert "systemctl --user restart docker" in said
    assert "--ctk-set no-cgroups=true" in said


@pytest.mark.parametrize(
    ("words", "plugin", "version"),
    [
        ((), V2, 2),
        (("--config-schema", "2"), V2, 2),
        (("--config-schema", "3"), V3, 3),
        (("--config-schema", "4"), V3, 4),
        (("--daemon-version", "1.6.20"), V2, 2),
    ],
    ids=["nothing said: all read 2", "2", "3", "4", "1.6"],
)
def test_a_new_containerd_file_is_in_the_schema_that_was_asked_for(
    tmp_path: Path, words: tuple[str, ...], plugin: str, version: int
) -> None:
    path = tmp_path / "config.toml"
    assert configure("containerd", "--config", path, *words) == 0
    text = path.read_text()
    assert f"version = {version}\n" in text
    assert plugin in text
    assert (
        configure("containerd", "--config", path, "--daemon-version", {2: "1.7.24", 3: "2.0.0", 4: "2.3.1"}[version])
        == 0
    )


def test_without_a_daemon_version_the_file_itself_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("version = 3\n")
    assert configure("containerd", "--config", path, "--cdi") == 0
    assert "nvidia" in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("engine", "version", "old"),
    [
        ("docker", "25.0.5", True),
        ("docker", "26.0.0", True),
        ("docker", "26.1.5", False),
        ("containerd", "1.7.2", True),
        ("containerd", "1.7.27", False),
    ],
)
def test_a_release_that_cannot_read_todays_cdi_specifications_is_said_to_be_one(
    engine: str, version: str, old: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text("{}" if engine == "docker" else "version = 2\n")
    assert configure(engine, "--config", path, "--cdi", "--daemon-version", version) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert (f"{engine} {version} reads CDI specifications before 0.7 only" in said) == old


def test_an_imported_file_that_takes_precedence_is_the_one_that_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, drop_in = tmp_path / "config.toml", tmp_path / "conf.d" / "50-cri.toml"
    path.write_text('version = 2\nimports = ["conf.d/*.toml"]\n')
    drop_in.parent.mkdir()
    drop_in.write_text(f'version = 2\n[plugins."{V2}".containerd]\ndefault_runtime_name = "runc"\n')
    assert configure("containerd", "--config", path) == 0
    assert f"changed {drop_in}" in capsys.readouterr().out
    assert 'default_runtime_name = "nvidia"' in drop_in.read_text()


def test_a_file_of_an_image_never_changes_one_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "host" / "50-cri.toml"
    outside.parent.mkdir()
    outside.write_text(f'version = 2\n[plugins."{V2}".containerd]\ndefault_runtime_name = "runc"\n')
    path = tmp_path / "image" / "config.toml"
    path.parent.mkdir()
    path.write_text(f'version = 2\nimports = ["{outside}"]\n')
    before = outside.read_text()
    assert configure("containerd", "--config", path) == 1
    assert str(outside) in capsys.readouterr().err
    assert outside.read_text() == before


def test_the_toolkits_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[nvidia-container-cli]\n#no-cgroups = false\n")
    words = ("nvidia-container-runtime", "--config", path, "--ctk-set", "no-cgroups=true", "--ctk-set", "mode=cdi")
    assert configure(*words) == 0
    assert "#no-cgroups = false\nno-cgroups = true\n" in path.read_text()
    assert configure(*words) == 0
    assert capsys.readouterr().out == f"changed {path}\nunchanged {path}\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("lxc",), 2, "docker, containerd"),
        (("docker", "--name", "A b"), 2, "letters, digits, dots, hyphens and underscores"),
        (("docker", "--name", ".x"), 2, "letters, digits, dots"),
        (("docker", "--name", "runc"), 2, "'runc' is a runtime that docker has by itself"),
        (("docker", "--name", "io.containerd.kata.v2"), 2, "docker has by itself"),
        (("containerd", "--name", "runc"), 2, "containerd has by itself"),
        (("containerd", "--name", "default"), 2, "containerd has by itself"),
        (("crio", "--name", "crun"), 2, "crio has by itself"),
        (("docker", "--path", "nvidia"), 2, "absolute path"),
        (("docker", "--ctk-set", "mode=cdi"), 2, "nvidia-container-runtime"),
        (("docker", "--config-schema", "3"), 2, "for containerd"),
        (("docker", "--drop-in", "none"), 2, "for containerd"),
        (("containerd", "--config-schema", "7"), 2, "1, 2, 3, 4"),
        (("containerd", "--config-schema", "x"), 2, "a number"),
        (("containerd", "--daemon-version", "new"), 2, "1.7.24"),
        (("nvidia-container-runtime",), 2, "--ctk-set KEY=VALUE"),
        (("nvidia-container-runtime", "--cdi", "--ctk-set", "mode=cdi"), 2, "is for engines"),
        (("nvidia-container-runtime", "--ctk-set", "mode"), 2, "KEY=VALUE"),
        (("nvidia-container-runtime", "--ctk-set", "mode=fast"), 2, "auto, legacy, cdi, csv, jit-cdi"),
        (("nvidia-container-runtime", "--ctk-set", "debug=/x"), 2, "both"),
        (("docker", "--daemon-version", "24.0.7", "--cdi"), 4, "has no CDI"),
    ],
    ids=lambda v: " ".join(map(str, v)) if isinstance(v, tuple) else None,
)
def test_what_cannot_be_meant_is_refused_before_anything_is_written(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    assert configure(*words, "--config", path) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())
    assert not path.exists()


@pytest.mark.parametrize("name", ["Nvidia", "gpu_a", "a.b", "GPU.mig-1_x"])
@pytest.mark.parametrize("engine", ["docker", "containerd", "crio", "podman"])
def test_a_name_that_the_engine_takes_is_taken_and_found_again(
    engine: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (engine, "--root", tmp_path, "--name", name)
    assert configure(*words) == 0
    changed = capsys.readouterr().out.split()
    assert changed[0] == "changed"
    text = Path(changed[1]).read_text()
    whole = json.loads(text) if engine == "docker" else tomllib.loads(text)
    assert name in str(whole)
    assert configure(*words) == 0
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["runc", "crun", "kata", "youki"])
def test_podman_keeps_the_names_that_its_package_lists(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert configure("podman", "--root", tmp_path, "--name", name) == 2
    assert "podman has by itself" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,}', "daemon.json:1:"),
        ('{"a": 1}\n// ours', "daemon.json:2:"),
        ('{"runtimes": []}', "a list"),
        ("[]", "one object"),
    ],
    ids=["trailing comma", "comment", "wrong type", "not an object"],
)
def test_a_file_that_is_wrong_is_exit_1_with_its_place_and_is_unchanged(
    file: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert configure("docker", "--config", file) == 1
    assert said in " ".join(capsys.readouterr().err.split())
    assert file.read_text() == text


def test_a_directory_in_the_files_place_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert configure("docker", "--config", tmp_path) == 1
    assert "it is a directory evidence the file was not touched remedy name the file in" in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_schema_of_a_file_that_is_there_is_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text("version = 2\n")
    assert configure("containerd", "--config", path, "--config-schema", "3") == 2
    assert "is in schema 2" in capsys.readouterr().err
    assert path.read_text() == "version = 2\n"


def test_nothing_heavy_is_loaded_for_one_file(tmp_path: Path) -> None:
    argv = (sys.executable, "-X", "importtime", "-m", "gpunode", "runtime", "configure", "docker", "--config")
    ran = subprocess.run([*argv, str(tmp_path / "d.json")], capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time")}
    heavy = {
        "paramiko",
        "rich.console",
        "gpunode.transport.base",
        "gpunode.facts.collect",
        "gpunode.planner.plan",
    }
    assert "gpunode.engines.docker.engine" in loaded
    assert not loaded & heavy


@pytest.mark.parametrize("name", ["configure", "show"])
def test_help_shows_two_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", name, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:")[2].strip().splitlines()
    assert [line.split()[:3] for line in examples] == [["gpunode", "runtime", name]] * 2


def test_show_reports_where_each_setting_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "show", "--recorded", str(EXAMPLES / "debian12-ready")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["default", "runtime", "nvidia", "/etc/docker/daemon.json:8"] in lines
    assert ["default", "runtime", "nvidia", "/etc/containerd/config.toml:9"] in lines
    assert ["SystemdCgroup", "of", "nvidia", "false", "/etc/containerd/config.toml:17"] in lines


def test_show_in_json_and_for_one_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "show", "containerd", "--json", "--recorded", str(EXAMPLES / "debian12-ready")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "gpunode.runtime-show/2"
    (engine,) = said["hosts"][0]["runtimes"]
    assert (engine["name"], engine["effective_default"], engine["differs_from_files"]) == (
        "containerd",
        "nvidia",
        False,
    )
    assert {"setting": "default runtime", "value": "nvidia", "source": "file", "path": "/etc/containerd/config.toml",
            "line": 9} in engine["settings"]  # fmt: skip


def test_show_refuses_a_name_that_is_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "show", "lxc"]) == 2
    assert "docker, containerd" in capsys.readouterr().err


def test_every_engine_of_an_image_is_configured_below_its_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--root: the places that an engine reads, and what its files import, are the image's."""
    image = tmp_path / "image"
    for path, text in {
        "etc/containerd/config.toml": 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
        "etc/containerd/conf.d/50-cri.toml": f'version = 2\n[plugins."{V2}"]\nsandbox_image = "pause"\n',
        "etc/crio/crio.conf.d/10-crun.conf": '[crio.runtime]\ndefault_runtime = "crun"\n'
        '[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\nmonitor_path = "/usr/bin/conmon"\n',
        "etc/containers/containers.conf": '[engine]\nevents_logger = "file"\n',
        "var/snap/microk8s/current/args/containerd-template.toml": "version = 2\n",
    }.items():
        (image / path).parent.mkdir(parents=True, exist_ok=True)
        (image / path).write_text(text)
    changed = []
    for name in ("docker", "containerd", "crio", "k3s", "rke2", "k0s", "microk8s", "podman"):
        assert configure(name, "--root", image) == 0, name
        out = capsys.readouterr().out.split()
        assert out[0::2] == ["changed"] * (len(out) // 2)
        changed += out[1::2]
        assert configure(name, "--root", image) == 0, name
        assert "unchanged" in capsys.readouterr().out
    assert all(path.startswith(f"{image}/") and "nvidia" in Path(path).read_text() for path in changed)
    names = [path.removeprefix(str(image)) for path in changed]
    assert names[:2] == ["/etc/docker/daemon.json", "/etc/containerd/conf.d/50-cri.toml"]
    assert "/etc/crio/crio.conf.d/99-nvidia.toml" in names
    assert 'monitor_path = "/usr/bin/conmon"' in (image / "etc/crio/crio.conf.d/99-nvidia.toml").read_text()


@pytest.mark.parametrize(
    ("programs", "config", "told"),
    [
        (("runc", "crun"), None, True),
        (("crun",), None, False),
        (("runc", "crun"), 'runtimes = ["crun", "runc"]', False),
        (("runc", "crun"), 'runtimes = ["runc", "crun"]', True),
    ],
)
def test_what_an_image_starts_below_nvidias_runtime_is_told_where_it_is_not_crios_own(
    programs: tuple[str, ...], config: str | None, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crun = '[crio.runtime]\ndefault_runtime = "crun"\n[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\n'
    files = {f"usr/bin/{name}": "#!/bin/sh\n" for name in programs} | {"etc/crio/crio.conf.d/10-crun.conf": crun}
    if config:
        files["etc/nvidia-container-runtime/config.toml"] = f"[nvidia-container-runtime]\n{config}\n"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    assert configure("crio", "--root", tmp_path) == 0
    said = capsys.readouterr()
    assert ("nvidia-container-runtime must find /usr/bin/crun" in " ".join((said.out + said.err).split())) is told


@pytest.mark.parametrize(
    ("name", "path", "text", "place"),
    [
        ("docker", "etc/docker/daemon.json", '{"a": }', ":1:7"),
        ("containerd", "etc/containerd/config.toml", "version = 2\n[plugins\n", ":2:9"),
        ("nvidia-container-runtime", "etc/nvidia-container-runtime/config.toml", "a = \n", ":1:5"),
    ],
)
def test_a_fault_in_an_image_is_named_by_its_path_out_here(
    name: str, path: str, text: str, place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    more = ("--ctk-set", "mode=cdi") if name == "nvidia-container-runtime" else ()
    assert configure(name, "--root", tmp_path, *more) == 1
    said = capfd.readouterr().err.replace("\n", "").replace(" ", "")
    assert f"gpunode:{file}{place}" in said
    assert said.count(str(file)) == said.count(f"/{path}")


def test_an_image_has_no_daemon_to_reload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert configure("docker", "--root", tmp_path) == 0
    assert "not reloaded" not in capsys.readouterr().err
    assert configure("docker", "--config", tmp_path / "daemon.json") == 0
    assert "docker was not reloaded; run: systemctl reload docker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("etc/docker/daemon.json", "/opt/daemon.json"),
        ("etc/docker/daemon.json", "../../../../../../opt/daemon.json"),
        ("etc/docker", "/opt"),
        ("etc", "/usr/../opt/etc"),
    ],
    ids=["absolute", "more dots than directories", "a directory", "a directory above it, which is not there yet"],
)  # fmt: skip
def test_a_link_of_an_image_is_followed_as_in_the_image(
    link: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "image"
    for directory in (tmp_path / "opt", image / "opt" / "etc" / "docker", (image / link).parent):
        directory.mkdir(parents=True, exist_ok=True)
    (image / link).symlink_to(target)
    assert configure("docker", "--root", image) == 0
    assert capsys.readouterr().out == f"changed {image}/etc/docker/daemon.json\n"
    (written,) = image.rglob("daemon.json") if link == "etc" else (image / "opt" / "daemon.json",)
    assert json.loads(written.read_text())["default-runtime"] == "nvidia"
    assert not list((tmp_path / "opt").iterdir()), "nothing out here was touched"
    assert (image / link).is_symlink()
    assert configure("docker", "--root", image) == 0
    assert capsys.readouterr().out == f"unchanged {image}/etc/docker/daemon.json\n"


def test_no_file_out_here_is_read_through_an_import_of_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its text would stand in the refusal."""
    (tmp_path / "secret").write_text("not toml: hunter2\n")
    conf_d = tmp_path / "image/etc/containerd/conf.d"
    conf_d.mkdir(parents=True)
    (conf_d / "x.toml").symlink_to(tmp_path / "secret")
    (conf_d / "more").symlink_to(tmp_path)
    (conf_d.parent / "config.toml").write_text('version = 2\nimports = ["conf.d/*.toml", "conf.d/more/*"]\n')
    code = configure("containerd", "--root", tmp_path / "image")
    said = "".join(capsys.readouterr())
    assert (code, "hunter2" in said, f"{tmp_path}/secret" in said) == (0, False, False)
    assert (tmp_path / "secret").read_text() == "not toml: hunter2\n"


def test_a_directory_among_cri_os_drop_ins_is_read_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sub = tmp_path / "etc/crio/crio.conf.d/sub"
    sub.mkdir(parents=True)
    assert configure("crio", "--root", tmp_path) == 0
    assert capsys.readouterr().out == f"changed {sub.parent}/99-nvidia.toml\n"
    (sub / "10-later").write_text('[crio.runtime]\ndefault_runtime = "runc"\n')
    assert configure("crio", "--root", tmp_path) == 0
    assert capsys.readouterr().out == f"changed {sub.parent}/zz-nvidia.toml\n"
    assert configure("crio", "--root", tmp_path) == 0
    assert capsys.readouterr().out == f"unchanged {sub.parent}/zz-nvidia.toml\n"


def test_links_in_a_circle_are_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "etc").symlink_to("etc")
    assert configure("docker", "--root", tmp_path) == 1
    assert "too many levels of symbolic links" in " ".join(capsys.readouterr().err.split())


def test_cri_os_drop_in_is_next_to_the_file_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crio.conf"
    path.write_text("")
    assert configure("crio", "--config", path) == 0
    assert capsys.readouterr().out == f"changed {tmp_path}/crio.conf.d/99-nvidia.toml\n"


def typed(directory: Path, words: str) -> subprocess.CompletedProcess[str]:
    """A line as a person types it, in `directory`."""
    line = f"{sys.executable} -m gpunode runtime configure docker --config daemon.json {words}"
    argv = ("bash", "-o", "pipefail", "-c", line)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--dry-run >/dev/full", 1, "cannot be printed: No space left on device"),
        ("--json >&-", 1, "stdout is closed"),
        ("--dry-run | true", 0, ""),
        ("--output nosuch/x --json", 2, "--output nosuch/x cannot be written"),
    ],
    ids=["full", "closed", "the reader has left", "no such directory"],
)
def test_where_the_result_cannot_go(words: str, code: int, said: str, tmp_path: Path) -> None:
    told = typed(tmp_path, words)
    assert (told.returncode, "internal error" in told.stderr) == (code, False)
    assert said in told.stderr
    assert code != 2 or not list(tmp_path.iterdir()), "exit 2 says that nothing was touched"


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["docker", "containerd", "crio", "podman"])
def test_a_program_that_is_not_there_is_named_until_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert configure(name, "--root", tmp_path) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert f"/usr/bin/nvidia-container-runtime is not below {tmp_path}: no container starts until it is" in said
    assert configure(name, "--root", tmp_path, "--json") == 0
    assert "is not below" in str(json.loads(capsys.readouterr().out)["notes"])
    program(tmp_path / "usr/lib/nvidia/runtime")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/nvidia-container-runtime").symlink_to("/usr/lib/nvidia/runtime")
    assert configure(name, "--root", tmp_path) == 0
    assert "is not below" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("there", "words", "path"),
    [
        ((), (), "/run/old"),
        (("usr/bin/nvidia-container-runtime",), (), "/usr/bin/nvidia-container-runtime"),
        (("usr/bin/nvidia-container-runtime", "run/old"), (), "/run/old"),
        (("run/old",), ("--path", "/opt/new"), "/opt/new"),
    ],
    ids=["neither is there", "only the usual one is there", "both are there", "another one is named"],
)
def test_a_path_that_works_is_kept_and_one_that_is_named_wins(
    there: tuple[str, ...], words: tuple[str, ...], path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in there:
        program(tmp_path / one)
    file = tmp_path / "etc/docker/daemon.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"runtimes": {"nvidia": {"path": "/run/old"}}}')
    assert configure("docker", "--root", tmp_path, *words) == 0
    assert json.loads(file.read_text())["runtimes"]["nvidia"]["path"] == path
    said = " ".join(capsys.readouterr().err.split())
    assert (f"{path} is not below {tmp_path}" in said) == (path[1:] not in there)
    assert ("/run/old, which runtimes.nvidia named, is not on this host's disk" in said) == (
        path == "/usr/bin/nvidia-container-runtime"
    )


def test_the_other_names_of_a_file_keep_the_old_text_and_that_is_said(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = file.with_name("other")
    os.link(file, other)
    before = other.read_bytes()
    assert configure("docker", "--config", file) == 0
    assert f"{file} is one of 2 names (hard links)" in " ".join(capsys.readouterr().err.split())
    assert other.read_bytes() == before
    assert configure("docker", "--config", file) == 0
    assert "hard links" not in capsys.readouterr().err


@pytest.mark.parametrize("schema", ["2", "3", "4"])
def test_no_message_names_a_version_that_nobody_gave(
    schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    for words in (("--json",), ("--drop-in", tmp_path / "x.toml"), ("--drop-in", "none", "--cdi", "--name", "gpu")):
        path.write_text(f"version = {schema}\noom_score = 0\n")
        configure("containerd", "--config", path, *words)
        said = "".join(capsys.readouterr())
        assert said
        assert not re.search(r"containerd \d+\.\d+\.\d|\"\d+\.\d+\.\d+\"", said), said
