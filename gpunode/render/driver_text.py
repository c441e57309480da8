"""The driver of a plan in words: the choice in two lines, and on request the reasons for it."""

from __future__ import annotations

from gpunode.model.driver import Alternative, DriverChoice
from gpunode.model.plan import Plan

PLACES = {"distro": " from the distribution's archive", "local": " from the local repository"}


def choice_words(choice: DriverChoice) -> str:
    """ "595.91.07 or newer with open kernel modules from the distribution's archive" """
    newest = f"{choice.newest_known} or newer" if choice.newest_known and choice.source == "cuda" else choice.branch
    version = choice.version or ("newest" if choice.rolling else newest)
    place = " (installed, unchanged)" if choice.kept else PLACES.get(choice.source, "")
    return f"{version} with {choice.flavour} kernel modules{place}"


def why_words(plan: Plan, choice: DriverChoice) -> str:
    """The reasons, and the LTS branches that could be had instead where nobody named a branch."""
    asked = plan.spec.driver.kind != "auto"
    other = [_lts(a) for a in choice.alternatives if a.branch_kind == "lts" and a.option and not asked]
    return "; ".join(choice.reasons) + (f" ({'; '.join(other)})" if other else "")


def _lts(alternative: Alternative) -> str:
    until = f"until {alternative.end_of_support}, " if alternative.end_of_support else ""
    return f"{alternative.branch} LTS, {until}with {alternative.option}"


def explanation(plan: Plan, choice: DriverChoice) -> list[tuple[str, str]]:
    """Label and text of each line: why this driver and no other, when that expires, how sure the facts are."""
    lines = [("Reasons", reason) for reason in _reasons(choice)]
    lines += [("Alternatives rejected", words) for words in _left(choice)]
    lines.append(("Expires", _expiry(plan, choice)))
    return lines + [("Data confidence", f"{row.about}: {row.grade}, {row.checked}") for row in choice.confidence]


def _reasons(choice: DriverChoice) -> list[str]:
    reasons = list(choice.reasons)
    if not choice.kept:
        reasons.append(f"it comes from {choice.source_title}")
        reasons += ["its module comes built and signed: nothing to build, nothing to enrol"] if choice.signed else []
    if choice.foreign:
        reasons.append(f"it is not managed by gpunode: {choice.foreign.sentence}")
    return reasons


def _left(choice: DriverChoice) -> list[str]:
    """Branches that were rejected for one reason share a line; then the other flavour and the other source."""
    branches: dict[str, list[str]] = {}
    for one in choice.alternatives:
        if one.branch is not None:
            taken = f"; {one.option} takes it" if one.option else ""
            branches.setdefault(one.reason + taken, []).append(f"{one.branch} ({one.title})")
    lines = [f"{', '.join(names)}: {reason}" for reason, names in branches.items()]
    others = [one for one in choice.alternatives if one.branch is None]
    return lines + [f"{one.title}: {'; '.join(filter(None, (one.reason, one.option)))}" for one in others]


def _expiry(plan: Plan, choice: DriverChoice) -> str:
    if choice.rolling:
        unpinned = "with --no-hold " if plan.spec.hold else ""
        return f"never by itself: {unpinned}every upgrade of the system installs the archive's newest"
    if choice.end_of_support is None:
        return "end of support not published; gpunode catalog branches shows what is known"
    if choice.branch_status != "supported":
        return f"it has: branch {choice.branch} ended in {choice.end_of_support}"
    ends = f"when support of branch {choice.branch} ends"
    return f"{choice.end_of_support}, {ends}; gpunode catalog branches shows what follows"
