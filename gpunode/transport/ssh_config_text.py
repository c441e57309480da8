"""The files of ssh_config(5) as one text that paramiko reads as ssh does: what it knows less of is written out.

Each Include is followed, with the Host or Match that it stands in; a comment ends a line; the words of Match are in
lower case. Where a Match asks for what only ssh itself knows, the text has a command that stops the look-up.
Source: OpenSSH, readconf.c (match_cfg_line, process_config_line_depth, read_config_file_depth).
"""

from __future__ import annotations

import glob
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.regex import regex
from gpunode.transport.private_group import is_private
from gpunode.transport.ssh_config_words import escaped, words
from gpunode.transport.ssh_errors import config_fault

_INCLUDE_DEPTH = 16  # ssh gives up there too
_LINE = regex(r"(\w+)(?:\s*=\s*|\s+)(\S.*)")
_WHOLE = ("proxycommand", "proxyjump", "localcommand", "remotecommand", "knownhostscommand")  # quotes, # and all
_LISTS = ("userknownhostsfile", "globalknownhostsfile")
_ALONE = ("all", "canonical", "final")  # the criteria of Match that take no argument
_KNOWN = ("host", "originalhost", "user", "localuser", "exec")
_CANNOT_TELL = ": gpunode cannot tell "  # before the criterion and its place; `:` does nothing, should a shell see it

Criterion = tuple[str, str]  # its name, with ! where it is negated; its argument, "" for those of _ALONE
Block = tuple[Criterion, ...]  # all of them have to hold; (): for every host
ORIGINAL = (
    "typed"  # stands for originalhost, which paramiko asks of the host's full name; it asks Host of that name, too
)
_FINAL: Criterion = ("final", "")  # paramiko before 3.3 does not know it


def read_config(files: Sequence[Path]) -> str:
    """`files` as one text. Missing ones are passed over.

    Raises TransportError for one that cannot be read, or that ssh would not read, with the file and line as evidence.
    """
    lines = [line for path in files if path.is_file() for line in _lines(path, path.parent, (), 0)]
    # What is for ssh's last look at the files counts after all else of all of them.
    return "\n".join(line for late in (False, True) for held, line in lines if held is late)


def _lines(path: Path, directory: Path, outer: Block, depth: int) -> Iterator[tuple[bool, str]]:
    """(whether it is of a `Match final`, the line). `outer`: the block that an Include of this file stands in."""
    if depth > _INCLUDE_DEPTH:
        raise _fault(f"{path}: files that include each other, more than {_INCLUDE_DEPTH} deep")
    block = outer
    yield _heading(block)
    for number, line in enumerate(_text(path).split("\n"), 1):  # no other end of a line, as for ssh
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        place = f"{path}, line {number}"
        keyword, value = _setting(line, place)
        if keyword in ("host", "match"):
            arguments = _words(value, place)
            block = (*outer, *(_host(arguments) if keyword == "host" else _criteria(arguments, place)))
            yield _heading(block)
        elif keyword == "include":
            for name in _included(_words(value, place), directory):
                yield from _lines(Path(name), directory, block, depth + 1)
            yield _heading(block)
        elif keyword == "hostname" and _FINAL in block:
            continue  # by its last look ssh has the name that it dials (ssh.c: options.hostname = host)
        elif (keyword, value.lower()) == ("proxycommand", "none"):
            yield _FINAL in block, "proxyjump none"  # the same, and old paramikos do not forget that it was said
        else:
            yield _FINAL in block, f"{keyword} {_value(keyword, value, place)}"


def _text(path: Path) -> str:
    """What others may write is not read, as by ssh: it has commands (Match exec, ProxyCommand)."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if remedy := _against_others(path, about):
                mode = f"mode {about.st_mode & 0o7777:o}, uid {about.st_uid}, gid {about.st_gid}"
                raise config_fault("ssh", f"{path} can be written by others ({mode})", remedy)
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        raise _fault(f"{path}: {error.strerror}") from error


def _against_others(path: Path, about: os.stat_result) -> str:
    """What keeps others from writing the file; "": they may not."""
    user = os.geteuid()
    if about.st_uid not in (0, user):
        return f"make it your own (chown), or root's: {shlex.quote(str(path))}"
    shared = about.st_mode & 0o020 and not is_private(about.st_gid, user)
    return f"chmod go-w {shlex.quote(str(path))}" if shared or about.st_mode & 0o002 else ""


def _setting(line: str, place: str) -> tuple[str, str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise _fault(f"{place}: {line[:80]!r} is no keyword with a value")
    return found[1].lower(), found[2]


def _words(value: str, place: str) -> list[str]:
    try:
        return words(value)
    except ValueError as error:
        raise _fault(f"{place}: {error}") from error


def _value(keyword: str, value: str, place: str) -> str:
    if keyword in _WHOLE:
        return value
    arguments = _words(value, place)
    if not any(arguments):
        raise _fault(f"{place}: {keyword} has no value")
    return " ".join(map(escaped, arguments)) if keyword in _LISTS else " ".join(arguments)


def _included(names: Sequence[str], directory: Path) -> list[str]:
    """Relative names are next to the first file (~/.ssh, /etc/ssh); a pattern may match nothing."""
    patterns = (os.path.expanduser(name) for name in names)
    return [p for pattern in patterns for p in sorted(glob.glob(os.path.join(directory, pattern))) if os.path.isfile(p)]


def _host(patterns: Sequence[str]) -> Block:
    """Host is asked of the name that was typed, or of the full one that CanonicalizeHostname made of it; a comma, which
    parts the patterns of Match, is in no such name.
    """
    possible = [pattern for pattern in patterns if "," not in pattern]
    return () if possible == ["*"] else (("originalhost", ",".join(possible) or "!*"),)


def _criteria(arguments: Sequence[str], place: str) -> Block:
    """`all` holds for all, alone or behind `canonical` and `final`, so it is left out; so does what is not final."""
    found: list[Criterion] = []
    rest = list(arguments)
    while rest:
        name, equals, argument = rest.pop(0).partition("=")
        kind = name.lower().removeprefix("!")
        not_ = "!" if name.startswith("!") else ""
        if kind in _ALONE:
            found += [(not_ + kind, "")] if (not_ + kind) not in ("all", "!final") else []
            continue
        if not equals:
            if not rest:
                raise _fault(f"{place}: Match {name} has no value")
            argument = rest.pop(0)
        if kind in _KNOWN:
            found.append((not_ + (ORIGINAL if kind == "originalhost" else kind), argument))
        else:
            criterion = f"{name} {argument}".replace("%", "%%")
            found.append(("exec", f"{_CANNOT_TELL}{criterion} ({place})"))
    return tuple(found)


def _heading(block: Block) -> tuple[bool, str]:
    late, asked = _FINAL in block, [criterion for criterion in block if criterion != _FINAL]
    if not asked:
        return late, "Host *"
    if len(asked) == 1 and asked[0][0] == "originalhost":
        return late, f"Host {shlex.join(asked[0][1].split(','))}"  # which paramiko is quicker with
    words_of = (f"{name} {shlex.quote(argument)}" if argument else name for name, argument in asked)
    return late, f"Match {' '.join(words_of)}"


def _fault(what: str) -> TransportError:
    return config_fault("ssh", what)


class MatchExec:
    """Stands in for invoke inside paramiko: `Match exec` needs one exit status, and may not read our stdin."""

    def __init__(self, ok: bool) -> None:
        self.ok = ok

    @classmethod
    def run(cls, command: str, **_: object) -> MatchExec:
        """Raises TransportError for a criterion that is ssh's alone: which host it is for would be a guess."""
        if command.startswith(_CANNOT_TELL):
            raise _fault(f"Match {command.removeprefix(_CANNOT_TELL)} asks for what ssh alone knows")
        null = subprocess.DEVNULL
        done = subprocess.run(("sh", "-c", command), stdin=null, stdout=null, stderr=null, check=False)
        return cls(done.returncode == 0)
