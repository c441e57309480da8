"""Did the last setup fail for a mirror whose files and index differ?"""

from __future__ import annotations

import re

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import time_of_run
from gpunode.model.facts import HostFacts
from gpunode.model.installed import signs_of_driver
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

# apt, dnf, zypper and pacman, of a file that is not the one that the index names.
_DIFFER = regex(
    r"unexpected size|larger than expected|hash sum mismatch|size mismatch|mirror sync in progress|checksum", re.I
)


def _later(part: str) -> Remedy:
    words = " again in an hour or two, when the mirror is in step; until then --mirror URL takes another one"
    return Remedy(RepairAction.UPGRADE, setup("--only", part), words)


@check(
    "os.mirror-sync",
    Severity.ERROR,
    title="no mirror's files and index differed when setup downloaded what is missing",
    reads="the last setup's failed step in /var/lib/gpunode/journal.jsonl; whether driver and toolkit are there",
    remedy=_later("driver"),
    needs=(needs.gpu_for_containers, needs.read("journal")),
)
def mirror_sync(host: HostFacts, context: Context) -> CheckOutcome:
    """The last setup failed because a mirror's files and index differed, and what it should install is missing.

    A failure of somebody else's apt leaves nothing on a host that could be believed.
    """
    failed = host.journal.failed
    if failed is None:
        return None
    if not _DIFFER.search(failed.error):
        return NotApplicable(f"the last setup failed at {failed.step}, and not for a mirror's files")
    part = "driver" if host.driver.loaded is None and not signs_of_driver(host) else "toolkit"
    if part == "toolkit" and host.toolkit.version is not None:
        return NotApplicable(f"the last setup failed at {failed.step}; driver and toolkit are installed all the same")
    return Finding(
        f"the {part} is missing: setup's download failed, as a mirror's files and index differed",
        evidence=f"{failed.step}, {time_of_run(failed.run)}: {_words(failed.error)}",
        remedy=_later(part),
    )


def _words(error: str) -> str:
    """The part of a tool's message that says so."""
    part = next((part for part in error.split(" · ") if _DIFFER.search(part)), error)
    return part[part.find("E: ") if "E: " in part else 0 :].strip()[:240]
