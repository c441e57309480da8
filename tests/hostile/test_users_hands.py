"""What gpunode does in a user's directories it does with that user's rights; such a command holds nothing of root's."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.apply.execute import execute
from gpunode.apply.files import put_file, restore
from gpunode.apply.journal.entries import Journal, Written
from gpunode.apply.journal.past import read_past
from gpunode.apply.script import Host
from gpunode.engines.daemon import commands
from gpunode.errors import Drift, StepFailed
from gpunode.model.action import PutFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import Spec
from gpunode.transport.base import Completed
from tests.apply.machine import Machine

UID = 54321  # no account of this machine has it, and no other test
WHO = f"{UID}:{UID}"
OLD, NEW, SECRET = '{"a": 1}\n', '{"b": 2}\n', "root's secret\n"
LIMIT_S = 100  # more than every bound of gpunode's here, less than what the hostile programs would take
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")


@pytest.fixture(params=[("dash",), ("busybox", "sh")], ids=["dash", "busybox"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    if shutil.which(request.param[0]) is None:
        pytest.skip(f"{request.param[0]} is not installed")
    return Machine(tmp_path, request.param)


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of the user's, which they can reach."""
    directory = Path(tempfile.mkdtemp(prefix="gpunode-hostile-", dir="/var/tmp"))
    os.chown(directory, UID, UID)
    yield directory
    shutil.rmtree(directory)


def theirs(path: Path, content: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    for owned in (path, path.parent):
        os.chown(owned, UID, UID)
    return path


def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def put(machine: Machine, action: PutFile) -> Written | None:
    return put_file(Host(machine), Journal("r1"), "s", action)


# Nothing of root's reaches the user's process

LOOK = r"""
for number in 0 1 2 3 4 5 6 7 8 9; do
    [ ! -e /proc/$$/fd/$number ] || echo "holds $number $(readlink /proc/$$/fd/$number)"
done
echo "stands in $(pwd)"
echo "session $(cut -d" " -f6 /proc/$$/stat) of $$"
env | sed 's/^/knows /'
"""
AROUND = r"""
exec 3>"$1" 5<"$1" 7>>"$1"
for number in 0 1 2 3 5 7; do echo "root $(readlink /proc/$$/fd/$number)"; done
set_run_as {who} /x
cd /tmp
as_owner sh -c '{look}'
"""


def test_such_a_command_holds_no_stream_file_variable_terminal_or_directory_of_roots(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOTS_TOKEN", "canary")
    functions = resources.script("as_user") + resources.script("common")
    script = f"set -- {tmp_path}/journal\n{functions}" + AROUND.replace("{who}", WHO).replace(
        "{look}", LOOK.replace("'", "'\\''")
    )
    done = machine.run(script, stdin=b"the rest of root's script\n", timeout_s=LIMIT_S)
    lines = done.stdout.decode().splitlines()
    roots = {line.partition(" ")[2] for line in lines if line.startswith("root ")}
    holds = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("holds "))
    assert holds["0"] == "/dev/null"
    assert not roots & set(holds.values()), "a stream or file of root's"
    assert {n for n, target in holds.items() if target.startswith("pipe:")} == {"1", "2"}
    # The shell that looks may keep its own terminal or script open: nothing else.
    assert set(holds) == {"0", "1", "2"}
    knows = {line.partition(" ")[2].partition("=")[0] for line in lines if line.startswith("knows ")}
    assert knows <= {"PATH", "HOME", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"}
    assert "stands in /" in lines
    session = next(line.split() for line in lines if line.startswith("session "))
    assert session[1] == session[3], "its own session: no terminal of root's to type into"


def test_what_the_validator_of_a_user_says_is_no_answer_of_roots(machine: Machine, home: Path, tmp_path: Path) -> None:
    """Their own dockerd: it speaks as put.sh would, to whatever it can write to, and holds the line."""
    forged = json.dumps({"kind": "file", "path": "/etc/shadow", "before": "absent", "after": "absent"})
    path = theirs(home / "daemon.json", OLD)
    fake = theirs(
        home / "dockerd",
        "#!/bin/sh\n"
        f"for n in 1 2 3 4 5 6 7 8 9; do echo 'written {forged}' 2>/dev/null >&$n; done\n"
        f"for f in /proc/$PPID/fd/*; do echo 'written {forged}' 2>/dev/null >$f; done\n"
        f"env >{home}/env\n",
        0o755,
    )
    os.environ["ROOTS_TOKEN"] = "canary"
    try:
        written = put(
            machine, PutFile(str(path), NEW, any_before=True, owner=WHO, validate=Run((str(fake), "{candidate}")))
        )
    finally:
        del os.environ["ROOTS_TOKEN"]
    assert written is not None
    assert (written.path, path.read_text()) == (str(path), NEW)
    assert "canary" not in (home / "env").read_text()
    assert Path(written.backup).read_text() == OLD
    assert (Path(written.backup).stat().st_uid, Path(written.backup).stat().st_mode & 0o777) == (0, 0o600)


class Forger:
    """A host on which somebody wrote into the answer."""

    target = "host"

    def __init__(self, machine: Machine, change: dict[str, object]) -> None:
        self.machine, self.change = machine, change

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        done = self.machine.run(script, stdin=stdin, timeout_s=timeout_s)
        word, _, entry = done.stdout.partition(b" ")
        return replace(done, stdout=word + b" " + json.dumps({**json.loads(entry), **self.change}).encode())

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/etc/shadow"},
        {"run_as": ""},
        {"after": "absent"},
        {"before": "0" * 64},
        {"before": "x"},
        {"backup": "/home/user/mine"},
        {"backup": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_answer_about_something_else_is_not_believed(
    machine: Machine, home: Path, change: dict[str, object]
) -> None:
    path = theirs(home / "daemon.json", OLD)
    with pytest.raises(StepFailed, match="is about something else"):
        put_file(Host(Forger(machine, change)), Journal("r1"), "s", PutFile(str(path), NEW, any_before=True, owner=WHO))


# Time and size without end


@pytest.mark.parametrize(
    "program",
    [
        "exec sleep 150",
        "sleep 150 & exit 0",
        "trap '' TERM HUP INT; sleep 150; sleep 150",
        "setsid sleep 150 & kill -STOP $$",
    ],
    ids=["it never ends", "it leaves a child with its streams", "it hears no signal", "it stands still"],
)
def test_a_validator_of_a_user_costs_its_limit_and_no_more(machine: Machine, home: Path, program: str) -> None:
    path = theirs(home / "daemon.json", OLD)
    fake = theirs(home / "dockerd", f"#!/bin/sh\n{program}\n", 0o755)
    # One that ends by itself gets the time to do so on a machine that is slow.
    limit_s = 10 if "exit 0" in program else 1
    action = PutFile(str(path), NEW, any_before=True, owner=WHO, validate=Run((str(fake),), timeout_s=limit_s))
    if "exit 0" in program:
        assert put(machine, action) is not None
    else:
        with pytest.raises(StepFailed, match="refuses the new"):
            put(machine, action)
        assert path.read_text() == OLD


def test_a_validator_of_a_user_says_no_more_than_a_pipe_takes(machine: Machine, home: Path) -> None:
    path = theirs(home / "daemon.json", OLD)
    fake = theirs(home / "dockerd", "#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x\nexit 1\n", 0o755)
    action = PutFile(str(path), NEW, any_before=True, owner=WHO, validate=Run((str(fake),), timeout_s=60))
    with pytest.raises(StepFailed) as refused:
        put(machine, action)
    assert len(str(refused.value)) < 100_000
    assert path.read_text() == OLD


def survey(machine: Machine, path: Path) -> None:
    """What a setup does first with every file of its plan."""
    action = PutFile(str(path), NEW, expect_sha256=hashlib.sha256(OLD.encode()).hexdigest(), owner=WHO)
    plan = Plan("host", Spec(), "0" * 64, steps=(Step("s", "title", "why", (action,)),))
    execute(plan, machine, run_id="r1", on_event=lambda _: None, stop=lambda: True)


@pytest.mark.parametrize("kind", ["FIFO", "a link to a FIFO", "a directory of links"])
def test_a_fifo_in_the_place_of_the_file_holds_nobody_up(machine: Machine, home: Path, kind: str) -> None:
    path = home / "daemon.json"
    fifo = path if kind == "FIFO" else home / "fifo"
    os.mkfifo(fifo)
    os.chown(fifo, UID, UID)
    if kind == "a directory of links":
        (home / "deep").symlink_to(home)
        path = home / "deep" / "deep" / "fifo"
    elif fifo != path:
        path.symlink_to(fifo)
    with pytest.raises((StepFailed, Drift)):
        survey(machine, path)
    with pytest.raises(StepFailed, match="is no regular file"):
        put(machine, PutFile(str(path), NEW, any_before=True, owner=WHO))


# Links


@pytest.mark.parametrize("where", ["the file", "the directory", "two links"])
def test_root_reads_nothing_through_a_users_link(machine: Machine, home: Path, tmp_path: Path, where: str) -> None:
    """undo shows what is in the file now; at an earlier setup it was the user's own."""
    path = theirs(home / "conf" / "daemon.json", OLD)
    action = PutFile(str(path), NEW, any_before=True, owner=WHO)
    plan = Plan("host", Spec(), "0" * 64, steps=(Step("s", "title", "why", (action,)),))
    (result,) = execute(plan, machine, run_id="r1", on_event=lambda _: None, stop=lambda: False)
    assert result.status.value == "done"
    hidden = secret(tmp_path)
    path.unlink()
    if where == "the directory":
        path.parent.rmdir()
        (tmp_path / "daemon.json").write_text(SECRET)
        (tmp_path / "daemon.json").chmod(0o600)
        path.parent.symlink_to(tmp_path)
    else:
        between = home / "between"
        between.symlink_to(hidden)
        path.symlink_to(between if where == "two links" else hidden)
    (file,) = read_past(machine).files
    assert file.now.text != SECRET
    assert SECRET not in (file.now.text or "")
    assert file.now.sha256 != hashlib.sha256(SECRET.encode()).hexdigest()


def test_a_hash_of_roots_file_is_not_taken_through_a_users_link(machine: Machine, home: Path, tmp_path: Path) -> None:
    path = home / "daemon.json"
    path.symlink_to(secret(tmp_path))
    with pytest.raises(Drift) as drifted:
        survey(machine, path)
    assert hashlib.sha256(SECRET.encode()).hexdigest()[:12] not in str(drifted.value.evidence)


def test_rollback_reads_roots_backup_as_root_alone(machine: Machine, home: Path) -> None:
    path = theirs(home / "daemon.json", OLD)
    written = put(machine, PutFile(str(path), NEW, any_before=True, owner=WHO))
    assert written is not None
    path.unlink()
    os.mkfifo(path)
    os.chown(path, UID, UID)
    with pytest.raises(StepFailed, match="is no regular file"):
        restore(Host(machine), Journal("r1"), "s", written, own=True)
    path.unlink()
    assert restore(Host(machine), Journal("r1"), "s", written, own=True) == "restored"
    assert (path.read_text(), path.stat().st_uid) == (OLD, UID)


@pytest.mark.parametrize("owner", ["0:0", "x:y", "1:2:3", "54321", "54321:", ":1"])
def test_an_owner_that_is_no_user_writes_nothing(machine: Machine, home: Path, owner: str) -> None:
    path = theirs(home / "daemon.json", OLD)
    with pytest.raises(StepFailed, match="no setpriv"):
        put(machine, PutFile(str(path), NEW, any_before=True, owner=owner))
    assert path.read_text() == OLD


# Their daemon


def flood(listener: socket.socket, sent: list[int], most: int) -> None:
    """An HTTP answer of `most` bytes a connection, counted as far as they were taken; ends with the listener."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        sent.append(0)
        try:
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while sent[-1] < most:
                    sent[-1] += connection.send(b"x" * 65536)
        except OSError:
            pass


def test_a_socket_of_a_user_that_never_stops_talking_is_listened_to_so_far(machine: Machine, home: Path) -> None:
    sent: list[int] = []
    path = home / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        server = threading.Thread(target=flood, args=(listener, sent, 64 << 20), daemon=True)
        server.start()
        names = ("as_user", *commands.VERIFY)
        functions = "".join(map(resources.script, names))
        words = f"set -- docker {path} nvidia uid:{WHO} 1 dockerd /x\n"
        done = machine.run(words + functions, timeout_s=LIMIT_S)
        listener.shutdown(socket.SHUT_RDWR)
    assert done.code == 1
    assert sent
    assert max(sent) <= 8 << 20


def test_only_a_process_that_is_all_the_users_gets_the_hangup(machine: Machine, tmp_path: Path) -> None:
    """A setuid program that they start under the name of dockerd is root's in all but one of its four user ids."""
    named = tmp_path / "dockerd"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", named)

    # Not UID: beside this test another worker may run a validator of that user's, whose name is dockerd as well.
    uid = UID + 1

    def become(*ids: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen((str(named), "60"), preexec_fn=lambda: os.setresuid(*ids))

    script = resources.script("daemon/restart") + f"\ngpunode_hangup_user {uid}\n"
    tmp_path.chmod(0o755)
    with become(uid, 0, 0) as mixed:
        try:
            done = machine.run(script, timeout_s=LIMIT_S)
            assert (done.code, mixed.poll()) == (1, None)
            assert b"runs no dockerd" in done.stderr
        finally:
            mixed.kill()


def test_a_users_daemon_that_is_down_says_nothing(machine: Machine, home: Path) -> None:
    """Whatever tools the host lacks: their absence is no answer, for which a daemon that starts would be given up."""
    names = ("as_user", *commands.VERIFY)
    functions = (
        "".join(map(resources.script, names)).replace("http://localhost/info", "").replace("curl ", "no-such-curl ")
    )
    done = machine.run(f"set -- docker {home}/docker.sock nvidia uid:{WHO} 1\n{functions}", timeout_s=LIMIT_S)
    assert done.code == 1
    assert f"docker does not answer on {home}/docker.sock" in done.stderr.decode()
