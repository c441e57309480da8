"""What a person gets who presses Tab in a real bash, zsh and fish, at a terminal of their own."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from gpunode_release.completions import completions

# What is typed before Tab, and the command line that Enter then runs.
TYPED = (
    ("gpunode che", "check"),
    ("gpunode k8s pref", "k8s preflight"),
    ("gpunode check --ss", "check --ssh"),
    ("gpunode runs show la", "runs show last"),
    ("gpunode check --format jsonl", "check --format jsonl"),
    ("gpunode check --format=pro", "check --format=prometheus"),
    ("gpunode k8s labels --form node-", "k8s labels --form node-labels"),
    ("gpunode check --spec /etc/hostna", "check --spec /etc/hostname"),
)
# gpunode itself is not there: whoever completes asks no Python.
_RUN = 'gpunode() { printf "RAN<%s>\\n" "$*"; }'
SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source {files}/bash/gpunode"),
    "zsh": (("zsh", "-f", "-i"), "fpath=({files}/zsh $fpath); autoload -Uz compinit; compinit -u -D"),
}
_LIMIT_S = 60.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("completions")
    for name, text in completions().items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    return home


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes(shell: str, files: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    argv, load = SHELLS[shell]
    with Terminal(argv, files) as terminal:
        terminal.ask(f"{load.format(files=files)}; {_RUN}", "")
        assert [terminal.ask(words, "\t") for words, _ in TYPED] == [ran for _, ran in TYPED]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(files: Path) -> None:
    asked = "; ".join(
        f"complete -C '{words}' | string replace -r '\\t.*' '' | string join ,; echo" for words, _ in TYPED
    )
    told = subprocess.run(
        ("fish", "--no-config", "-c", f"source {files}/fish/gpunode.fish; {asked}"),
        env={"PATH": os.environ["PATH"], "HOME": str(files)},
        capture_output=True,
        text=True,
        check=True,
    )
    offered = [line.split(",") for line in told.stdout.split("\n") if line]
    assert [words[-1] in some for (_, words), some in zip(_last_words(), offered, strict=True)] == [True] * len(TYPED)


def _last_words() -> list[tuple[str, list[str]]]:
    return [(typed, ran.split()) for typed, ran in TYPED]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_file_parses(shell: str, files: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (file,) = (files / shell).iterdir()
    told = subprocess.run((shell, "-n", file), capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")


class Terminal:
    """An interactive shell at a pseudoterminal, with nobody's configuration."""

    def __init__(self, argv: tuple[str, ...], home: Path) -> None:
        self._argv = argv
        self._home = home
        self._shown = ""

    def __enter__(self) -> Terminal:
        # Not pty.fork(): its child runs Python beside the threads of pytest-xdist.
        master, slave = pty.openpty()
        self._master = master
        self._process = subprocess.Popen(
            self._argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self._home), "TERM": "dumb", "COLUMNS": "200", "LINES": "50"},
            start_new_session=True,
        )
        os.close(slave)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._master)

    def ask(self, words: str, key: str) -> str:
        """What ran when `words`, `key` and Enter were pressed; without a key, nothing but that the line has run."""
        self._shown = ""
        if not key:
            os.write(self._master, f"{words}\nprintf 'RAN<%s>\\n' ready\n".encode())
            return self._until("RAN<ready>")
        os.write(self._master, (words + key).encode())
        self._quiet()
        os.write(self._master, b"\n")
        found = re.search("RAN<(.*?)>", self._until("RAN<"))
        return found[1].strip() if found else self._shown

    def _until(self, mark: str) -> str:
        end = time.monotonic() + _LIMIT_S
        while not re.search(f"{mark}.*\n", self._shown) and time.monotonic() < end:
            self._read(0.2)
        return self._shown

    def _quiet(self) -> None:
        """Until the line on the screen has not moved for a while."""
        while self._read(0.7):
            pass

    def _read(self, limit_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], limit_s)
        if ready:
            self._shown += os.read(self._master, 65536).decode("utf-8", "replace")
        return bool(ready)
