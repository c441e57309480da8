"""Which dockerd is whose, and which executables its file names in vain; as each shell sees it."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.facts.runtimes import parse_runtimes
from gpunode.facts.toolkit import parse_toolkit
from gpunode.facts.wire import decode
from gpunode.model.facts import RuntimeFacts
from tests.facts.hosts import ROOTS, in_namespaces, make_root, run_probe

PASSWD = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:Alice:/srv/home/alice:/bin/bash\n"
SHELLS = [("dash",), ("bash",), ("busybox", "ash")]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[-1])


def dockers(shell: tuple[str, ...], root: Path) -> tuple[RuntimeFacts, ...]:
    done = run_probe(shell, root)
    assert done.returncode == 0, done.stderr
    return tuple(engine for engine in parse_runtimes(decode(done.stdout), {}) if engine.name == "docker")


def add(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rootless(root: Path, pid: int, *flags: str) -> None:
    add(root, "etc/passwd", PASSWD)
    add(root, f"proc/{pid}/comm", "dockerd\n")
    ids = "Uid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n"
    add(root, f"proc/{pid}/status", f"Name:\tdockerd\nPPid:\t77\n{ids}")
    add(root, f"proc/{pid}/cmdline", "\0".join(("dockerd", *flags, "")))
    unit = "/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service"
    add(root, f"proc/{pid}/cgroup", f"0::{unit}\n")


@each_shell
def test_a_users_dockerd_is_not_taken_for_the_hosts(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    rootless(root, 990)
    hosts, theirs = dockers(shell, root)
    assert (hosts.user, hosts.config_path, hosts.flags) == (None, "/etc/docker/daemon.json", ("-H", "fd://"))
    assert theirs.user == "alice"
    assert theirs.config_path == "/srv/home/alice/.config/docker/daemon.json"
    assert theirs.socket == "/run/user/1000/docker.sock"
    assert (theirs.label, theirs.owner, theirs.pid) == ("docker@alice", "1000:100", 990)


@each_shell
def test_a_users_dockerd_is_asked_and_what_makes_no_sense_counts_as_no_answer(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_root(tmp_path)
    rootless(root, 990)
    sections = decode(run_probe(shell, root).stdout)
    for answer, default in (
        ('{"DefaultRuntime": "crun", "ServerVersion": "27.1.2"}', "crun"),
        ("[]", None),
        ("x", None),
    ):
        told = replace(sections.commands["docker:990:info"], rc=0, text=answer)
        seen = parse_runtimes(replace(sections, commands={**sections.commands, "docker:990:info": told}), {})
        theirs = next(engine for engine in seen if engine.user)
        assert (theirs.effective_default, theirs.active) == (default, default is not None)


@each_shell
def test_its_own_environment_says_where_a_users_dockerd_looks(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    rootless(root, 990)
    words = ("HOME=/x", "XDG_CONFIG_HOME=/srv/conf", "SECRET=1", "XDG_RUNTIME_DIR=/tmp/run-1000", "")
    add(root, "proc/990/environ", "\0".join(words))
    (theirs,) = (engine for engine in dockers(shell, root) if engine.user)
    assert (theirs.config_path, theirs.socket) == ("/srv/conf/docker/daemon.json", "/tmp/run-1000/docker.sock")
    assert b"SECRET" not in run_probe(shell, root).stdout


@each_shell
@pytest.mark.parametrize(
    ("name", "sees"), [("hosts", False), ("nvidia-container-runtime/x", True)], ids=["newer", "there"]
)
def test_a_users_dockerd_sees_what_was_in_etc_when_it_started(
    shell: tuple[str, ...], tmp_path: Path, name: str, sees: bool
) -> None:
    root = make_root(tmp_path)
    rootless(root, 990)
    add(root, f"proc/990/root/etc/{name}", "")
    assert [engine.sees_toolkit for engine in dockers(shell, root) if engine.user] == [sees]


@each_shell
def test_a_users_dockerd_alone_does_not_make_a_docker_of_the_host(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for name in ("comm", "status", "cmdline"):
        (root / "proc/900" / name).unlink()
    rootless(root, 990, "--config-file", "/srv/d.json", "-H", "unix:///srv/d.sock")
    (theirs,) = dockers(shell, root)
    assert (theirs.user, theirs.config_path, theirs.socket) == ("alice", "/srv/d.json", "/srv/d.sock")


@each_shell
def test_an_executable_that_the_file_names_and_the_disk_lacks(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    here, gone = "/usr/local/bin/nvidia-container-runtime", "/run/nvidia/toolkit/nvidia-container-runtime.cdi"
    add(root, here[1:], "#!/bin/sh\n")
    (root / here[1:]).chmod(0o755)
    entries = f'{{"a": {{"path": "{here}"}}, "b": {{"path": "{gone}"}}, "c": {{"path": "nvidia-container-runtime"}}}}'
    add(root, "etc/docker/daemon.json", f'{{"runtimes": {entries}}}'.replace("/nvidia/", "\\/nvidia\\/"))
    assert [docker.missing_binaries for docker in dockers(shell, root)] == [(gone,)]


@each_shell
@pytest.mark.parametrize(
    ("second", "main"), [(940, 900), (85, 900), (940, 940)], ids=["later", "earlier", "other unit"]
)
def test_of_two_dockerds_of_root_all_is_of_one_and_the_other_is_named(
    shell: tuple[str, ...], tmp_path: Path, second: int, main: int
) -> None:
    root = make_root(tmp_path)
    units = {900: "docker.service", second: "docker-ci.service"}
    if main != 900:
        units = {900: "docker-ci.service", second: "docker.service"}
    words = ("/usr/bin/dockerd", "--config-file=/etc/docker/ci.json", "-H", "unix:///run/ci.sock", "")
    add(root, f"proc/{second}/cmdline", "\0".join(words))
    add(root, f"proc/{second}/comm", "dockerd\n")
    add(root, f"proc/{second}/status", f"Name:\tdockerd\nPPid:\t1\n{ROOTS}")
    (root / f"proc/{second}/exe").symlink_to("/usr/bin/dockerd")
    in_namespaces(root, str(second))
    for pid, unit in units.items():
        add(root, f"proc/{pid}/cgroup", f"0::/system.slice/{unit}\n")
    (engine,) = dockers(shell, root)
    other = second if main == 900 else 900
    assert (engine.pid, engine.unit, engine.others) == (main, "docker.service", ((other, "docker-ci.service"),))
    seen = (
        ("/etc/docker/daemon.json", "/var/run/docker.sock") if main == 900 else ("/etc/docker/ci.json", "/run/ci.sock")
    )
    assert (engine.config_path, engine.socket) == seen
    assert ("--config-file=/etc/docker/ci.json" in engine.flags) is (main != 900)


def stopped(root: Path, *environment: str) -> Path:
    """No dockerd runs; systemd names these lines of its environment."""
    said = "\n".join(environment)
    words = "/usr/bin/dockerd -H fd:// $DOCKER_OPTS ${ONE} --x"
    start = f"ExecStart={{ path=/usr/bin/dockerd ; argv[]={words} ; ignore_errors=no }}"
    block = "\n".join((start, "Id=docker.service", "LoadState=loaded"))  # in systemd's own order
    systemctl = (
        f"#!/bin/sh\ncase $* in *Environment*) cat <<'END'\n{said}\nEND\n;; *) cat <<'END'\n{block}\nEND\n;; esac\n"
    )
    make_root(root, {"systemctl": systemctl, "dockerd": "#!/bin/sh\n"})
    for name in ("comm", "status", "cmdline"):
        (root / "proc/900" / name).unlink()
    return root


OPTS = "EnvironmentFiles=/etc/default/docker (ignore_errors=yes)"


@each_shell
@pytest.mark.parametrize(
    ("environment", "text", "words"),
    [
        ((OPTS,), "DOCKER_OPTS=x\nDOCKER_OPTS=\"--ip=::1  -D\"\nONE=a b\n", ("--ip=::1", "-D", "a b")),
        (("Environment=A=b", "EnvironmentFile=/etc/default/docker (ignore_errors=yes)"), "#DOCKER_OPTS=-D\n", ()),
        ((OPTS,), None, ()),
        ((OPTS, "EnvironmentFiles=/etc/d (ignore_errors=no)"), "DOCKER_OPTS='-D' \nONE=1", ("-D", "1")),
        (('Environment="DOCKER_OPTS=-D -l"',), None, ("$DOCKER_OPTS",)),
        (("Environment=DOCKER_OPTS=-l", OPTS), "DOCKER_OPTS=-D\n", ("-D",)),
        ((OPTS,), "DOCKER_OPTS=-D \\\n", ("$DOCKER_OPTS",)),
        ((OPTS,), "DOCKER_OPTS=\"-D --label='a b'\"\n", ("$DOCKER_OPTS",)),
        (("EnvironmentFiles=/etc/default/d* (ignore_errors=yes)",), "DOCKER_OPTS=-D\n", ("$DOCKER_OPTS", "${ONE}")),
        ((), None, ()),
    ],
    ids=["a file", "none set", "no file", "both files", "inline", "a file wins", "goes on", "quotes", "glob", "none"],
)  # fmt: skip
def test_a_stopped_dockerd_has_the_flags_of_its_units_variables(
    shell: tuple[str, ...], tmp_path: Path, environment: tuple[str, ...], text: str | None, words: tuple[str, ...]
) -> None:
    root = stopped(tmp_path, *environment)
    add(root, "etc/d", "")
    if text is not None:
        add(root, "etc/default/docker", text)
    (engine,) = dockers(shell, root)
    assert engine.flags == ("-H", "fd://", *words, "--x")


def test_a_file_that_others_write_says_nothing_of_its_flags(tmp_path: Path) -> None:
    root = stopped(tmp_path, OPTS)
    add(root, "etc/default/docker", "DOCKER_OPTS=-D\n")
    (root / "etc/default/docker").chmod(0o666)
    (engine,) = dockers(("sh",), root)
    assert engine.flags == ("-H", "fd://", "$DOCKER_OPTS", "${ONE}", "--x")


# Its 22nd number is when it started, in hundredths of a second since boot; the name may hold anything.
STAT = "900 (dockerd) x) S 1 900 900 0 -1 4194560 9 8 0 0 3 2 0 0 20 0 14 0 {ticks} 1990 23 18446744073709551615\n"


@each_shell
@pytest.mark.parametrize(
    ("stat", "boot", "started_at"),
    [
        (STAT.format(ticks=12399), "intr 5\nbtime 1795000000\n", 1_795_000_123),
        (STAT.format(ticks=12399), "intr 5\n", None),
        ("900 (dockerd) S 1\n", "btime 1795000000\n", None),
    ],
    ids=["whole seconds", "no time of boot", "cut short"],
)
def test_when_dockerd_started(
    shell: tuple[str, ...], tmp_path: Path, stat: str, boot: str, started_at: int | None
) -> None:
    root = make_root(tmp_path)
    add(root, "proc/900/stat", stat)
    add(root, "proc/stat", boot)
    (engine,) = dockers(shell, root)
    assert engine.started_at == started_at


@pytest.mark.parametrize("shell", SHELLS[:2], ids=lambda words: words[-1])  # busybox's own stat has no birth
def test_an_upgrade_of_the_hook_is_not_its_beginning(shell: tuple[str, ...], tmp_path: Path) -> None:
    """The file is made anew, and the package's own directory is not."""
    root = make_root(tmp_path)
    own = root / "usr/share/doc/nvidia-container-toolkit"
    own.mkdir(parents=True)
    born = subprocess.run(["stat", "-c", "%W", own], capture_output=True, text=True, check=True).stdout.strip()
    if not born.isdigit() or int(born) == 0:
        pytest.skip("this file system does not say when a directory was made")
    time.sleep(1.1)  # times of files are compared in whole seconds
    add(root, "usr/bin/nvidia-container-runtime-hook", "#!/bin/sh\n")
    (root / "usr/bin/nvidia-container-runtime-hook").chmod(0o755)
    changed = int((root / "usr/bin/nvidia-container-runtime-hook").stat().st_ctime)
    assert hook_since(shell, root) == int(born) < changed
    own.rmdir()
    assert hook_since(shell, root) == changed


def hook_since(shell: tuple[str, ...], root: Path) -> int | None:
    return parse_toolkit(decode(run_probe(shell, root).stdout)).hook_since
