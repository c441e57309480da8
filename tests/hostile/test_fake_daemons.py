"""Any user may name a process "containerd". Root runs nothing of it, and takes none of it for an engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from gpunode.planner.engines.rootless import named
from gpunode.render.detect_text import detect_text
from tests.facts.hosts import ROOTS, in_namespaces, make_root, run_probe
from tests.facts.test_probe import shell
from tests.hostile.users import NOBODY, give, leave_a_mark, needs_root, open_directory, probe_here, process, this_host

__all__ = ["shell"]
pytestmark = needs_root
DAEMONS = ("containerd", "dockerd", "crio", "kubelet", "k3s-server")


@pytest.mark.parametrize("name", DAEMONS)
def test_the_program_of_a_users_process_is_not_run(name: str) -> None:
    with open_directory(NOBODY) as directory, process(directory, name) as running:
        leave_a_mark(directory / name, directory / "mark")
        host = this_host()
        assert not (directory / "mark").exists()
    assert running.pid not in [engine.pid for engine in host.runtimes]
    (named,) = [one for one in host.ignored if one.pid == running.pid]
    assert (named.comm, named.uid) == (name, NOBODY)
    assert f"a process called {name} (pid {running.pid}): it belongs to uid {NOBODY}" in detect_text(host)


def test_a_program_that_root_started_from_a_users_directory_is_not_run_again() -> None:
    with open_directory(NOBODY) as directory, process(directory, "containerd", uid=0) as running:
        leave_a_mark(directory / "containerd", directory / "mark")
        host = this_host()
        assert not (directory / "mark").exists()
    (named,) = [one for one in host.ignored if one.pid == running.pid]
    assert named.uid == 0
    assert "may be written by everybody" in named.why or f"belongs to uid {NOBODY}" in named.why


def test_a_program_that_a_user_put_into_roots_path_is_not_run() -> None:
    with open_directory(NOBODY) as directory:
        for name in ("containerd", "k3s", "podman", "nvidia-ctk", "crictl", "systemctl", "stat", "id", "sed"):
            leave_a_mark_at(directory / name, directory / "mark")
        done = probe_here(PATH=f"{directory}:/usr/sbin:/usr/bin:/sbin:/bin")
        assert not (directory / "mark").exists()
        assert str(directory).encode() not in done.stdout


def leave_a_mark_at(program: Path, mark: Path) -> None:
    program.touch()
    leave_a_mark(program, mark)


# ---- in a root of our own, where a process can be anything


def looked_at(root: Path, shell: tuple[str, ...] = ("sh",)) -> HostFacts:
    done = run_probe(shell, root)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07")


def own_containerd(host: HostFacts) -> bool:
    return any(engine.name == "containerd" and engine.pid == 812 for engine in host.runtimes)


def marked_root(tmp_path: Path) -> Path:
    """The containerd of this host says that it was run."""
    return make_root(tmp_path, {"containerd": f"#!/bin/sh\ntouch {tmp_path}/mark\n"})


def test_the_hosts_own_containerd_is_run_and_believed(tmp_path: Path) -> None:
    root = marked_root(tmp_path)
    host = looked_at(root)
    assert (own_containerd(host), (tmp_path / "mark").exists(), host.ignored) == (True, True, ())


@pytest.mark.parametrize("kind", ["pid", "mnt", "user"])
def test_a_root_of_a_container_is_not_the_hosts(kind: str, tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for path in (root / "proc/812/ns").iterdir():
        path.unlink()
    in_namespaces(root, "812", **{kind: "other"})
    (root / "proc/812/cgroup").write_text("0::/system.slice/docker-0123456789ab.scope\n")
    host = looked_at(root)
    assert not own_containerd(host)
    assert [(one.pid, one.uid) for one in host.ignored] == [(812, 0)]


def test_a_snap_has_a_mount_namespace_of_its_own_and_a_unit_of_the_system(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"systemctl": "#!/bin/sh\necho Id=containerd.service\necho LoadState=loaded\n"})
    (root / "proc/812/ns/mnt").unlink()
    (root / "proc/812/ns/mnt").touch()
    assert own_containerd(looked_at(root))


@pytest.mark.parametrize("uids", ["1000\t0\t0\t0", "0\t1000\t0\t0", "65534\t65534\t65534\t65534"])
def test_a_set_uid_process_is_its_users(uids: str, tmp_path: Path) -> None:
    root = marked_root(tmp_path)
    (root / "proc/812/status").write_text(f"Name:\tcontainerd\nPPid:\t1\nUid:\t{uids}\nGid:\t0\t0\t0\t0\n")
    host = looked_at(root)
    assert not own_containerd(host)
    assert [one.pid for one in host.ignored] == [812]


def group_writable(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)
    give_to_group(path, NOBODY)


def give_to_group(path: Path, gid: int) -> None:
    os.chown(path, 0, gid)


def for_everybody(path: Path) -> None:
    path.chmod(0o1777)


def set_uid(path: Path) -> None:
    path.chmod(0o4755)


@pytest.mark.parametrize(
    ("where", "spoil", "why"),
    [
        ("usr/bin/containerd", give, f"its program /usr/bin/containerd belongs to uid {NOBODY}"),
        ("usr/bin", give, f"/usr/bin belongs to uid {NOBODY}"),
        ("usr", for_everybody, "/usr may be written by everybody"),
        ("usr/bin", group_writable, f"/usr/bin may be written by the group {NOBODY}"),
        ("usr/bin/containerd", for_everybody, "its program /usr/bin/containerd may be written by everybody"),
        ("usr/bin/containerd", set_uid, "its program /usr/bin/containerd is set-uid"),
    ],
    ids=[
        "a user's file",
        "a user's directory",
        "sticky does not help",
        "a group's directory",
        "everybody's file",
        "set-uid",
    ],
)
def test_a_program_that_others_can_change_is_not_run(
    where: str, spoil: Callable[[Path], object], why: str, shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = marked_root(tmp_path)
    spoil(root / where)
    host = looked_at(root, shell)
    if spoil is not set_uid:  # which is root's, and may be run
        assert not (tmp_path / "mark").exists()
    assert why in [one.why for one in host.ignored if one.pid == 812]


def test_a_link_through_a_users_directory_leads_nowhere(tmp_path: Path) -> None:
    root = marked_root(tmp_path)
    (root / "home").mkdir()
    give(root / "home")
    (root / "home/containerd").symlink_to("/usr/bin/containerd")
    (root / "proc/812/exe").unlink()
    (root / "proc/812/exe").symlink_to("/home/containerd")
    (root / "usr/bin/containerd").chmod(0o755)
    host = looked_at(root)
    assert [one.why for one in host.ignored] == [f"/home belongs to uid {NOBODY}"]


@pytest.mark.parametrize(("group", "read"), [("microk8s:x:998:ann", True), ("games:x:998:ann", False)])
def test_microk8s_lets_its_group_write_its_arguments(group: str, read: bool, tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/group").write_text(f"root:x:0:\n{group}\n")
    directory = root / "var/snap/microk8s/8148/args"
    directory.mkdir(parents=True)
    (root / "var/snap/microk8s/current").symlink_to("8148")
    (directory / "containerd-template.toml").write_text("version = 2\n")
    give_to_group(directory, 998)
    directory.chmod(0o770)
    file = looked_at(root).file("/var/snap/microk8s/current/args/containerd-template.toml")
    assert (file.text is not None) is read
    assert file.unread == (None if read else "/var/snap/microk8s/8148/args may be written by the group 998")


@pytest.mark.parametrize(("group", "runs"), [("staff:x:50:", True), ("ftp:x:50:", False)])
def test_debians_staff_is_the_system_in_usr_local(group: str, runs: bool, tmp_path: Path) -> None:
    root = marked_root(tmp_path)
    (root / "etc/group").write_text(f"root:x:0:\n{group}\n")
    (root / "usr/local/bin").mkdir(parents=True)
    (root / "usr/bin/containerd").rename(root / "usr/local/bin/containerd")
    for name in ("usr/local", "usr/local/bin"):
        give_to_group(root / name, 50)
        (root / name).chmod(0o2775)
    (root / "proc/812/exe").unlink()
    (root / "proc/812/exe").symlink_to("/usr/local/bin/containerd (deleted)")
    host = looked_at(root)
    assert (own_containerd(host), (tmp_path / "mark").exists()) == (runs, runs)


def add_process(root: Path, pid: int, *argv: str) -> None:
    directory = root / "proc" / str(pid)
    directory.mkdir()
    (directory / "comm").write_text("containerd\n")
    (directory / "status").write_text("Name:\tcontainerd\nPPid:\t77\n" + ROOTS)
    (directory / "cmdline").write_text("\0".join((*argv, "")))
    (directory / "exe").symlink_to("/usr/bin/containerd")
    in_namespaces(root, str(pid))


@pytest.mark.parametrize(
    "argv",
    [
        ("/usr/bin/containerd", "--config", "/etc/containerd/main.toml", "config", "dump"),
        ("/usr/bin/containerd", "--version"),
        ("/bin/sh", "/usr/bin/containerd", "config", "default"),
    ],
    ids=["config dump", "version", "a script's default"],
)
def test_a_question_of_a_probe_beside_this_one_is_no_second_containerd(argv: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    add_process(root, 820, *argv)
    host = looked_at(root)
    assert [engine.pid for engine in host.runtimes if engine.name == "containerd"] == [812]
    assert host.ignored == ()


@pytest.mark.parametrize("name", DAEMONS)
def test_a_program_of_the_host_that_merely_runs_under_that_name_is_no_daemon(name: str, tmp_path: Path) -> None:
    """A script called containerd, whose program is the shell; sleep, started as containerd."""
    root = make_root(tmp_path)
    add_process(root, 820, "/bin/sh", f"/usr/local/bin/{name}", "--config", "/etc/other.toml")
    (root / "proc/820/comm").write_text(f"{name}\n")
    (root / "proc/820/exe").unlink()
    (root / "proc/820/exe").symlink_to("/usr/bin/sleep")
    host = looked_at(root)
    assert own_containerd(host)
    assert 820 not in {engine.pid for engine in host.runtimes}
    assert [(one.pid, one.why) for one in host.ignored] == [(820, f"its program is /usr/bin/sleep, and no {name}")]


def test_a_process_that_has_just_ended_is_nothing(tmp_path: Path) -> None:
    """A zombie has neither a program nor arguments."""
    root = make_root(tmp_path)
    add_process(root, 820)
    (root / "proc/820/exe").unlink()
    (root / "proc/820/cmdline").write_text("")
    host = looked_at(root)
    assert (len([e for e in host.runtimes if e.name == "containerd"]), host.ignored) == (1, ())


def test_a_daemons_child_before_it_runs_another_program_is_no_second_daemon(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    add_process(root, 820, "/usr/bin/containerd", "--config", "/etc/containerd/main.toml")
    (root / "proc/820/status").write_text("Name:\tcontainerd\nPPid:\t812\n" + ROOTS)
    assert [e.pid for e in looked_at(root).runtimes if e.name == "containerd"] == [812]


def test_many_fakes_are_named_up_to_a_limit(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for pid in range(1000, 1100):
        add_process(root, pid, "/usr/bin/containerd")
        (root / f"proc/{pid}/status").write_text("PPid:\t1\nUid:\t1000\t1000\t1000\t1000\nGid:\t0\t0\t0\t0\n")
    host = looked_at(root)
    assert own_containerd(host)
    assert len(host.ignored) == 20


# ---- other words that a user's process could put in


def add_users(root: Path, pid: int, comm: str, **namespaces: str) -> None:
    directory = root / "proc" / str(pid)
    directory.mkdir()
    (directory / "comm").write_text(f"{comm}\n")
    (directory / "status").write_text("PPid:\t1\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n")
    (directory / "environ").write_text("")
    (directory / "cmdline").write_text(f"{comm}\0")
    in_namespaces(root, str(pid), **namespaces)


@pytest.mark.parametrize("comm", ["kubelet", "k3s-server", "k3s-agent", "kubelite", "k0s", "rke2"])
def test_a_users_kubelet_makes_no_node(comm: str, tmp_path: Path) -> None:
    root = make_root(tmp_path)
    add_users(root, 990, comm)
    assert not looked_at(root).kubernetes.kubelet


def test_a_users_shims_are_no_containers_of_the_host(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    add_users(root, 990, "containerd-shim")
    (root / "proc/990/cmdline").write_text("containerd-shim\0-namespace\0k8s.io\0")
    containerd = next(engine for engine in looked_at(root).runtimes if engine.name == "containerd")
    assert containerd.containers_running == 0


def test_a_dockerd_of_a_user_outside_a_user_namespace_is_no_docker_without_root(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    add_users(root, 990, "dockerd")
    add_users(root, 991, "dockerd", user="theirs")
    host = looked_at(root)
    assert [engine.pid for engine in host.runtimes if engine.user] == [991]
    assert [one.pid for one in host.ignored] == [990]


SYSTEMCTL = """#!/bin/sh
echo Id=docker.service
echo LoadState=loaded
echo ActiveState=inactive
echo UnitFileState={}
echo 'ExecStart={{ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// ; }}'
"""


@pytest.mark.parametrize(("state", "label"), [("enabled", "docker"), ("disabled", "docker@1000")])
def test_beside_a_stopped_docker_of_the_host_a_users_is_not_meant_by_docker(
    state: str, label: str, tmp_path: Path
) -> None:
    """Docker's guide disables the host's docker where a user has one (docs.docker.com/engine/security/rootless)."""
    root = make_root(tmp_path, {"systemctl": SYSTEMCTL.format(state), "dockerd": "#!/bin/sh\n"})
    (root / "proc/900/comm").write_text("other\n")
    add_users(root, 990, "dockerd", user="theirs")
    assert [engine.label for engine in named(looked_at(root), "docker")] == [label]


def as_nobody(root: Path) -> HostFacts:
    done = run_probe(("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh"), root)
    assert (done.returncode, done.stderr) == (0, b"")
    return assemble(done.stdout, "gpu07")


@pytest.mark.parametrize(
    ("cgroup", "nspid", "known"),
    [
        ("/system.slice/containerd.service", "812", True),
        ("/system.slice/docker-0123.scope", "812", False),
        ("/system.slice/containerd.service", "812\t7", False),
        ("/system.slice/containerd.service/docker-0123.scope/system.slice/containerd.service", "812", False),
    ],
    ids=["the system's service", "a container", "another pid namespace", "systemd in a container"],
)
def test_who_may_not_see_namespaces_goes_by_the_unit(cgroup: str, nspid: str, known: bool) -> None:
    tools = {"systemctl": "#!/bin/sh\necho Id=containerd.service\necho LoadState=loaded\n"}
    with open_directory() as root:
        make_root(root, tools)
        (root / "proc/812/ns").chmod(0)
        (root / "proc/812/cgroup").write_text(f"0::{cgroup}\n")
        (root / "proc/812/status").write_text("PPid:\t1\n" + ROOTS + f"NSpid:\t{nspid}\n")
        assert own_containerd(as_nobody(root)) is known


def test_in_a_chroot_no_process_of_a_user_is_an_engine(tmp_path: Path) -> None:
    """It sees the machine that it is made on, whose users have dockers of their own."""
    root = make_root(tmp_path / "image")
    (root / "proc/1/root").symlink_to(tmp_path)
    add_users(root, 990, "dockerd", user="theirs")
    host = looked_at(root)
    assert [engine.pid for engine in host.runtimes if engine.pid] == []
    assert [(one.pid, one.why) for one in host.ignored] == [(990, "it belongs to uid 1000, and this is a chroot")]


@pytest.mark.parametrize(("where", "name"), [("", "/"), ("usr", "/usr")])
def test_a_host_whose_directories_are_a_users_says_why_nothing_was_run(where: str, name: str, tmp_path: Path) -> None:
    root = marked_root(tmp_path / "host")
    give(root / where)
    host = looked_at(root)
    assert host.unread["trust"] == f"no program of this host was run: {name} belongs to uid {NOBODY}"
    assert not (tmp_path / "host" / "mark").exists()
