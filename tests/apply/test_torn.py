"""The real put.sh and restore.sh, killed with SIGKILL after every system call that changed anything on the disk."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.apply.execute import execute
from gpunode.apply.files import put_file, remove_file, restore, sha256
from gpunode.apply.journal.entries import Journal, Written, open_steps, parse_journal
from gpunode.apply.script import Host
from gpunode.errors import TransportError
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.plan import Plan, Step
from gpunode.model.spec import Spec
from gpunode.transport.base import Completed
from tests.apply.machine import Machine
from tests.apply.strike import killed_after

OLD, NEW = '{"a": 1}\n', '{"b": 2}\n'
SHELLS = [("dash",), ("busybox", "sh")]
MODE = 0o640
MOMENTS = 200  # more than any of the scripts has


@dataclass
class Mortal(Machine):
    """A machine whose next script dies after change number `last`; either way its answer is lost."""

    last: int = 0
    died: bool = False

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            argv = (*self.shell, "-c", self.moved(script))
            self.died = killed_after(self.last, argv, given, lambda: tuple(disk(str(self.root))))
        raise TransportError("the host is gone")


def disk(directory: str) -> Iterator[tuple[str, int, int, int, bytes]]:
    """Everything below a directory: path, inode, mode, owner, bytes. Quick, since it is asked at every system call."""
    for entry in os.scandir(directory):
        try:
            status = entry.stat(follow_symlinks=False)
            content = b""
            if stat.S_ISREG(status.st_mode):
                with open(entry.path, "rb", buffering=0) as file:
                    content = file.read()
            yield entry.path, status.st_ino, status.st_mode, status.st_uid, content
            if stat.S_ISDIR(status.st_mode):
                yield from disk(entry.path)
        except FileNotFoundError:  # another process of the script is at work right now; its own stop will tell
            continue


@dataclass(frozen=True)
class Act:
    """One file, `first` of all, then `before` the act, and `after` it (None: it is not there)."""

    first: str | None
    before: str | None
    after: str | None
    begin: Callable[[Host, Path], Callable[[Host], object]]  # what comes first, unkilled -> the act that is killed


def putting(host: Host, path: Path) -> Callable[[Host], object]:
    action = PutFile(str(path), NEW, mode=MODE, any_before=True)
    return lambda host: put_file(host, _journal("put"), "docker.default", action)


def removing(host: Host, path: Path) -> Callable[[Host], object]:
    return lambda host: remove_file(host, _journal("rm"), "docker.default", RemoveFile(str(path), sha256(OLD.encode())))


def restoring_rewritten(host: Host, path: Path) -> Callable[[Host], object]:
    return _restoring(put_file(host, _journal("r0"), "docker.default", PutFile(str(path), NEW, any_before=True)))


def restoring_removed(host: Host, path: Path) -> Callable[[Host], object]:
    return _restoring(remove_file(host, _journal("r0"), "docker.default", RemoveFile(str(path))))


def restoring_made(host: Host, path: Path) -> Callable[[Host], object]:
    return _restoring(put_file(host, _journal("r0"), "docker.default", PutFile(str(path), NEW, mode=MODE)))


def _restoring(written: Written | None) -> Callable[[Host], object]:
    assert written
    return lambda host: restore(host, _journal("back"), "docker.default", written, own=True)


def _journal(run_id: str) -> Journal:
    journal = Journal(run_id)
    journal.add("step-begin", step="docker.default", title="t")
    return journal


ACTS = {
    "a file is rewritten": Act(OLD, OLD, NEW, putting),
    "a file and its directories are made": Act(None, None, NEW, putting),
    "a file is removed": Act(OLD, OLD, None, removing),
    "a rewritten file is restored": Act(OLD, NEW, OLD, restoring_rewritten),
    "a removed file is restored": Act(OLD, None, OLD, restoring_removed),
    "a made file is taken away": Act(None, NEW, None, restoring_made),
}


@dataclass(frozen=True)
class Moment:
    """A host whose script was just killed."""

    number: int
    machine: Machine
    path: Path
    again: Callable[[Host], object]


def moments(root: Path, shell: tuple[str, ...], act: Act, name: str = "docker/daemon.json") -> Iterator[Moment]:
    """Every moment at which the act can be killed, each on a host of its own."""
    for number in range(1, MOMENTS):
        machine = Machine(root / str(number), shell)
        path = machine.root / "etc" / name
        path.parent.parent.mkdir(parents=True)
        if act.first is not None:
            path.parent.mkdir()
            path.write_text(act.first)
            path.chmod(MODE)
        deed = act.begin(Host(machine), path)
        mortal = Mortal(machine.root, shell, last=number)
        with suppress(TransportError):
            deed(Host(mortal))
        if not mortal.died:
            return
        yield Moment(number, machine, path, deed)
    raise AssertionError(f"it never came to its end in {MOMENTS} changes")


def text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("shell", SHELLS, ids=["dash", "busybox"])
@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in ACTS.items()])
def test_killed_at_any_moment_the_file_is_old_or_new_and_the_next_run_finishes(
    tmp_path: Path, act: Act, shell: tuple[str, ...]
) -> None:
    seen = []
    for moment in moments(tmp_path, shell, act):
        path, host = moment.path, Host(moment.machine)
        seen.append(text(path))
        assert seen[-1] in (act.before, act.after), f"torn after change {moment.number}"
        if path.exists():
            assert path.stat().st_mode & 0o777 == MODE
        if seen[-1] != act.first:
            assert_announced(moment)
        moment.again(host)
        assert text(path) == act.after, f"not finished after change {moment.number}"
        assert candidates(moment.machine.root / "etc") == []
        assert path.exists() or path.parent.exists() == (act.first is not None), "its directory is as before"
    assert set(seen) == {act.before, act.after}, "no kill came before the decision, or none after it"


def test_what_a_killed_write_left_is_removed_by_the_next_run_whatever_that_does(tmp_path: Path) -> None:
    other = Plan("testhost", Spec(), "", steps=(Step("kernel.nouveau", "title", "why", (Run(("true",)),)),))
    met = copies = 0
    for moment in moments(tmp_path, ("dash",), ACTS["a file is rewritten"]):
        directory, before = moment.machine.root / "etc", text(moment.path)
        met += candidates(directory) != []
        copies += unfinished(moment.machine.root) != []
        execute(other, moment.machine, run_id="next", on_event=lambda _: None, stop=lambda: False)
        assert candidates(directory) == [], f"after change {moment.number}"
        assert unfinished(moment.machine.root) == [], f"after change {moment.number}"
        assert text(moment.path) == before
    assert met
    assert copies


@pytest.mark.parametrize("name", ["crio/crio.conf.d/99-nvidia.toml", "crio.d/10-more/x.toml"])
@pytest.mark.parametrize(
    "act", ["a file is rewritten", "a removed file is restored", "a file and its directories are made"]
)
def test_no_moment_leaves_crio_a_second_file_to_read(tmp_path: Path, act: str, name: str) -> None:
    """It reads whatever lies in its drop-ins' directory and below, under any name."""
    other = Plan("testhost", Spec(), "", steps=(Step("kernel.nouveau", "title", "why", (Run(("true",)),)),))
    met = 0
    for moment in moments(tmp_path, ("dash",), ACTS[act], name):
        etc = moment.machine.root / "etc"
        left = candidates(etc)
        met += left != []
        assert not [path for path in left if any(above.name in ("crio.conf.d", "crio.d") for above in path.parents)]
        execute(other, moment.machine, run_id="next", on_event=lambda _: None, stop=lambda: False)
        assert candidates(etc) == [], f"after change {moment.number}"
    assert met


def test_what_an_older_release_left_there_goes(tmp_path: Path) -> None:
    directory = tmp_path / "etc/crio/crio.conf.d"
    directory.mkdir(parents=True)
    left, path = directory / ".99-nvidia.toml.gpunode", directory / "99-nvidia.toml"
    left.write_text('[crio.runtime]\ndefault_runtime = "nvi')
    putting(Host(Machine(tmp_path)), path)(Host(Machine(tmp_path)))
    assert list(directory.iterdir()) == [path]


def assert_announced(moment: Moment) -> None:
    """Whatever stands on the disk, the journal says how to come back from it."""
    steps = open_steps(parse_journal(moment.machine.journal)).values()
    written = [file for files in steps for file in files][-1]
    assert written.path == str(moment.path)
    assert written.before == "absent" or sha256(Path(written.backup).read_bytes()) == written.before


def candidates(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.name.startswith(".")]


def unfinished(root: Path) -> list[Path]:
    """Copies among the backups that were being made."""
    return list(root.rglob("*.part"))
