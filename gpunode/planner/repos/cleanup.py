"""Stale repository entries that earlier instructions left: found, disabled in place, the rest unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpunode.catalog.distros import Distro
from gpunode.catalog.repositories import why_dead
from gpunode.editing.diff import unified
from gpunode.errors import UnsupportedHost
from gpunode.model.action import PutFile
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Step
from gpunode.packages.entries import Entry, read_entry
from gpunode.planner.repos.claims import Claim
from gpunode.regex import regex
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.values import dataclass

MARK = "# disabled by gpunode: "
CUDA = regex(r"://(?:[^/\s@]*@)?developer\.download\.nvidia\.\w+/compute/cuda/repos/([\w.]+)/")
_PLACE = regex(r"/compute/cuda/repos/([\w.]+/\w+)")
TOOLKIT = regex(r"://(?:[^/\s@]*@)?nvidia\.github\.io/libnvidia-container/\w+/(deb|rpm)/")
OWN = "/gpunode-"


@dataclass(frozen=True)
class Repair:
    """One file with its stale or wrong entries disabled."""

    file: FileFacts
    text: str
    why: str


@dataclass(frozen=True)
class _Entry:
    """One repository in a file: a line of a .list, a stanza of a .sources, a section of a .repo."""

    path: str
    text: str


def lists_step(host: HostFacts, distro: Distro, claims: Sequence[Claim] = (), *, vendor: bool = True) -> Step | None:
    """Disable what would stop the package manager or mix two sources; the bytes from before are kept for undo.

    `claims`: the repositories that the plan draws on; an entry that names one and cannot be trusted is disabled.
    `vendor`: NVIDIA's repository is set up anew, so an entry for it that names no key is not needed.
    Raises UnsupportedHost for such an entry that names somebody else's repository too.
    """
    repairs = repaired(host, distro, claims, vendor=vendor)
    if not repairs:
        return None
    return Step(
        "repo.lists",
        f"disable stale or wrong entries in {', '.join(r.file.path for r in repairs)}",
        "; ".join(dict.fromkeys(r.why for r in repairs)),
        tuple(PutFile(r.file.path, r.text, expect_sha256=r.file.sha256) for r in repairs),
        diff="\n".join(unified(r.file.path, r.file.text or "", r.text) for r in repairs),
        serves=("driver", "cuda", "toolkit"),
        changes_repositories=True,
    )


def standing(host: HostFacts, distro: Distro, claim: Claim) -> tuple[FileFacts, Entry] | None:
    """A file of somebody else's, and its entry, that names this repository rightly and is not disabled."""
    for source in live_sources(host, distro, (claim,)):
        if OWN not in source.path and _is_list(source.path):
            for entry in _entries(source):
                read = read_entry(entry.path, entry.text)
                if read and claim.concerns(read) and claim.fault(read, host.packages) is None:
                    return source, read
    return None


def live_sources(host: HostFacts, distro: Distro, claims: Sequence[Claim] = ()) -> tuple[FileFacts, ...]:
    """The files as they will be once `lists_step` is done."""
    after = {r.file.path: r.text for r in repaired(host, distro, claims)}
    return tuple(replace(f, text=after[f.path]) if f.path in after else f for f in host.packages.sources)


def repaired(
    host: HostFacts, distro: Distro, claims: Sequence[Claim] = (), *, vendor: bool = True
) -> tuple[Repair, ...]:
    """Every file that has a dead, foreign, doubled or wrong entry, with that entry disabled."""
    wrong = _wrong(host, claims)
    doubled = _doubled(host.packages.sources, frozenset(wrong))
    found = []
    for file in host.packages.sources:
        if OWN in file.path or not _is_list(file.path) or not file.text:
            continue
        reasons: list[str] = []
        rules = _Rules(distro, doubled, wrong, vendor, reasons)
        text = _rewrite(file, rules.disables)
        if reasons:
            found.append(Repair(file, text, "; ".join(dict.fromkeys(reasons))))
    return tuple(found)


@dataclass(frozen=True)
class _Rules:
    """What the entries of one file are checked against; the reasons are collected in `reasons`."""

    distro: Distro
    doubled: frozenset[_Entry]
    wrong: Mapping[_Entry, str]
    vendor: bool
    reasons: list[str]

    def disables(self, entry: _Entry) -> bool:
        why = why_dead(entry.text) or self._why(entry)
        self.reasons.extend([why] if why else [])
        return why is not None

    def _why(self, entry: _Entry) -> str | None:
        cuda = CUDA.search(entry.text)
        if cuda and self.distro.platform and cuda[1] != self.distro.platform:
            return f"{cuda[1]} is another release's repository; this is {self.distro.name}"
        if entry in self.wrong:
            return self.wrong[entry]
        if cuda and self.vendor and _is_apt(entry.path) and "signed-by" not in entry.text.lower():
            return "it names no key, so every key of this host would do"
        if entry in self.doubled:
            return "a second entry for one repository makes apt stop (Conflicting values set for option Signed-By)"
        return None


def _wrong(host: HostFacts, claims: Sequence[Claim]) -> dict[_Entry, str]:
    """Entries that name a repository of `claims` and are not to be believed, and why."""
    found = {}
    for file in host.packages.sources:
        for entry in _entries(file) if _is_list(file.path) and OWN not in file.path else ():
            read = read_entry(entry.path, entry.text)
            for claim in claims if read else ():
                if read and claim.concerns(read) and (fault := claim.fault(read, host.packages)):
                    _refuse_company(host, claim, entry, read, fault)
                    found[entry] = f"{claim.title} is set up anew, since of the entry that is there, {fault}"
    return found


def _refuse_company(host: HostFacts, claim: Claim, entry: _Entry, read: Entry, fault: str) -> None:
    """Raises UnsupportedHost: with this stanza, somebody else's repository would go too."""
    if "rpm" in read.kinds or all(claim.concerns(replace(read, addresses=(a,))) for a in read.addresses):
        return
    raise UnsupportedHost(
        f"{host.hostname}: {entry.path} names {claim.title} and others in one entry, and {fault}",
        evidence=entry.text,
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "give the others an entry of their own and take this one out, then run ",
            AGAIN,
            " again",
        ),
    )


def _doubled(files: tuple[FileFacts, ...], wrong: frozenset[_Entry]) -> frozenset[_Entry]:
    """Entries of the toolkit's repository but the one that is kept: gpunode's own, else one that names its key.

    Of the CUDA repository those beside gpunode's own: NVIDIA's guide begins with cuda-keyring, which brings another
    key's file, also on a host that gpunode has set up.
    """
    there = [
        entry
        for file in files
        if _is_apt(file.path) and _is_list(file.path)
        for entry in _entries(file)
        if entry not in wrong and why_dead(entry.text) is None
    ]
    toolkit = [entry for entry in there if TOOLKIT.search(entry.text)]
    found = _all_but_one(toolkit)
    for place in {_cuda_place(entry) for entry in there if OWN in entry.path} - {None}:
        found |= _all_but_one([entry for entry in there if _cuda_place(entry) == place])
    return found


def _all_but_one(named: Sequence[_Entry]) -> frozenset[_Entry]:
    if len({entry.path for entry in named}) < 2:
        return frozenset()
    keep = max(
        named, key=lambda e: (OWN in e.path, "signed-by" in e.text.lower(), "nvidia-container-toolkit" in e.path)
    )
    return frozenset(named) - {keep}


def _cuda_place(entry: _Entry) -> str | None:
    """ "ubuntu2404/x86_64" """
    found = _PLACE.search(entry.text)
    return found[1] if found else None


def _entries(file: FileFacts) -> Iterator[_Entry]:
    found: list[_Entry] = []

    def note(entry: _Entry) -> bool:
        found.append(entry)
        return False

    _rewrite(file, note)
    yield from found


def _rewrite(file: FileFacts, goes: Callable[[_Entry], bool]) -> str:
    """The file with every live entry disabled for which `goes` is true; other bytes are unchanged."""
    text = file.text or ""
    if file.path.endswith(".list"):
        lines = text.splitlines(keepends=True)
        return "".join(
            f"{MARK}{line}" if line.lstrip().startswith("deb") and goes(_Entry(file.path, line.strip())) else line
            for line in lines
        )
    if file.path.endswith(".sources"):
        return "".join(_stanza(part, file.path, goes) for part in re.split(r"(\n[ \t]*\n)", text))
    return "".join(_section(part, file.path, goes) for part in re.split(r"(?m)^(?=\[)", text))


def _stanza(text: str, path: str, goes: Callable[[_Entry], bool]) -> str:
    off = re.search(r"(?im)^Enabled:\s*(no|false|without|off|disable|0)\b", text)
    if not re.search(r"(?im)^URIs:", text) or off or not goes(_Entry(path, text.strip())):
        return text
    bare = re.sub(r"(?im)^Enabled:.*\n?", "", text)
    return re.sub(r"(?im)^(?=URIs:)", f"{MARK.rstrip(': ')}\nEnabled: no\n", bare, count=1)


def _section(text: str, path: str, goes: Callable[[_Entry], bool]) -> str:
    off = re.search(r"(?m)^enabled\s*=\s*(0|no|false|off)\b", text)
    if not text.startswith("[") or off or not goes(_Entry(path, text.strip())):
        return text
    bare = re.sub(r"(?m)^enabled\s*=.*\n?", "", text)
    head, newline, rest = bare.partition("\n")
    return f"{head}{newline or chr(10)}{MARK.rstrip(': ')}\nenabled=0\n{rest}"


def _is_list(path: str) -> bool:
    return path.endswith((".list", ".sources", ".repo"))


def _is_apt(path: str) -> bool:
    return path.endswith((".list", ".sources"))
