"""Every command of the manual: run, where it needs no host of its own; else understood by the real command line, and
named with the test that runs it on a real host. What a page says that a command prints is what it prints.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gpunode.cli.commands import _tree

from .commands import OTHERS, PAGES, ROOT, TOOLS, Typed, blocks, simple_commands, typed
from .shown import SHOWN

LANGUAGES = {"console", "sh", "text", "json", "yaml", "toml", "ini", "dockerfile", "none", "indented"}
LIMIT_S = 120
OUTSIDE = re.compile(r"(?:^|[\s=>])(?:[~/]|\.\.)(?!dev/(?:null|stdout))")
TREE = _tree()
# Verbs that read nothing but what they are given, and those that do so with these options.
ALWAYS_HERE = {"catalog", "k8s monitoring", "k8s readiness"}
WITHOUT_A_HOST = {"k8s pod", "k8s device-plugin", "k8s dra"}
OF_A_HOST = {"--ssh", "--inventory", "--this-host", "--kubeconfig"}
PAGE_IDS = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]


def verb_of(words: list[str]) -> str:
    """`k8s pod` of `gpunode k8s pod --gpus 2`; "" of `gpunode --version`."""
    group: click.Command = TREE
    found = []
    for word in words[1:]:
        if not isinstance(group, click.Group) or word not in group.commands:
            break
        group = group.commands[word]
        found.append(word)
    return " ".join(found)


def runs_here(words: list[str]) -> bool:
    """Whether it can do nothing but print, or write below where it was typed. Anything not known to is not run."""
    verb, options = verb_of(words), {word.split("=")[0] for word in words if word.startswith("-")}
    if not verb:
        return options <= {"--version", "-V", "--help", "-h"}
    if options & {"--help", "-h"} or verb in ALWAYS_HERE:
        return True
    if options & OF_A_HOST:
        return False
    if verb == "runtime configure":
        return bool(options & {"--config", "--root"})
    if verb == "check" and options & {"--list", "--explain", "--unit"}:
        return True
    return "--recorded" in options or verb in WITHOUT_A_HOST


def runnable(line: Typed) -> str | None:
    """What of the line a test runs: all of it, what stands before a program of somebody else's, or nothing.

    No line with a path that leads out of the directory in which it is typed: the tests may be root's.
    """
    for text in (line.text, line.text.split(" | ")[0]):
        commands = simple_commands(text)
        known = all(words[0] in TOOLS or (words[0] == "gpunode" and runs_here(words)) for words in commands)
        if known and not OUTSIDE.search(text):
            return text
    return None


class Desk:
    """A directory of a page's own, in which its lines are typed one after the other, as by a person in a clone."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.code = directory, 0
        (directory / "examples").symlink_to(ROOT / "examples")
        (directory / "bin").mkdir()
        program = directory / "bin" / "gpunode"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpunode "$@"\n')
        program.chmod(0o755)
        self.env = {
            "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
        }

    def type(self, text: str) -> str:
        """What stands on the terminal afterwards. `echo $?` is the code of the line before."""
        if text.strip() == "echo $?":
            code, self.code = self.code, 0
            return f"{code}\n"
        told = subprocess.run(
            ("sh", "-c", text), cwd=self.directory, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        self.code = told.returncode
        return told.stdout


def as_printed(prints: list[str]) -> re.Pattern[str]:
    """A page's text of an output: … stands for what changes with the day or the catalog, alone on a line for lines."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r" *\n"
        for line in prints
    ]
    return re.compile("".join(lines) + r"\Z")


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_what_needs_no_host_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    lines = list(typed(page))
    for number, line in enumerate(lines):
        text = runnable(line)
        assert not line.prints or text == line.text, f"{page}:{line.line}: nobody can say that it prints this"
        if text is None:
            continue
        shown = desk.type(text)
        said_next = number + 1 < len(lines) and lines[number + 1].text.strip() == "echo $?"
        assert desk.code == 0 or said_next, f"{page}:{line.line}: {text} ended with {desk.code}, unsaid: {shown}"
        if line.prints is not None:
            assert as_printed(line.prints).match(shown), f"{page}:{line.line}: {text} printed:\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_every_command_is_understood_and_either_run_here_or_shown_by_a_named_test(page: Path) -> None:
    for line in typed(page):
        for words in line.commands:
            place = f"{page}:{line.line}: {line.text}"
            if words[0] == "gpunode":
                _understood(words, place)
            else:
                assert words[0] in (*OTHERS, *TOOLS, "scripts/demo"), f"{place}: whose is {words[0]}?"


def _understood(words: list[str], place: str) -> None:
    context, command = click.Context(TREE, info_name="gpunode"), TREE
    rest = words[1:]
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command = command.commands[rest[0]]
        context = click.Context(command, parent=context, info_name=rest.pop(0))
    try:
        with context:
            command.make_context(context.info_name, [*rest], parent=context.parent)
    except click.exceptions.Exit:
        pass  # --help
    except click.UsageError as error:
        raise AssertionError(f"{place}: {error.format_message()}") from error
    if runs_here(words):
        return
    verb = verb_of(words)
    assert verb in SHOWN, f"{place}: no test is named that runs `{verb}` on a real host"
    tests = "".join((ROOT / name).read_text(encoding="utf-8") for name in SHOWN[verb])
    lacking = [word.split("=")[0] for word in _options(words) if f'"{word.split("=")[0]}' not in tests]
    assert not lacking, f"{place}: {lacking} stand in none of {SHOWN[verb]}"


def _options(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_no_command_hides_in_a_block_that_is_not_typed(page: Path) -> None:
    seen = {line.line for line in typed(page)}
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page}:{block.line}: what is {block.language}?"
        if block.language in ("text", "json", "yaml", "toml", "ini"):
            continue
        hidden = [n for n, text in enumerate(block.lines, block.line) if text.startswith("gpunode ") and n not in seen]
        assert hidden == [], f"{page}: lines {hidden}"


SPAN = re.compile(r"`(gpunode [^`]+)`")


def spans(page: Path) -> list[tuple[int, str]]:
    """Commands in the running text and in tables: line, command. A table's cell has \\| for a pipe."""
    inside = {n for block in blocks(page) for n in range(block.line, block.line + len(block.lines))}
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    return [(n, found.replace("\\|", "|")) for n, line in lines if n not in inside for found in SPAN.findall(line)]


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_a_command_in_the_running_text_has_its_verb_and_options(page: Path) -> None:
    for number, text in spans(page):
        words = text.split()
        if not words[1].islower() or not words[1].isalpha():
            continue  # `gpunode VERB --help`, `gpunode --version`
        verb = verb_of(words)
        assert verb, f"{page}:{number}: {text}: no such verb"
        known = {name for parameter in _command(verb).params for name in (*parameter.opts, *parameter.secondary_opts)}
        options = {word.split("=")[0].strip(",.") for word in _options(words)}
        assert options <= {*known, "--help"}, f"{page}:{number}: {text}: no option {options - known}"


def _command(verb: str) -> click.Command:
    command: click.Command = TREE
    for name in verb.split():
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command
