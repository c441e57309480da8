"""A process of a user names files. Root reads none of them with its own rights, and waits for none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from tests.facts.hosts import make_root, run_probe
from tests.hostile.users import NOBODY, give, needs_root, open_directory, probe_here, process

pytestmark = needs_root
SECRET = "root:$y$canary-7f3a"


def secret(directory: Path) -> Path:
    path = directory / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", ["dockerd", "crio", "kubelet"])
@pytest.mark.parametrize("option", ["--config-file", "--config", "-c"])
def test_the_file_that_a_users_process_names_is_not_read(name: str, option: str) -> None:
    with open_directory() as directory, open_directory(NOBODY) as theirs:
        path = secret(directory)
        with process(theirs, name, option, str(path)):
            done = probe_here()
    assert done.returncode == 0
    assert SECRET.encode() not in done.stdout
    assert str(path).encode() not in done.stdout


def test_what_a_users_containerd_imports_is_not_read() -> None:
    with open_directory() as directory, open_directory(NOBODY) as theirs:
        config = theirs / "config.toml"
        config.write_text(f'imports = ["{secret(directory)}"]\n')
        give(config)
        with process(theirs, "containerd", "--config", str(config)):
            done = probe_here()
    assert SECRET.encode() not in done.stdout


def test_a_pipe_as_config_costs_no_time() -> None:
    """A probe that opens it waits for a writer for ever, and this test with it, up to the probe's limit."""
    with open_directory(NOBODY) as theirs:
        os.mkfifo(theirs / "config")
        give(theirs / "config")
        with process(theirs, "containerd", "--config", str(theirs / "config")):
            done = probe_here()
    assert done.stdout.rstrip().endswith(b"@end")


# ---- the host's own containerd, whose config names what users can change


def looked_at(root: Path) -> HostFacts:
    done = run_probe(("sh",), root)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07")


def with_imports(root: Path, *patterns: str) -> None:
    listed = ", ".join(f'"{pattern}"' for pattern in patterns)
    (root / "etc/containerd/main.toml").write_text(f"version = 2\nimports = [{listed}]\n")


def test_an_import_from_a_users_directory_is_named_and_not_read(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"containerd": f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n'})
    (root / "home").mkdir()
    (root / "home/theirs.toml").symlink_to(secret(root))
    give(root / "home")
    with_imports(root, "/home/*.toml")
    host = looked_at(root)
    assert host.file("/home/theirs.toml").unread == f"/home belongs to uid {NOBODY}"
    assert SECRET not in "".join(file.text or "" for file in host.files.values())
    assert "config dump" not in (tmp_path / "asked").read_text()  # it would read them all as root


def test_a_config_that_is_a_link_into_a_users_directory_is_not_read(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "home").mkdir()
    (root / "home/daemon.json").write_text(SECRET)
    give(root / "home")
    (root / "etc/docker/daemon.json").unlink()
    (root / "etc/docker/daemon.json").symlink_to("/home/daemon.json")
    file = looked_at(root).file("/etc/docker/daemon.json")
    assert (file.text, file.unread) == (None, f"/home belongs to uid {NOBODY}")


def test_a_users_file_in_a_directory_of_root_is_what_the_daemon_reads_too(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    give(root / "etc/docker/daemon.json")
    assert looked_at(root).file("/etc/docker/daemon.json").text is not None


@pytest.mark.parametrize("name", ["a b.toml", "x bytes=0 mode=644 symlink=y.toml", "back\\slash.toml", "x absent.toml"])
def test_a_name_with_blanks_is_one_file_and_no_header(name: str, tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = f"/etc/containerd/conf.d/{name}"
    (root / path[1:]).write_text("version = 2\n")
    host = looked_at(root)
    assert host.file(path).text == "version = 2\n"
    containerd = next(engine for engine in host.runtimes if engine.name == "containerd")
    assert path in containerd.imports
    assert not {"/etc/containerd/conf.d/x", "/etc/containerd/conf.d/a"} & set(host.files)


def test_an_import_with_a_blank_is_one_path(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    directory = root / "etc/containerd/site/my conf"
    directory.mkdir(parents=True)
    (directory / "a.toml").write_text("version = 2\n")
    with_imports(root, "/etc/containerd/site/my conf/*.toml")
    containerd = next(engine for engine in looked_at(root).runtimes if engine.name == "containerd")
    assert containerd.imports == ("/etc/containerd/site/my conf/a.toml",)


def test_imports_without_end_come_to_an_end(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    with_imports(root, "/etc/containerd/chain/0.toml")
    (root / "etc/containerd/chain").mkdir()
    for number in range(150):
        (root / f"etc/containerd/chain/{number}.toml").write_text(f'imports = ["{number + 1}.toml"]\n')
    containerd = next(engine for engine in looked_at(root).runtimes if engine.name == "containerd")
    assert len(containerd.imports) == 99


# ---- a docker without root: its user's rights, and no more


def rootless(root: Path, *flags: str) -> None:
    directory = root / "proc/990"
    directory.mkdir()
    ids = "\t".join([str(NOBODY)] * 4)
    (directory / "comm").write_text("dockerd\n")
    (directory / "status").write_text(f"Name:\tdockerd\nPPid:\t77\nUid:\t{ids}\nGid:\t{ids}\n")
    (directory / "cmdline").write_text("\0".join(("dockerd", *flags, "")))
    (directory / "environ").write_text("")


def read_for_them(flag: str, prepare: str) -> FileFacts:
    with open_directory() as root:
        make_root(root)
        secret(root)
        home = root / "srv"
        home.mkdir()
        give(home)
        path = home / "daemon.json"
        if prepare == "own":
            path.write_text('{"debug": true}')
            path.chmod(0o600)
            give(path)
        elif prepare == "link":
            path.symlink_to(root / "secret")
        elif prepare == "pipe":
            os.mkfifo(path)
            give(path)
        elif prepare == "endless":
            path.symlink_to("/dev/zero")
        elif prepare == "large":
            path.write_text("x" * 200_000)
            give(path)
        rootless(root, "--config-file", flag)
        host = looked_at(root)
        assert SECRET not in "".join(file.text or "" for file in host.files.values())
        return host.file(flag)


@pytest.mark.parametrize(
    ("flag", "prepare", "unread"),
    [
        ("/secret", "", "permission denied"),
        ("/srv/daemon.json", "link", "permission denied"),
        ("/srv/daemon.json", "pipe", "not a regular file"),
        ("/srv/daemon.json", "endless", "not a regular file"),
        ("/srv/daemon.json", "large", "over 131072 bytes"),
    ],
    ids=["root's file", "a link to it", "a pipe", "a device", "too large"],
)
def test_a_users_docker_names_what_its_user_cannot_read(flag: str, prepare: str, unread: str) -> None:
    file = read_for_them(flag, prepare)
    assert (file.text, file.unread) == (None, unread)


def test_a_users_docker_has_its_own_file_read() -> None:
    file = read_for_them("/srv/daemon.json", "own")
    assert (file.text, file.mode, file.unread) == ('{"debug": true}', 0o600, None)


def test_a_docker_in_a_user_namespace_names_roots_file() -> None:
    """As rootlesskit starts it, with real namespaces."""
    with open_directory() as directory, open_directory(NOBODY) as theirs:
        path = secret(directory)
        shutil.copyfile("/bin/sh", theirs / "dockerd")
        (theirs / "dockerd").chmod(0o755)
        leads = ("unshare", "--user", "--map-root-user", "--mount", str(theirs / "dockerd"), "-c", "echo; read line")
        with subprocess.Popen(
            (*leads, "dockerd", "--config-file", str(path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
        ) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            if running.stdout.readline() != b"\n":
                pytest.skip("this machine gives users no namespaces")
            host = assemble(probe_here().stdout, "here")
            running.stdin.close()
    (engine,) = [engine for engine in host.runtimes if engine.pid == running.pid]
    assert (engine.name, bool(engine.user), engine.config_path) == ("docker", True, str(path))
    assert host.file(str(path)).unread == "permission denied"


@pytest.mark.parametrize("name", ["cmdline", "environ"])
def test_a_process_that_hangs_who_looks_at_it_is_left(name: str) -> None:
    """A user can back these with a file system of theirs that never answers; a pipe without a writer does the same."""
    with open_directory() as root:
        make_root(root)
        rootless(root)
        (root / "proc/990" / name).unlink()
        os.mkfifo(root / "proc/990" / name)
        host = looked_at(root)
    assert [engine.name for engine in host.runtimes] == ["docker", "docker", "containerd"]


def test_the_root_of_a_host_is_judged_as_a_directory_like_others(tmp_path: Path) -> None:
    """Of the host itself, whose root is no directory that a test made: "/" has no parts to follow."""
    script = f"R= ME=$(id -u) MY_GROUP=$(id -g) T={tmp_path}\n{resources.script('trust')}\n"
    script += 'if trusted /; then echo trusted; else echo "$WHY_NOT"; fi'
    done = subprocess.run(("sh", "-c", script), capture_output=True, text=True, check=True)
    owner = Path("/").stat()
    roots_alone = owner.st_uid in (0, os.getuid()) and not owner.st_mode & 0o022
    assert done.stdout.startswith("trusted\n" if roots_alone else "/ ")
