"""A directory of the site's own checks. All that is wrong with it is said at once, before a host is asked."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.foreign import read_file
from gpunode.regex import regex
from gpunode.site_checks.facts_path import Schema
from gpunode.site_checks.trust import why_mistrusted
from gpunode.site_checks.written import GROUP, NAME, WrittenCheck, parse_check
from gpunode.values import dataclass

MOST_FILES = 200
MOST_PROGRAMS = 32
LONGEST = 64 * 1024  # bytes of a YAML file
_PROGRAM = regex(rf"(?P<name>{NAME})(?:\.[a-z0-9]+)?")
_PAGE = regex(r"\..*|README.*|.*\.md")  # hidden files and pages for people
REMEDY = "correct the directory; no host was asked"


@dataclass(frozen=True)
class ProgramCheck:
    """One program; its name without an ending is the check's."""

    id: str
    file: str

    @property
    def title(self) -> str:
        return "what this program of the site says"

    @property
    def broken(self) -> str:
        return "This program of the site ended with 1 or 2, or printed a finding."

    @property
    def reads(self) -> str:
        return f"{self.file}, run on the machine that it checks"


SiteCheck = WrittenCheck | ProgramCheck


def load_site_checks(directory: Path, schema: Schema) -> tuple[SiteCheck, ...]:
    """Its checks by id. Raises UsageError with every fault of every file."""
    faults: list[str] = []
    checks: dict[str, SiteCheck] = {}
    for path in _files(directory):
        try:
            check = _load(path, schema)
        except UsageError as fault:
            faults += fault.evidence.splitlines()
            continue
        if other := checks.get(check.id):
            faults.append(f"{path}: {check.id} is in {other.file} as well")
        checks[check.id] = check
    programs = sum(isinstance(check, ProgramCheck) for check in checks.values())
    if programs > MOST_PROGRAMS:
        faults.append(f"{directory}: {programs} programs are more than {MOST_PROGRAMS}")
    if not checks and not faults:
        faults.append(f"{directory}: there is neither a .yaml file nor a program in it")
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UsageError(f"--site-checks {directory}: {count}", evidence="\n".join(faults), remedy=REMEDY)
    return tuple(checks[id] for id in sorted(checks))


def _files(directory: Path) -> Iterator[Path]:
    try:
        if why := why_mistrusted(directory):
            raise UsageError(
                f"--site-checks {directory} is not used: {why}",
                evidence="who can change it could have gpunode run a program, or call a sick node healthy",
                remedy="let nobody but root (or you, where you are not root) write to it and to the directories above",
            )
        names = []
        with os.scandir(directory) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > MOST_FILES:
                    raise UsageError(f"--site-checks {directory} has over {MOST_FILES} files", remedy=REMEDY)
    except OSError as error:
        raise UsageError(
            f"--site-checks {directory} cannot be read",
            evidence=str(error.strerror),
            remedy="name a directory with YAML files and programs",
        ) from error
    yield from (directory / name for name in sorted(names) if not _PAGE.fullmatch(name))


def _load(path: Path, schema: Schema) -> SiteCheck:
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise _fault(path, "it is not a regular file")
        if why := why_mistrusted(path):
            raise _fault(path, f"it is not used: {why}")
        if path.suffix in (".yaml", ".yml"):
            return _written(path, schema)
    except OSError as error:
        raise _fault(path, f"it cannot be read: {error.strerror}") from error
    return _program(path, mode)


def _written(path: Path, schema: Schema) -> WrittenCheck:
    raw = read_file(path, LONGEST)
    if len(raw) > LONGEST:
        raise _fault(path, f"it is over {LONGEST} bytes")
    return parse_check(raw.decode("utf-8", "surrogateescape"), str(path), schema)


def _program(path: Path, mode: int) -> ProgramCheck:
    if not mode & 0o111:
        raise _fault(path, "it is neither a .yaml file nor a program (nobody may execute it)")
    if not (named := _PROGRAM.fullmatch(path.name)):
        raise _fault(path, "a program's name is small letters, digits and hyphens: ib-links, ib-links.py")
    return ProgramCheck(f"{GROUP}.{named['name']}", str(path))


def _fault(path: Path, what: str) -> UsageError:
    return UsageError(str(path), evidence=f"{path}: {what}")
