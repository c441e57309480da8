"""Any of the three streams may be closed by whoever starts gpunode: a lost result is reported, and nothing crashes."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpunode.render.door import show
from gpunode.render.verdict import UNKNOWN

HOST = Path(__file__).parents[2] / "examples/hosts/debian12-l4"
VERBS = {
    "detect": (("detect", "--recorded", str(HOST)), 0),
    "plan": (("plan", "--recorded", str(HOST)), 0),
    "check": (("check", "--recorded", str(HOST)), 1),
    "check as JSON": (("check", "--recorded", str(HOST), "--json"), 1),
    "--help": (("--help",), 0),
    "--version": (("--version",), 0),
    "a word that is no verb": (("nosuch",), 2),
}
CLOSED = (">&-", "<&-", "2>&-", "<&- >&- 2>&-")


def gpunode(redirection: str, words: tuple[str, ...], directory: Path) -> subprocess.CompletedProcess[str]:
    """The command, started by a shell that closes what `redirection` says."""
    code = "import sys; from gpunode.cli.app import run; run()"
    shell = ("sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", code, *words)
    environment = {**os.environ, "XDG_STATE_HOME": str(directory), "HOME": str(directory)}
    return subprocess.run(shell, env=environment, capture_output=True, text=True, check=False)


def untimed(text: str) -> str:
    return re.sub(r"\d+\.\d+", "N", text)


@pytest.mark.parametrize(("words", "code"), VERBS.values(), ids=VERBS)
def test_a_closed_stream(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    want = gpunode("", words, tmp_path)
    assert want.returncode == code
    for redirection in CLOSED:
        done = gpunode(redirection, words, tmp_path)
        out, err = ">&-" in redirection.split(), "2>&-" in redirection.split()
        lost = out and want.stdout != ""
        assert done.returncode == (1 if lost else code), done.stderr
        assert untimed(done.stdout) == ("" if out else untimed(want.stdout))
        if lost and not err:
            assert "cannot be printed: stdout is closed" in done.stderr
        else:
            assert untimed(done.stderr) == ("" if err else untimed(want.stderr))
    assert not list(tmp_path.rglob("crash-*"))


@pytest.mark.parametrize(("words", "_code"), VERBS.values(), ids=VERBS)
def test_an_output_that_takes_nothing_is_told(words: tuple[str, ...], _code: int, tmp_path: Path) -> None:
    done = gpunode(">/dev/full", words, tmp_path)
    assert done.returncode == (2 if words == ("nosuch",) else 1)
    assert "No space left on device" in done.stderr or words == ("nosuch",)
    assert "internal error" not in done.stderr
    assert not list(tmp_path.rglob("crash-*"))


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize("flag", ["--npd", "--nhc"])
def test_a_verdict_that_cannot_be_printed_is_none(flag: str, redirection: str, tmp_path: Path) -> None:
    """1 would be a node that is unfit, and drain it."""
    done = gpunode(redirection, ("check", flag, "--recorded", str(HOST)), tmp_path)
    assert done.returncode == UNKNOWN
    assert "cannot be printed" in done.stderr


@pytest.mark.parametrize("words", [*(words for words, _ in VERBS.values()), ("plan",), ("lock",)], ids=" ".join)
def test_who_reads_the_remarks_may_leave(words: tuple[str, ...], tmp_path: Path) -> None:
    """As in `gpunode ... 2>&1 | head -1`: the exit code is that of what was done, never a success that it was not."""
    want = gpunode("", words, tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        argv = (sys.executable, "-c", "from gpunode.cli.app import run; run()", *words)
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=nobody, text=True, check=False)
    assert (done.returncode, done.stdout == "") == (want.returncode, want.stdout == "")
    assert not list(tmp_path.rglob("crash-*"))


@pytest.mark.parametrize("words", [*(words for words, _ in VERBS.values()), ("plan",), ("lock",)], ids=" ".join)
def test_a_full_disk_may_take_the_remarks(words: tuple[str, ...], tmp_path: Path) -> None:
    """As in `gpunode ... 2>log`, with nohup or a unit's own log."""
    want = gpunode("", words, tmp_path)
    with open("/dev/full", "w") as full:
        argv = (sys.executable, "-c", "from gpunode.cli.app import run; run()", *words)
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert (done.returncode, done.stdout == "") == (want.returncode, want.stdout == "")
    assert not list(tmp_path.rglob("crash-*"))


def test_a_stderr_that_takes_nothing_at_this_moment_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question may be what it did not take: nobody is asked then, and no answer is waited for."""

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise BlockingIOError

    monkeypatch.setattr(sys, "stderr", Full())
    with pytest.raises(BlockingIOError):
        show("Apply 3 steps? [y/N]", sys.stderr)


def test_a_pipe_that_breaks_inside_a_verb_is_no_success() -> None:
    for words, code in (["check"], 1), (["--help"], 0):
        ended = f"from gpunode.cli.errors import ended_by; raise SystemExit(ended_by(BrokenPipeError(), {words!r}))"
        assert subprocess.run((sys.executable, "-c", ended), check=False).returncode == code


def test_no_file_or_connection_takes_the_place_of_a_closed_stream() -> None:
    """What is printed would go into it: its number is the lowest that is free."""
    code = (
        "import os, sys; from gpunode.cli.streams import fill_closed_streams; fill_closed_streams(); "
        "f = os.open('/etc/passwd', os.O_RDONLY); "
        "null = os.stat(os.devnull).st_rdev; "
        "sys.exit(0 if f > 2 and all(os.fstat(n).st_rdev == null for n in range(3)) else 1)"
    )
    done = subprocess.run(("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code), check=False)
    assert done.returncode == 0
