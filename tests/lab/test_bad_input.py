"""What goes wrong in real life: one message with evidence and remedy, the promised code, nothing half-written."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.model.plan import Plan, Step
from gpunode.model.report import Event, StepStatus
from gpunode.model.spec import Spec
from gpunode.packages.apt import Apt
from gpunode.packages.base import Wanted
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, parse_target

from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state

RUNTIME = "/usr/bin/nvidia-container-runtime"
DAEMON_JSON, CONFIG_TOML, OS_RELEASE = "/etc/docker/daemon.json", "/etc/containerd/config.toml", "/etc/os-release"
SETUP = ("setup", "--yes", "--only", "runtime")


@pytest.fixture(scope="module")
def lab(lab_session: Lab) -> Iterator[Lab]:
    """One lab for the file: its hosts are shared, and every test leaves them as it found them."""
    yield lab_session
    lab_session.reset()


@pytest.fixture(scope="module")
def node(lab: Lab) -> Host:
    """Docker and containerd run; the toolkit's runtime is there, so that `--only runtime` has work to do."""
    return _engine_host(lab, "docker")


@pytest.fixture(scope="module")
def twin(lab: Lab) -> Host:
    return _engine_host(lab, "containerd")


@pytest.fixture
def me(tmp_path: Path) -> Controller:
    return Controller("ssh", tmp_path)


def _engine_host(lab: Lab, engine: str, tmpfs_root: str | None = None) -> Host:
    host = lab.host("debian12", runtime=engine, files={RUNTIME: "#!/bin/sh\n"}, tmpfs_root=tmpfs_root)
    host.nsrun(f"chmod 755 {RUNTIME}; systemctl start {engine}", check=True)
    return host


def type_in(me: Controller, config: str, *words: str) -> Result:
    """gpunode with its words and nothing else, and this ~/.ssh/config."""
    ssh = me.home / ".ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    (ssh / "config").write_text(config)
    env = {"HOME": str(me.home), "XDG_STATE_HOME": str(me.home / "state"), "PATH": "/usr/bin:/bin"}
    argv = (sys.executable, "-m", "gpunode", *words)
    return subprocess.run(
        argv, text=True, capture_output=True, timeout=120, check=False, env=env, stdin=subprocess.DEVNULL
    )


def said(result: Result) -> str:
    """Both streams in one line of single spaces: messages are wrapped at words."""
    return " ".join((result.stdout + result.stderr).split())


def refused(result: Result, code: int, *words: str) -> str:
    """The code, the words, evidence and remedy, and never a traceback."""
    text = said(expect(result, code))
    assert "Traceback" not in text
    assert "internal error" not in text
    assert " evidence " in text, text
    assert " remedy " in text, text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    return text


# Reaching the host


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("10.77.0.250", ("10.77.0.250", "--connect-timeout")),
        ("node.invalid", ("does not resolve", "getent hosts")),
        ("10.77.0.1:9", ("refuses connections", "start sshd")),
    ],
    ids=["nobody at the address", "no such name", "no sshd"],
)
def test_unreachable(lab: Lab, me: Controller, target: str, words: tuple[str, ...]) -> None:
    began = time.monotonic()
    refused(type_in(me, "", *SETUP, "--ssh", target, "--connect-timeout", "2"), 3, *words)
    assert time.monotonic() - began < 20


def test_a_host_that_is_down_is_named_within_the_connect_timeout(lab: Lab, node: Host, me: Controller) -> None:
    node.unplug()
    try:
        refused(type_in(me, node.ssh_config_text(), "plan", "--ssh", node.name, "--connect-timeout", "2"), 3, node.name)
    finally:
        node.plug_in()


def test_an_unknown_host_key_is_refused_and_not_remembered(lab: Lab, node: Host, me: Controller) -> None:
    known = me.home / "known"
    known.touch()
    result = type_in(me, _with_known_hosts(node, known), *SETUP, "--ssh", node.name)
    refused(result, 3, "is not known", "SHA256:", "--host-key accept-new")
    assert known.read_text() == ""


def test_a_changed_host_key_is_refused_even_by_accept_new(lab: Lab, node: Host, twin: Host, me: Controller) -> None:
    """The images share their keys, so the stranger's key is one that nobody has."""
    known = me.home / "known"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", me.home / "other"), check=True)
    kind, blob = (me.home / "other.pub").read_text().split()[:2]
    line = f"{node.addr},{node.name} {kind} {blob}\n"
    known.write_text(line)
    config = _with_known_hosts(node, known)
    for more in ((), ("--host-key", "accept-new")):
        text = refused(type_in(me, config, *SETUP, "--ssh", node.name, *more), 3, "has changed", f"{known}:1")
        assert "accept-new" not in text
    assert known.read_text() == line


def _with_known_hosts(node: Host, known: Path) -> str:
    lines = [line for line in node.ssh_config_text().splitlines() if "KnownHosts" not in line]
    return "\n".join((*lines, f"    UserKnownHostsFile {known}", ""))


# Becoming root


@pytest.mark.parametrize(
    ("user", "password", "words"),
    [
        ("operator", "wrong", ("sudo refused the password", "--become-pass-file")),
        ("operator", None, ("sudo needs a password", "--ask-become-pass")),
        ("nosudo", "secret", ("sudo does not allow this user", "sudoers")),
        ("nosudo", None, ("sudo needs a password", "log in as root")),
    ],
    ids=["wrong password", "no password", "not in sudoers", "not in sudoers and no password"],
)
def test_cannot_become_root(
    lab: Lab, node: Host, me: Controller, user: str, password: str | None, words: tuple[str, ...]
) -> None:
    before = fingerprint_of_state(node)
    result = me.gpunode(node, *SETUP, "--user", user, *_password_file(me, password))
    text = refused(result, 3, *words)
    assert password is None or password not in text.replace("refused the password", "")
    assert fingerprint_of_state(node) == before


@pytest.mark.parametrize(("user", "password"), [("admin", None), ("operator", "secret")])
def test_sudo_serves_a_whole_plan_and_a_setup(
    lab: Lab, node: Host, me: Controller, user: str, password: str | None
) -> None:
    become = ("--user", user, *_password_file(me, password))
    shown = expect(me.gpunode(node, "plan", "--allow-no-gpu", *become), 0)
    assert "docker.default" in shown.stdout
    with kept(node, DAEMON_JSON):
        expect(me.gpunode(node, *SETUP, *become), 0)
        assert '"nvidia"' in node.read(DAEMON_JSON)
        assert node.nsrun(f"stat -c '%U %a' {DAEMON_JSON}").stdout == "root 644\n"
        assert "secret" not in node.read("/var/lib/gpunode/journal.jsonl")
        logs = "".join(log.read_text() for log in (me.home / "state").rglob("*.jsonl"))
        assert logs
        assert "secret" not in logs
        assert "no changes" in said(expect(me.gpunode(node, *SETUP, *become), 0))


def _password_file(me: Controller, password: str | None) -> tuple[str, ...]:
    if password is None:
        return ()
    path = me.home / "pass"
    path.write_text(f"{password}\n")
    return ("--become-pass-file", str(path))


@contextmanager
def kept(host: Host, *paths: str) -> Iterator[None]:
    """Whatever the test does to these files, they are afterwards as before; docker reads its file again."""
    old = {path: host.path(path).read_bytes() if host.exists(path) else None for path in paths}
    try:
        yield
    finally:
        for path, content in old.items():
            host.nsrun(f"rm -rf {path}")
            if content is not None:
                host.nsrun(f"cat >{path}", input=content.decode())
        host.nsrun("systemctl reload docker; true")


# A host that is not what we need


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false"])
def test_no_shell_to_run_commands(lab: Lab, node: Host, me: Controller, shell: str) -> None:
    node.nsrun(f"usermod -s {shell} admin", check=True)
    try:
        before = fingerprint_of_state(node)
        refused(me.gpunode(node, *SETUP, "--user", "admin"), 3, "the login shell runs no commands", "--user")
        assert fingerprint_of_state(node) == before
    finally:
        node.nsrun("usermod -s /bin/bash admin", check=True)


def test_no_sh(lab: Lab, node: Host, me: Controller) -> None:
    """A shell that finds no sh, as on an appliance; root's, since anyone else would miss sudo first."""
    node.write("/usr/local/bin/bare", '#!/bin/bash\nPATH=/nowhere exec -a bash /bin/bash "$@"\n', 0o755)
    node.nsrun("usermod -s /usr/local/bin/bare root", check=True)
    try:
        refused(me.gpunode(node, *SETUP), 3, "has no sh in its PATH", "POSIX sh")
    finally:
        node.nsrun("usermod -s /bin/bash root; rm /usr/local/bin/bare", check=True)


def test_an_unsupported_distribution(lab: Lab, node: Host, me: Controller) -> None:
    with kept(node, OS_RELEASE):
        node.write(OS_RELEASE, 'ID=slackware\nVERSION_ID=15.0\nPRETTY_NAME="Slackware 15.0"\n')
        before = fingerprint_of_state(node)
        for words in (("plan", "--allow-no-gpu"), ("setup", "--yes", "--allow-no-gpu")):
            refused(me.gpunode(node, *words), 4, "Slackware 15.0", "Debian 12", "manually")
        assert fingerprint_of_state(node) == before


@pytest.mark.parametrize("part", [0.0, 0.3, 0.999])
def test_a_recording_that_was_cut(lab: Lab, node: Host, me: Controller, part: float) -> None:
    whole, cut = me.home / "whole.txt", me.home / "cut.txt"
    expect(me.gpunode(node, "detect", "--record", str(whole)), 0)
    stream = whole.read_bytes()
    cut.write_bytes(stream[: int(len(stream) * part)])
    for verb in ("plan", "check", "detect"):
        refused(type_in(me, "", verb, "--recorded", str(cut)), 2, f"{cut} is not a whole recording", "--record")
    assert cut.read_bytes() == stream[: int(len(stream) * part)]


# Files that cannot be edited safely

NOT_JSON = '{\n  "log-driver": "json-file",\n  "debug" true\n}\n'
NOT_TOML = "version = 2\n[plugins]\n  broken = = 1\n"


def test_an_invalid_daemon_json_is_left_alone(lab: Lab, node: Host, me: Controller) -> None:
    with kept(node, DAEMON_JSON):
        node.write(DAEMON_JSON, NOT_JSON)
        before = fingerprint_of_state(node)
        for verb in (("plan", "--only", "runtime"), SETUP):
            refused(me.gpunode(node, *verb, "--runtime", "docker"), 1, DAEMON_JSON, ":3:11: ")
        assert fingerprint_of_state(node) == before
        assert node.read(DAEMON_JSON) == NOT_JSON


def test_an_invalid_config_toml_is_left_alone(lab: Lab, twin: Host, me: Controller) -> None:
    with kept(twin, CONFIG_TOML):
        twin.write(CONFIG_TOML, NOT_TOML)
        before = fingerprint_of_state(twin)
        for verb in (("plan", "--only", "runtime"), SETUP):
            refused(me.gpunode(twin, *verb, "--runtime", "containerd"), 1, CONFIG_TOML, ":3:12: ")
        assert fingerprint_of_state(twin) == before
        assert twin.read(CONFIG_TOML) == NOT_TOML


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (f"mkdir {DAEMON_JSON}", "not a regular file"),
        (f"ln -s /mnt/site.json {DAEMON_JSON}", "a symbolic link to /mnt/site.json, which is missing"),
        (f"printf '{{\\377\\n}}\\n' >{DAEMON_JSON}", "daemon.json:1:2"),
        (f"head -c 3000000 /dev/zero | tr '\\0' ' ' >{DAEMON_JSON}", "over 131072 bytes"),
    ],
    ids=["a directory", "a dangling link", "not text", "huge"],
)
def test_an_unreadable_daemon_json_is_left_alone(lab: Lab, node: Host, me: Controller, make: str, word: str) -> None:
    with kept(node, DAEMON_JSON):
        node.nsrun(f"rm -rf {DAEMON_JSON}; {make}", check=True)
        before = fingerprint_of_state(node)
        refused(me.gpunode(node, *SETUP, "--runtime", "docker"), 1, DAEMON_JSON, word)
        assert fingerprint_of_state(node) == before


# Disks that say no


def test_a_full_disk(lab: Lab, me: Controller) -> None:
    host = _engine_host(lab, "docker", tmpfs_root="48M")
    host.fill("/var/ballast")
    before = fingerprint_of_state(host)
    refused(me.gpunode(host, *SETUP), 1, "No space left", "free some space")
    assert fingerprint_of_state(host) == before
    host.nsrun("rm /var/ballast", check=True)
    expect(me.gpunode(host, *SETUP), 0)


def test_etc_is_read_only(lab: Lab, node: Host, me: Controller) -> None:
    node.nsrun("mount --bind /etc /etc && mount -o remount,bind,ro /etc", check=True)
    try:
        before = fingerprint_of_state(node)
        refused(me.gpunode(node, *SETUP), 1, "Read-only file system", DAEMON_JSON, "read-write")
        assert fingerprint_of_state(node) == before
    finally:
        node.nsrun("umount /etc", check=True)


# A package manager at work

# What dpkg and apt take: fcntl locks on these two files; exec keeps the holder's name as its command says.
HOLDER = """import fcntl, os, sys, time
held = [open(p, "w") for p in ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")]
for f in held: fcntl.lockf(f, fcntl.LOCK_EX)
with open("/run/holding", "w") as f: f.write(str(os.getpid()))
time.sleep(float(sys.argv[1]))
"""


@contextmanager
def package_lock(host: Host, seconds: float) -> Iterator[None]:
    host.write("/root/unattended-upgr", HOLDER)
    holder = threading.Thread(
        target=host.nsrun, args=(f"rm -f /run/holding; exec python3 /root/unattended-upgr {seconds}",)
    )
    holder.start()
    while host.nsrun("test -s /run/holding").returncode != 0:
        time.sleep(0.05)
    try:
        yield
    finally:
        release_package_lock(host)
        holder.join()


def release_package_lock(host: Host) -> None:
    host.nsrun("kill $(cat /run/holding)")


def test_a_locked_package_manager_is_waited_for(lab: Lab, node: Host, me: Controller) -> None:
    """The lock is held until gpunode says that it waits, and for whom; then it goes on."""
    words = ("setup", "--yes", "--only", "toolkit", "--trust-key", lab.repo_fingerprint, "--ssh", node.name)
    heard = ""
    with (
        package_lock(node, 60),
        subprocess.Popen(
            (sys.executable, "-m", "gpunode", *words),
            env=me.env(node),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as running,
    ):
        assert running.stderr
        for line in running.stderr:
            heard += line
            if "Waiting for cache lock" in line:
                release_package_lock(node)
    outputs = node.nsrun("tail -v -n 5 /var/lib/gpunode/runs/*/out").stdout
    assert running.returncode == 0, heard
    assert re.search(r"Waiting for cache lock: .* held by process \d+ \(python3\)", heard), heard + outputs
    assert node.nsrun("dpkg-query -W nvidia-container-toolkit").returncode == 0


def test_a_package_manager_that_stays_locked_is_given_up_and_its_holder_named(
    lab: Lab, node: Host, me: Controller
) -> None:
    """The product's own command with its limit of 300 s cut to 1 s, through the real executor and the real apt."""
    install = Apt().install((Wanted("less"),))
    assert "DPkg::Lock::Timeout=300" in install.argv
    short = replace(install, argv=tuple(word.replace("=300", "=1") for word in install.argv))
    step = Step("driver.install", "install less", "", (short,))
    me.env(node)
    options = SshOptions(home=me.home)
    transport = Ssh(parse_target(node.name), options)
    notes: list[Event] = []
    with package_lock(node, 60):
        plan = Plan(node.name, Spec(), "", steps=(step,))
        (result,) = execute(plan, transport, run_id="locked", on_event=notes.append, stop=lambda: False)
    transport.close()
    assert result.status is StepStatus.FAILED
    assert re.search(
        r"Could not get lock /var/lib/dpkg/lock-frontend\. It is held by process \d+ \(python3\)", result.error
    )
    assert "is another process using it" in result.error
    assert "let the process that holds the lock come to its end" in result.remedy.text


def test_one_host_of_three_is_down(lab: Lab, node: Host, twin: Host, me: Controller) -> None:
    config = node.ssh_config_text() + twin.ssh_config_text()
    hosts = ("--ssh", f"{node.name},10.77.0.250,{twin.name}", "--connect-timeout", "2")
    with kept(node, DAEMON_JSON), kept(twin, CONFIG_TOML):
        result = type_in(me, config, *SETUP, *hosts)
        text = refused(result, 3, "3 hosts: 1 unreachable (3) · 2 done (0)", "no answer within 2 s")
        assert '"nvidia"' in node.read(DAEMON_JSON)
        assert "nvidia" in twin.read(CONFIG_TOML)
        lines = result.stdout.splitlines()
    assert lines[0].startswith("10.77.0.250 "), "the worst comes first"
    assert text.count("evidence timed out") <= 2
