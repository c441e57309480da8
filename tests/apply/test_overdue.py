"""A script that outlives its limit is ended, and its step is rolled back; nothing is restored while one still runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import open_steps, parse_journal
from gpunode.apply.script import Host
from gpunode.errors import TransportError
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.report import StepResult, StepStatus
from gpunode.model.spec import Spec
from gpunode.transport.base import Completed, StillRunning
from tests.apply.machine import Machine

SHELLS = [("sh",), ("bash", "--posix"), ("busybox", "sh")]
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass
class Remote(Machine):
    """Leaves a script alone that hangs, as an ssh connection does. `own_session` False: as no sshd does."""

    own_session: bool = True
    deaf: bool = False  # to whoever wants to end the script
    left: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if self.deaf and "End the script" in script:
            raise TransportError("connection reset")
        self.scripts.append(script)
        paths = [self.root / name for name in ("stdin", "stdout", "stderr")]
        paths[0].write_bytes(stdin)
        (self.root / "hangs").unlink(missing_ok=True)
        with paths[0].open("rb") as given, paths[1].open("wb") as out, paths[2].open("wb") as err:
            process = subprocess.Popen(
                (*self.shell, "-c", f"{self.tools()}{self.moved(script)}"),
                stdin=given, stdout=out, stderr=err, start_new_session=self.own_session,
            )  # fmt: skip
        while process.poll() is None:
            if (self.root / "hangs").exists():
                self.left.append(process)
                raise StillRunning("a script was still running", evidence="0 bytes came so far")
            time.sleep(0.01)
        return Completed(process.returncode, paths[1].read_bytes(), paths[2].read_bytes(), 0.0)

    def tools(self) -> str:
        """Those that hang, as functions: busybox takes its own tools before any in PATH."""
        return "".join(f'{path.name}() {{ {path} "$@"; }}\n' for path in self.root.glob("bin/*"))

    def hang_in(self, tool: str, path: Path, *, after: bool = False) -> None:
        """`tool`, called with this path as its last word, hangs once: before it does its work, or after it."""
        real = shutil.which(tool)
        (self.root / "bin").mkdir(exist_ok=True)
        (self.root / "once").touch()
        work = f'"{real}" "$@"' if after else ":"
        (self.root / f"bin/{tool}").write_text(
            f'#!/bin/sh\nfor last; do :; done\n[ "$last" = {path} ] && [ -e {self.root}/once ] || exec {real} "$@"\n'
            f"{work}\nrm {self.root}/once; echo $$ >{self.root}/pid; touch {self.root}/hangs\n"
            f'sleep 600; exec {real} "$@"\n'
        )
        (self.root / f"bin/{tool}").chmod(0o755)

    @property
    def still_runs(self) -> bool:
        """The tool that hung, or the shell that waited for it."""
        pids = (int((self.root / "pid").read_text()), *(process.pid for process in self.left if process.poll() is None))
        return any(os.path.exists(f"/proc/{pid}") and not is_zombie(pid) for pid in pids)


def is_zombie(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    if shutil.which(request.param[0]) is None:
        pytest.skip(f"{request.param[0]} is not installed")
    machine = Remote(tmp_path, request.param)
    yield machine
    for process in machine.left:
        for pid in children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def children(pid: int) -> list[int]:
    """And their children, and itself."""
    found = [pid]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found += children(int(stat.parent.name))
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "etc"
    made.mkdir()
    for name in ("first", "second"):
        (made / name).write_text(f"old {name}")
        (made / name).chmod(0o640)
    return made


def rewrite(path: Path) -> PutFile:
    return PutFile(str(path), "new", expect_sha256=sha256(path.read_bytes()) if path.exists() else None)


def carry_out(machine: Machine, *steps: Step) -> tuple[StepResult, ...]:
    plan = Plan("testhost", Spec(), "", steps=steps)
    return execute(plan, machine, run_id="r1", on_event=lambda _: None, stop=lambda: False, pause=lambda _: None)


def tree(directory: Path) -> dict[str, tuple[str, int]]:
    return {path.name: (path.read_text(), path.stat().st_mode & 0o777) for path in directory.iterdir()}


def candidate(path: Path) -> Path:
    return path.parent / f".{path.name}.gpunode"


@pytest.mark.parametrize(
    ("tool", "of", "after"),
    [
        ("mv", "file", False),
        ("mv", "file", True),
        ("sync", "candidate", False),
        ("rm", "gone", True),
        ("mv", "new", True),
    ],
    ids=["before the rename", "after the rename", "while the bytes go to disk", "after a removal", "of a new file"],
)
def test_what_it_had_changed_goes_back_once_it_is_ended(
    remote: Remote, directory: Path, tool: str, of: str, after: bool
) -> None:
    first, second, new = directory / "first", directory / "second", directory / "made/new"
    before = tree(directory)
    last: PutFile | RemoveFile = rewrite(second)
    if of == "gone":
        last = RemoveFile(str(second), sha256(second.read_bytes()))
    elif of == "new":
        last = PutFile(str(new), "new")
    path = Path(last.path)
    remote.hang_in(tool, candidate(path) if of == "candidate" else path, after=after)
    serving = Step("repo.x", "t", "w", (PutFile(str(directory / "list"), "x"),), serves=("driver",))
    undone = Run(("sh", "-c", f"echo undone >>{remote.root}/undone"))
    verb = "remove" if of == "gone" else "write"
    hangs = Step("x", "t", "w", (rewrite(first), last), (undone,), installs="driver")
    results = carry_out(remote, serving, hangs, Step("y", "t", "w", ()))
    assert [r.status for r in results] == [StepStatus.UNDONE, StepStatus.FAILED, StepStatus.SKIPPED]
    assert results[1].error == f"files/put did not {verb} {path} within 60 s, and was ended"
    assert tree(directory) == before
    assert (remote.root / "undone").read_text() == "undone\n"
    assert not remote.still_runs
    assert open_steps(parse_journal(remote.journal)) == {}


def test_a_validator_that_hangs_leaves_nothing(remote: Remote, directory: Path) -> None:
    before = tree(directory)
    hangs = f"echo $$ >{remote.root}/pid; touch {remote.root}/hangs; sleep 600"
    put = PutFile(str(directory / "second"), "new", any_before=True, validate=Run(("sh", "-c", hangs), timeout_s=500))
    results = carry_out(remote, Step("x", "t", "w", (put,)))
    assert results[0].status is StepStatus.FAILED
    assert "within 560 s, and was ended" in results[0].error
    assert tree(directory) == before
    assert not remote.still_runs


@pytest.mark.parametrize("why", ["no session of its own", "the connection is gone"])
def test_beside_a_script_that_may_go_on_nothing_is_put_back(remote: Remote, directory: Path, why: str) -> None:
    remote.own_session, remote.deaf = why != "no session of its own", why == "the connection is gone"
    remote.hang_in("mv", directory / "second")
    with pytest.raises(StillRunning, match=r"files/put did not write .*/second within 60 s, and still runs") as caught:
        carry_out(remote, Step("x", "t", "w", (rewrite(directory / "first"), rewrite(directory / "second"))))
    assert "nothing is rolled back while it runs" in caught.value.problem
    assert (directory / "first").read_text() == "new"
    assert remote.still_runs
    assert list(open_steps(parse_journal(remote.journal))) == [("r1", "x")]


def test_a_rollback_that_hangs_is_ended_and_reported(remote: Remote, directory: Path) -> None:
    first = directory / "first"
    steps = (Step("x", "t", "w", (rewrite(first), Run(("false",)))),)
    original = remote.run

    def run(script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        if "Restore one file's bytes" in script:
            remote.hang_in("mv", first)
        return original(script, stdin=stdin, timeout_s=timeout_s)

    remote.run = run  # type: ignore[method-assign]  # it hangs in the rollback alone
    (result,) = carry_out(remote, *steps)
    assert result.status is StepStatus.ROLLBACK_FAILED
    assert f"files/restore did not restore {first} within 60 s, and was ended" in result.error
    assert not remote.still_runs


# ---- whom end.sh takes for the script


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(("sleep", "600"), start_new_session=True) as process:
        yield process
        process.kill()


def began(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize(
    ("word", "said", "lives"),
    [
        ("me {pid} {began} {boot}", "ended", False),
        ("me {pid} 12 {boot}", "ended", True),
        ("me {pid} {began} an-earlier-boot", "ended", True),
        ("another {pid} {began} {boot}", "unknown", True),
        ("me 0 - {boot}", "unknown", True),
        ("", "unknown", True),
    ],
    ids=["it", "who got its number", "after a reboot", "another script", "run as a user", "it left no record"],
)
def test_only_the_script_itself_is_ended(
    remote: Remote, bystander: subprocess.Popen[bytes], word: str, said: str, lives: bool
) -> None:
    (remote.root / "run").mkdir()
    filled = word.format(pid=bystander.pid, began=began(bystander.pid), boot=BOOT)
    (remote.root / "run/script").write_text(f"{filled}\n")
    answer = Host(remote).run("files/end", "", "me").stdout.decode()
    assert answer.split()[0] == said
    assert (bystander.poll() is None) == lives
