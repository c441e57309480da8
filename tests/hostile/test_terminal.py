"""What a host, a file or a name sends to the terminal: shown, and never obeyed."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import pty
import random
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpunode
from gpunode.apply.commands.detached import wait_for_running
from gpunode.cli.app import main
from gpunode.cli.errors import error_text, say
from gpunode.errors import ExitCode, GpunodeError
from gpunode.fleet.run_log import RunLog
from gpunode.model.report import Event, EventKind, HostOutcome, StepStatus
from gpunode.render.clean import clean, clean_json, clean_line
from gpunode.render.door import cleaned, show
from gpunode.render.encode import dumps
from gpunode.render.live import Progress
from gpunode.render.style import CODES, Style, paint
from gpunode.transport.base import Completed

PRODUCT = Path(gpunode.__file__).parent
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "hosts"

# One of each kind: title, clear screen, C1 CSI, hidden text, carriage return, DEL, bidi, line separators, a raw byte.
EVIL = "[red]a\x1b]0;PWNED\x07b\x1b[2Jc\x9b5md\x1b[8me\rf\x7fg\u202eh\u2066i\u200fj\u061ck\u2028l\u2029mn"
EVIL_BYTES = EVIL.encode() + b"\x9bo"
OBEYED = "\x07\x08\r\x1b\x7f\x9b\u202e\u2066\u200f\u061c\u2028\u2029\x85"


def obeyed(text: str) -> set[str]:
    """What is left in `text` that a terminal obeys."""
    return set(
        re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text)
    )


def without_ours(text: str) -> str:
    """A terminal's text without our colours, the end of a line as a terminal has it, and the live table's moves."""
    ours = "|".join([*CODES.values(), "0"])
    moves = r"\x1b\[\?25[lh]|\x1b\[[12]?[AK]|\r+(?=\x1b\[[12?]|\n|$)"
    return re.sub(rf"\x1b\[(?:{ours})m|{moves}", "", text)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f\x08\r", "\\x7f\\x08\\x0d"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066\u2069\u200e\u200f\u061c", "\\u2066\\u2069\\u200e\\u200f\\u061c"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\udc9b", "\\udc9b"),
        ("a\n\tb", "a\n\tb"),
        ("a\r\nb", "a\nb"),
        ("日本 é · → 🙂 [red]", "日本 é · → 🙂 [red]"),
    ],
)
def test_what_a_terminal_obeys_is_shown(raw: str, shown: str) -> None:
    assert clean(raw) == shown
    assert not obeyed(clean_line(raw))


def test_a_line_stays_one_line() -> None:
    assert clean_line("a\nb\tc\r\n") == "a\\nb\\tc\\x0d\\n"


def test_every_character_is_either_harmless_or_shown() -> None:
    everything = "".join(map(chr, range(0x3000))) + "\ud800\udfff"
    assert not obeyed(clean(everything))
    assert not obeyed(clean_json(everything))


def test_json_escapes_them_and_keeps_the_value() -> None:
    text = dumps({EVIL: [EVIL]})
    assert not obeyed(text)
    assert json.loads(text) == {EVIL: [EVIL]}


def test_our_colours_stay_where_they_are_ours() -> None:
    style = Style(colour=True)
    for meaning, code in CODES.items():
        assert cleaned(paint(style, meaning, "word"), painted=True) == f"\x1b[{code}mword\x1b[0m"
    assert obeyed(cleaned(EVIL, painted=True)) == set()
    assert cleaned("\x1b[32mdone\x1b[0m", painted=False) == "\\x1b[32mdone\\x1b[0m"


def test_a_colour_of_ours_that_a_host_writes_is_shown() -> None:
    for code in [*CODES.values(), "0", "32;1", f"32;{2**63}"]:
        assert not obeyed(cleaned(f"\x1b[{code}mpass\x1b[0m", painted=True))


def test_a_message_is_one_line_and_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"host  {EVIL}\ngpunode: all is well")
    err = capsys.readouterr().err
    assert (err.count("\n"), obeyed(err)) == (1, set())


def test_a_closed_stderr_is_nobody_to_tell() -> None:
    show("text", None)


def test_errors_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    show(error_text(GpunodeError(EVIL, evidence=EVIL, remedy=EVIL), Style(colour=True)), sys.stderr, painted=True)
    assert not obeyed(without_ours(capsys.readouterr().err))


class Waiting:
    """A host on which something runs that a killed gpunode is said to have left; both names are the host's own."""

    target = "gpu07"

    def __init__(self) -> None:
        self.answers = [b"run" + EVIL_BYTES.replace(b" ", b"") + b"\n", b"ended 0 9\nlast " + EVIL_BYTES + b"\n"]

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        return Completed(0, self.answers.pop(0) if self.answers else b"ended 0 9\n", b"", 0.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def test_the_name_of_what_a_host_waits_for_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    """setup and undo tell it before anything else: the first thing that a hostile host can say."""
    wait_for_running(Waiting(), on_output=lambda line: say(f"gpu07  {line}"), pause=lambda _: None)
    err = capsys.readouterr().err
    assert "waiting for run" in err
    assert not obeyed(err)


EVENTS = (
    Event(EventKind.PHASE, EVIL, EVIL),
    Event(EventKind.NOTE, "h", f"{EVIL}\nfake line"),
    Event(EventKind.STEP_BEGIN, "h", EVIL, step=EVIL),
    Event(EventKind.STEP_END, "h", EVIL, step=EVIL, status=StepStatus.FAILED),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("live", [False, True], ids=["plain lines", "live table"])
@pytest.mark.parametrize("colour", [False, True], ids=["plain", "coloured"])
def test_progress_is_cleaned(live: bool, colour: bool) -> None:
    stream = Terminal()
    with Progress(Style(colour=colour, live=live), stream, ["h", EVIL]) as progress:
        for event in EVENTS:
            progress.event(event)
            if progress._live:
                progress._live.refresh()
        progress.done(HostOutcome("h", ExitCode.FAILED, problem=EVIL))
    text = stream.getvalue()
    assert text
    assert not obeyed(without_ours(text))
    assert "[red]" in text
    assert not any(line.startswith("fake") for line in text.splitlines())


VERBS = (
    ("detect",),
    ("detect", "-vv"),
    ("detect", "--json"),
    ("plan",),
    ("plan", "-vv"),
    ("plan", "--explain"),
    ("plan", "--json"),
    ("plan", "--format", "jsonl"),
    ("setup", "-v"),
    ("setup", "--json"),
    ("check",),
    ("check", "-v"),
    ("check", "--json"),
    ("runtime", "show"),
    ("runtime", "show", "--json"),
    ("undo",),
)


NEEDED = (b"pci", b"tools", b"modules")  # without these there is little that a verb could show


def hostile(stream: bytes, seed: int) -> bytes:
    """A recording in which some of the host's output is EVIL; names, versions, units, files, errors."""
    chance = random.Random(seed)
    out: list[bytes] = []
    in_file: list[bytes] | None = None
    section = b""
    for line in stream.split(b"\n"):
        section = line.split()[1] if line.startswith(b"@ ") else section
        if in_file is not None and not line.startswith(b"|"):
            out += _file(in_file, chance)
            in_file = None
        if line.startswith(b"@ file:") and b"bytes=" in line:
            in_file = [line]
        elif in_file is not None:
            in_file.append(line)
        elif line.startswith(b"|uid="):
            out.append(line)
        elif line.startswith(b"|") and section not in NEEDED and chance.random() < 0.2:
            place = chance.choice([m.end() for m in re.finditer(rb"[\w\"]+", line)] or [len(line)])
            out.append(line[:place] + EVIL_BYTES.replace(b"\x00", b"") + line[place:])
        else:
            out.append(line)
    return b"\n".join(out)


def _file(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """A file's section: EVIL in a comment, size and hash as the probe would have sent them."""
    head, text = lines[0], [line[1:] for line in lines[1:]]
    if chance.random() < 0.5 or b'"' in b"".join(text[:1]):
        return lines
    text.append(b"# " + EVIL_BYTES)
    whole = b"\n".join(text) + b"\n"
    head = re.sub(rb"bytes=\d+", b"bytes=%d" % len(whole), head)
    head = re.sub(rb"sha256=\w+", b"sha256=" + hashlib.sha256(whole).hexdigest().encode(), head)
    return [head, *(b"|" + line for line in text)]


@pytest.fixture(params=range(6), ids=lambda seed: f"seed {seed}")
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A hostile host, its own name (the directory's) included; the last ones are hostile in its name alone."""
    seed: int = request.param
    hosts = ("ubuntu2404-k3s-l4", "debian12-ready", "rocky9-l40s", "debian12-upgrade", "debian12-l4", "ubuntu2204-t4")
    stream = (EXAMPLES / hosts[seed] / "facts.txt").read_bytes()
    directory = tmp_path / EVIL.replace("/", "")
    directory.mkdir()
    (directory / "facts.txt").write_bytes(stream if seed >= 4 else hostile(stream, seed))
    return directory


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_no_verb_lets_a_host_write_to_the_terminal(
    recording: Path, words: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    main([*words, "--recorded", str(recording)])
    shown = capsysbinary.readouterr()
    text = (shown.out + shown.err).decode("utf-8", "surrogateescape")
    assert text
    assert not obeyed(text)
    assert "internal error" not in text


def test_an_output_file_can_be_shown_on_a_terminal(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for verb in ("detect", "plan", "check"):
        if main([verb, "-v", "--recorded", str(recording), "--output", str(out)]) not in (2, 3, 4):
            assert not obeyed(out.read_text(encoding="utf-8", errors="surrogateescape"))


def on_a_terminal(script: str, *args: str) -> str:
    """What a terminal gets from a Python of ours."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a chroot without /dev/pts
        pytest.skip(f"there are no terminals here: {error}")
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(PRODUCT.parent)}
    env.pop("NO_COLOR", None)
    child = subprocess.Popen(
        [sys.executable, "-c", script, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    found = b"".join(_until_closed(ours))
    os.close(ours)
    assert child.wait(60) == 0
    return found.decode("utf-8", "surrogateescape")


def _until_closed(handle: int) -> Iterator[bytes]:
    while select.select([handle], [], [], 60)[0]:
        try:
            data = os.read(handle, 65536)
        except OSError:  # EIO: the other side is closed
            return
        if not data:
            return
        yield data


def test_on_a_terminal_only_our_own_colours_are_obeyed(tmp_path: Path) -> None:
    """All verbs in one process, since a process takes its time to start."""
    directories = [tmp_path / str(seed) / EVIL.replace("/", "") for seed in range(4)]
    for seed, directory in enumerate(directories):
        directory.mkdir(parents=True)
        stream = (EXAMPLES / "debian12-l4" / "facts.txt").read_bytes()
        (directory / "facts.txt").write_bytes(hostile(stream, seed) if seed else stream)
    script = (
        "import json, sys\nfrom gpunode.cli.app import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    for directory in sys.argv[2:]: main([*words, '--recorded', directory])"
    )
    text = on_a_terminal(script, json.dumps(VERBS), *map(str, directories))
    assert "\x1b[1m" in text, "there are colours"
    assert not obeyed(without_ours(text))


def test_a_host_cannot_paint_with_our_colours(tmp_path: Path) -> None:
    """A host called "sound" in green: check names hosts beside the finding, and nothing there was cleaned before."""
    directory = tmp_path / "\x1b[32msound\x1b[0m"
    directory.mkdir()
    (directory / "facts.txt").write_bytes((EXAMPLES / "debian12-l4" / "facts.txt").read_bytes())
    script = (
        "import json, sys\nfrom gpunode.cli.app import main\n"
        "for words in json.loads(sys.argv[1]): main([*words, '--recorded', sys.argv[2]])"
    )
    text = on_a_terminal(script, json.dumps(VERBS), str(directory))
    assert "\x1b[31;1mFAIL\x1b[0m" in text, "there are colours"
    assert "\\x1b[32msound\\x1b[0m" in text
    assert "\x1b[32msound" not in text


# TOML refuses ESC in a comment, and takes what is no better: C1 CSI, next line, bidi controls, line separators.
ODD_TOML = "version = 2\n# \x9b2J \x85 \u202e \u2066 \u2028 [red]\n".encode()


@pytest.mark.parametrize("more", [("--dry-run",), ("--dry-run", "--diff"), ("--dry-run", "--json"), ()], ids=" ".join)
def test_a_hostile_configuration_is_shown_cleaned(tmp_path: Path, more: tuple[str, ...]) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(ODD_TOML)
    words = ["runtime", "configure", "containerd", "--config", str(config), *more]
    text = on_a_terminal("import sys\nfrom gpunode.cli.app import main\nmain(sys.argv[1:])", *words)
    assert "no such option" not in text
    assert not obeyed(without_ours(text))
    if more:
        assert ("\\u009b2J" if "--json" in more else "\\x9b2J") in text


@pytest.mark.parametrize("name", ["/dev/stdout", "TTY"], ids=["stdout", "a terminal by its path"])
@pytest.mark.parametrize(
    "words",
    [
        ("detect", "-q", "--recorded", "HOST", "--record"),
        ("plan", "-q", "--recorded", "HOST", "--save"),
        ("detect", "--recorded", "HOST", "--output"),
        ("runtime", "configure", "containerd", "--dry-run", "--config", "CONFIG", "--output"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_terminal_that_is_named_as_a_file_gets_it_cleaned(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    """What a file of the person's gets to the byte, a recording or a configuration, is nothing for a terminal."""
    host, config = tmp_path / "host", tmp_path / "config.toml"
    host.mkdir()
    (host / "facts.txt").write_bytes(hostile((EXAMPLES / "debian12-l4" / "facts.txt").read_bytes(), 2))
    config.write_bytes(ODD_TOML)
    script = (
        "import os, sys\nfrom gpunode.cli.app import main\n"
        "sys.exit(main([os.ttyname(1) if word == 'TTY' else word for word in sys.argv[1:]]))"
    )
    typed = [{"HOST": str(host), "CONFIG": str(config)}.get(word, word) for word in words]
    text = on_a_terminal(script, *typed, name)
    assert len(text) > 200, "something is shown"
    assert not obeyed(without_ours(text))


def test_a_pipe_gets_the_configurations_own_bytes(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(ODD_TOML)
    assert main(["runtime", "configure", "containerd", "--config", str(config), "--dry-run", "-q"]) == 0
    assert capsysbinary.readouterr().out.startswith(ODD_TOML)


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--driver", EVIL],
        ["plan", "--spec", f"/nosuch/{EVIL}"],
        ["plan", "--recorded", f"/nosuch/{EVIL}"],
        ["setup", "--plan", f"/nosuch/{EVIL}"],
        ["check", "--explain", EVIL],
        ["runtime", "show", EVIL],
        ["runtime", "configure", EVIL],
        ["runtime", "configure", "docker", "--config", f"/nosuch/{EVIL}", "--dry-run", "--diff"],
        ["catalog", EVIL],
        ["detect", "--ssh", EVIL],
        [EVIL],
        ["plan", f"--{EVIL}"],
        ["undo", "--run", EVIL, "--recorded", "x"],
    ],
    ids=lambda words: " ".join(words)[:20].encode("ascii", "replace").decode(),
)
def test_what_was_typed_is_cleaned_as_well(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It may have come from a file or a web page."""
    main(words)
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err)


def test_a_run_log_can_be_shown_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the host's own journal, and a hostile host's journal holds what it likes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    log = RunLog("r", complain=print)
    log.write("gpu07.journal", f'{{"kind": "file", "path": "{EVIL}"}}\n')
    text = (log.directory / "gpu07.journal.jsonl").read_bytes().decode("utf-8", "surrogateescape")
    assert not obeyed(text)
    assert json.loads(text)["path"] == EVIL


DOORS = ("render/door.py", "cli/output.py")
QUICK = ("cli/app.py",)  # `--version` and `--help` load nothing, and say nothing of anybody else's


def printing(tree: ast.Module) -> Iterator[int]:
    """Lines that print, or take hold of what prints."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        call = ast.unparse(node.func)
        wrote = re.fullmatch(r"(sys|_sys)\.(__)?std(out|err)(__)?\.(write|writelines|buffer\..*)", call)
        if call == "print" or call.endswith((".print", ".echo", ".secho")) or call in ("echo", "secho") or wrote:
            yield node.lineno
        if call == "os.write" and node.args and ast.unparse(node.args[0]) in ("1", "2"):
            yield node.lineno


def test_nothing_prints_but_the_doors() -> None:
    wrong = []
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT).as_posix()
        lines = list(printing(ast.parse(path.read_text(encoding="utf-8"))))
        if name in QUICK:
            assert len(lines) == 1
        elif name not in DOORS:
            wrong += [f"gpunode/{name}:{line}" for line in lines]
    assert not wrong, "use say, say_error, show or deliver"


def test_the_rule_sees_what_prints() -> None:
    code = (
        "print(1)\nconsole.print(2)\ntyper.echo(3)\nsys.stderr.write(4)\nsys.stdout.buffer.write(5)\nos.write(2, b'')\n"
    )
    assert list(printing(ast.parse(code))) == [1, 2, 3, 4, 5, 6]
