"""The commands of the manual: the blocks of a page, and what a person would type of each.

A block is fenced (```console, ```sh, ...) or indented by four spaces. In `console` a line that starts with `$ ` is
typed, and what follows it is what it prints; in `sh` every line is typed. An indented block, and one without a
language, is typed where its first line begins with a program that a person types.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted((ROOT / "docs").rglob("*.md")))

# Not gpunode's: what they do is no claim of this manual.
OTHERS = (
    "ansible-galaxy",
    "ansible-playbook",
    "apt",
    "apt-get",
    "cloud-init",
    "curl",
    "dnf",
    "docker",
    "dpkg",
    "git",
    "grpcurl",
    "helm",
    "kubectl",
    "mkosi",
    "packer",
    "pass",
    "pip",
    "pipx",
    "rpm",
    "rsync",
    "scontrol",
    "scp",
    "sha256sum",
    "ssh",
    "systemctl",
    "tar",
    "uv",
    "zypper",
)
# What stands before a command, and is none.
PREFIXES = ("RUN", "sudo")
# Programs of every system, which may stand next to gpunode in a line that a test runs.
TOOLS = (
    "cat",
    "cd",
    "cp",
    "diff",
    "echo",
    "false",
    "grep",
    "head",
    "ls",
    "mkdir",
    "python3",
    "sed",
    "sort",
    "tail",
    "test",
    "true",
)
TYPED = ("gpunode", "scripts/demo", *PREFIXES, *OTHERS, *TOOLS)
COMMENT = re.compile(r"(?<=\s)#\s.*")
FENCE = re.compile(r"(?P<indent> *)(?P<ticks>```+)\s*(?P<language>[\w-]*)")


@dataclass(frozen=True)
class Block:
    """`line`: of the page, where its first line stands, from 1. `language`: "indented" without a fence."""

    line: int
    language: str
    lines: tuple[str, ...]


@dataclass
class Typed:
    """One command line, whole, and what it prints by the manual (None: it does not say)."""

    line: int
    text: str
    prints: list[str] | None = field(default=None)

    @property
    def commands(self) -> list[list[str]]:
        """The words of each simple command of it: of a pipeline, and around && and ;."""
        return [words[1:] if words[0] in PREFIXES else words for words in simple_commands(self.text)]


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == fence["ticks"])
            inside = tuple(line.removeprefix(fence["indent"]) for line in lines[at + 1 : end])
            yield Block(at + 2, fence["language"] or "none", inside)
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(at + 1, "indented", tuple(line[4:] for line in lines[at:end]))
            at = end
        else:
            at += 1


def typed(page: Path) -> Iterator[Typed]:
    for block in blocks(page):
        if block.language == "console":
            yield from _of_console(block)
        elif _is_typed(block):
            yield from _of_shell(block)


def _is_typed(block: Block) -> bool:
    if block.language == "sh":
        return not block.lines[0].startswith("#!")  # a file that is shown, not typed
    if block.language not in ("none", "indented"):
        return False
    return next((line.split()[0] for line in block.lines if line.strip()), "") in TYPED


def _of_console(block: Block) -> Iterator[Typed]:
    current: Typed | None = None
    rest = iter(enumerate(block.lines, block.line))
    for number, line in rest:
        if line.startswith("$ "):
            if current:
                yield current
            current = Typed(number, _whole(line[2:], rest), [])
        elif current is None:
            raise AssertionError(f"line {number} prints what nobody typed: {line}")
        else:
            assert current.prints is not None
            current.prints.append(line)
    if current:
        yield current


def _of_shell(block: Block) -> Iterator[Typed]:
    rest = iter(enumerate(block.lines, block.line))
    for number, line in rest:
        if line.strip() and not line.lstrip().startswith("#"):
            yield Typed(number, _whole(line, rest))


def _whole(first: str, rest: Iterator[tuple[int, str]]) -> str:
    """The line with those that belong to it: after a backslash, and of a here-document."""
    text = first
    while text.endswith("\\"):
        text += "\n" + next(rest)[1]
    found = re.search(r"<<\s*'?(\w+)'?", text)
    if found:
        for _, line in rest:
            text += "\n" + line
            if line == found[1]:
                break
    return text


def simple_commands(text: str) -> list[list[str]]:
    """`gpunode k8s pod --gpus 2 | kubectl apply -f -  # two` is two commands. Files of redirections are left out."""
    first = text.split("\n", 1)[0] if "<<" in text else text.replace("\\\n", " ")
    commands: list[list[str]] = [[]]
    words = iter(_words(first))
    for word in words:
        if not set(word) <= set("|&;<>()"):
            commands[-1].append(word)
        elif set(word) <= set("<>&") and word != "&&":
            if commands[-1] and commands[-1][-1].isdecimal():
                commands[-1].pop()  # of 2>FILE, 3<FILE
            if word != "<<" and set(next(words, "")) <= set("<("):
                commands.append([])  # < <(COMMAND): no file, and what follows is typed too
        else:
            commands.append([])
    return [_bare(command) for command in commands if command]


def _bare(command: list[str]) -> list[str]:
    """Without NAME=VALUE before it; gpunode as one file is gpunode."""
    while len(command) > 1 and re.fullmatch(r"[A-Z_]+=.*", command[0]):
        command = command[1:]
    return ["gpunode", *command[2:]] if command[:2] == ["python3", "gpunode.pyz"] else command


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(COMMENT.sub("", line), posix=True, punctuation_chars="|&;<>()")
    lexer.wordchars += "@%+[],:#{}$^!?="
    lexer.commenters = ""
    return list(lexer)
