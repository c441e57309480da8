"""NVIDIA's entries in the lists of repositories: can the package manager read them, and check what they sign?"""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.packages import AptArchive
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

TOOLKIT, DRIVER = "://nvidia.github.io/", "://developer.download.nvidia."
NO_ENTRY = "no repository of NVIDIA's is in a list that names keys"
SETUP = setup("--only", "driver,toolkit")
NEEDS = (needs.gpu_for_containers, needs.packages)


def _of_nvidia(host: HostFacts) -> list[AptArchive]:
    return [entry for entry in host.packages.archives if TOOLKIT in entry.uri or DRIVER in entry.uri]


@check(
    "ctk.repo-duplicate",
    Severity.WARNING,
    title="every repository of NVIDIA's is listed with one key",
    reads="the live entries of the package manager's lists",
    remedy=Remedy(RepairAction.CONFIGURE, "take all entries of that repository but one out"),
    needs=NEEDS,
)
def repo_duplicate(host: HostFacts, context: Context) -> CheckOutcome:
    """One repository is listed twice with different keys: nothing can be installed (Conflicting values)."""
    entries = _of_nvidia(host)
    if not entries:
        return NotApplicable(NO_ENTRY)
    places: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        places.setdefault((entry.uri.rstrip("/"), entry.suite), []).append(entry.signed_by or "")
    clashes = [(place, keys) for place, keys in places.items() if _clash(keys)]
    if not clashes:
        return None
    (uri, suite), keys = clashes[0]
    return Finding(
        f"{uri} is listed {len(keys)} times, with different keys: no list can be read",
        evidence=f"{uri} {suite}: {' != '.join(key or 'no Signed-By' for key in dict.fromkeys(keys))}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"grep -rlF {named(uri)} /etc shows the files; take all of these entries but one out",
        ),
    )


def _clash(keys: list[str]) -> bool:
    """An entry without a key may stand before one that names it, and not behind it."""
    first = next((n for n, key in enumerate(keys) if key), len(keys))
    return len(set(keys[first:])) > 1


@check(
    "ctk.repo-key",
    Severity.WARNING,
    title="the keyrings of NVIDIA's repositories hold NVIDIA's keys of today",
    reads="the keyring of each entry, against the catalog's fingerprints",
    remedy=Remedy(RepairAction.UPGRADE, "take the entry out, then ", SETUP, " adds it with the right key"),
    needs=NEEDS,
)
def repo_key(host: HostFacts, context: Context) -> CheckOutcome:
    """A repository's keyring does not hold the key that it is signed with: it gives nothing (NO_PUBKEY)."""
    entries = [entry for entry in _of_nvidia(host) if entry.signed_by]
    if not entries:
        return NotApplicable(NO_ENTRY)
    held = [(entry, host.packages.primaries.get(entry.signed_by or "")) for entry in entries]
    wrong = [(e, keys) for e, keys in held if keys is not None and not set(keys) & _signers(context, e.uri)]
    if not wrong:
        unread = [entry.signed_by or "" for entry, keys in held if keys is None]
        return NotApplicable(f"{listing(unread)} was not read, or is not root's alone") if unread else None
    entry, keys = wrong[0]
    return Finding(
        f"the keyring of {entry.uri} does not hold its key",
        evidence=f"{entry.signed_by}: it holds {_short(keys or ())}; the repository is signed with "
        f"{_short(_signers(context, entry.uri))}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            f"take {named(entry.uri)} out of the lists, then ",
            SETUP,
            " adds it anew",
        ),
    )


def _signers(context: Context, uri: str) -> set[str]:
    """Every key that NVIDIA signs such a repository with, whichever release it is for."""
    catalog = context.catalog
    if TOOLKIT in uri:
        return {catalog.toolkit.fingerprint}
    return {distro.fingerprint for distro in catalog.distros if distro.fingerprint}


def _short(keys: Iterable[str]) -> str:
    return listing((key[-8:] for key in sorted(keys)), 4) or "no key"
