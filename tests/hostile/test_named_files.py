"""Files that a person names, and somebody else made: a pipe without a writer, a device without end, a huge one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gpunode.cli.app import main

EXAMPLE = Path(__file__).parents[2] / "examples/hosts/debian12-l4/facts.txt"
READERS = {
    "a recording": ["detect", "--recorded"],
    "a spec": ["plan", "--recorded", str(EXAMPLE), "--spec"],
    "a password": ["detect", "--ssh", "127.0.0.1:1", "--become-pass-file"],
}
each = pytest.mark.parametrize("words", READERS.values(), ids=READERS)


def refused(words: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, str(path)]) == 2
    said = capsys.readouterr().err
    assert "internal error" not in said
    assert str(path) in said
    return said


@each
def test_a_pipe_without_a_writer_is_not_waited_for(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty spec asks for nothing, and is one."""
    os.mkfifo(tmp_path / "file")
    if "--spec" in words:
        assert main([*words, str(tmp_path / "file")]) in (0, 3)
    else:
        refused(words, tmp_path / "file", capsys)


def test_a_directory_of_somebodys_with_a_pipe_in_it_is_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "facts.txt")
    refused(["detect", "--recorded"], tmp_path, capsys)


@each
def test_a_device_without_end_is_read_so_far(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(words, Path("/dev/zero"), capsys)


@each
def test_a_huge_file_is_not_read_whole(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A terabyte of holes, which takes no place on the disk and all memory there is."""
    with open(tmp_path / "file", "wb") as file:
        try:
            file.truncate(1 << 40)
        except OSError as error:
            pytest.skip(f"no such file can be made here: {error}")
    refused(words, tmp_path / "file", capsys)


@each
def test_a_directory_is_no_file(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(words, tmp_path, capsys)


def test_what_comes_through_a_pipe_is_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `--recorded <(zcat FILE)` names it."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(EXAMPLE.read_bytes())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert main(["detect", "--recorded", f"/dev/fd/{reading}"]) == 0
    finally:
        os.close(reading)
        thread.join(60)
    assert "L4" in capsys.readouterr().out
