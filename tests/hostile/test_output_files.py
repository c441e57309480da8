"""--output, --save and --record: a whole file for its owner only, or one message, and nothing else is touched.

The devices here are made in the test's own directory; those of the machine are never named to anything that writes.
"""

from __future__ import annotations

import os
import pty
import resource
import signal
import socket
import stat
from pathlib import Path

import pytest

from gpunode.cli import output
from gpunode.cli.app import main
from gpunode.errors import UsageError
from gpunode.offline import output_file

HOST = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-ready")
VERBS = {
    "--output": ["detect", "--recorded", HOST, "--json", "--output"],
    "--save": ["plan", "--recorded", HOST, "--save"],
    "--record": ["detect", "--recorded", HOST, "--record"],
}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")


@pytest.fixture(params=VERBS)
def words(request: pytest.FixtureRequest) -> list[str]:
    return VERBS[request.param]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(words: list[str], path: Path, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, one message, nothing left beside."""
    before = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    capsys.readouterr()
    assert main([*words, str(path)]) == 2
    out, err = capsys.readouterr()
    assert ('"schema": "gpunode.error/2"' in out) if "--json" in words else out == ""
    assert f"{words[-1]} {path} cannot be written" in " ".join(err.split())
    assert why in " ".join(err.split())
    assert err.count("gpunode:") == 1
    assert (sorted(path.parent.iterdir()) if path.parent.is_dir() else []) == before


def test_a_new_file_is_for_its_owner_only(words: list[str], tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert main([*words, str(tmp_path / "new")]) == 0
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_file_that_others_could_read_is_replaced_by_one_they_cannot(words: list[str], tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("before\n")
    old.chmod(0o666)
    with old.open() as reader:  # who holds it open goes on reading the old file
        assert main([*words, str(old)]) == 0
        assert reader.read() == "before\n"
    assert mode(old) == 0o600
    assert old.stat().st_nlink == 1


def test_another_name_of_the_same_file_keeps_its_text(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before\n")
    os.link(tmp_path / "old", tmp_path / "other")
    assert main([*words, str(tmp_path / "old")]) == 0
    assert (tmp_path / "other").read_text() == "before\n"


@pytest.mark.parametrize("target", ["there", "missing", "/etc/passwd"])
def test_a_link_is_refused_by_its_target(
    words: list[str], target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").write_text("before\n")
    link = tmp_path / "link"
    link.symlink_to(target)
    refused(words, link, f"it is a symbolic link to {target}", capsys)
    assert link.is_symlink()
    assert (tmp_path / "there").read_text() == "before\n"


def test_a_fifo_is_refused_and_not_waited_for(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")
    refused(words, tmp_path / "fifo", "it is a FIFO", capsys)
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)


def test_a_socket_is_refused(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket is short
        try:
            listening.bind("s")
        finally:
            os.chdir(here)
        refused(words, tmp_path / "s", "it is a socket", capsys)
        assert stat.S_ISSOCK((tmp_path / "s").lstat().st_mode)


def test_a_directory_is_refused(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "directory").mkdir()
    refused(words, tmp_path / "directory", "it is a directory", capsys)
    assert list((tmp_path / "directory").iterdir()) == []


@needs_root
@pytest.mark.parametrize("kind", ["null", "disk"])
def test_a_device_is_refused_and_stays(
    words: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--output /dev/null` as root replaced the device by a file, and the machine with it."""
    device = tmp_path / kind
    made = (stat.S_IFCHR, os.makedev(1, 3)) if kind == "null" else (stat.S_IFBLK, os.makedev(7, 250))
    try:
        os.mknod(device, made[0] | 0o666, made[1])
    except PermissionError:
        pytest.skip("this root may not make devices")
    refused(words, device, "device", capsys)
    assert stat.S_IFMT(device.lstat().st_mode) == made[0]


@needs_root
def test_a_terminal_is_written_to(tmp_path: Path) -> None:
    """A device of our own with the number of /dev/tty, opened by a child whose terminal is ours."""
    try:
        os.mknod(tmp_path / "tty", stat.S_IFCHR | 0o600, os.makedev(5, 0))
        os.close(os.open(tmp_path / "tty", os.O_PATH))
    except PermissionError:
        pytest.skip("this root may not make devices")
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.close(os.open(tmp_path / "tty", os.O_WRONLY))
        except OSError:
            os._exit(77)  # a file system that is mounted nodev
        output_file.write_whole(tmp_path / "tty", "seen", "--output")
        os._exit(0)
    said = b""
    try:
        while piece := os.read(terminal, 1000):
            said += piece
    except OSError:
        pass  # Linux ends a terminal whose last writer has left with EIO
    finally:
        os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        pytest.skip("devices cannot be opened in the temporary directory")
    assert code == 0
    assert b"seen" in said
    assert stat.S_ISCHR((tmp_path / "tty").lstat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/dev/./stdout", "/proc/self/fd/1"])
def test_the_names_of_stdout_mean_stdout(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a file would have been written")

    monkeypatch.setattr(output_file, "write_whole", never)
    output_file.check(Path(name), "--output")
    output.to_file(Path(name), "seen", "--output")
    assert capfd.readouterr().out == "seen\n"


def test_directories_are_not_made(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(words, tmp_path / "missing" / "file", "its directory: No such file or directory", capsys)
    assert not (tmp_path / "missing").exists()
    (tmp_path / "file").write_text("")
    refused(words, tmp_path / "file" / "file", "its directory: Not a directory", capsys)


@pytest.mark.parametrize("name", [".", "..", "a\0b"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        output_file.write_whole(Path(os.path.join(tmp_path, "x", "..", name)), "", "--output")


@needs_root
def test_a_directory_of_somebody_else_is_refused_before_anything_is_done() -> None:
    """Asked as nobody, in a child, since nobody does not come back."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gpunode-test-") as directory:
        os.chmod(directory, 0o755)
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                output_file.check(Path(directory) / "file", "--output")
            except UsageError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert os.listdir(directory) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    """A limit on the size of files ends a write as a full disk does: in the middle, with an error."""
    (tmp_path / "old").write_text("before\n")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            output_file.write_whole(tmp_path / "old", "x" * 100_000, "--output")
        except UsageError as error:
            code = 0 if "cannot be written" in error.problem else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / "old").read_text() == "before\n"
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_a_stop_in_the_middle_leaves_nothing_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        output_file.write_whole(tmp_path / "new", "x", "--output")
    assert list(tmp_path.iterdir()) == []


def test_setup_refuses_before_it_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert main(["setup", "--recorded", HOST, "--output", str(tmp_path / "fifo")]) == 2
    assert "it is a FIFO" in capsys.readouterr().err
