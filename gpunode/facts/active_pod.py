"""The answer of shell/active/pod.sh as values."""

from __future__ import annotations

import re
from dataclasses import replace

from gpunode.facts.wire import Section, Sections
from gpunode.model.pod_trial import PodTrial
from gpunode.regex import regex

MOST_LINES = 20
_DELETED = regex(r'^pod "(gpunode-verify-[0-9a-z]{1,40})" deleted', re.MULTILINE)


def parse_pod(sections: Sections, name: str) -> PodTrial:
    """Pure. What became of the pod, and of those that earlier tests left (the section `swept`, in kubectl's words):

    pod "gpunode-verify-3f9a21" deleted
    """
    swept = _DELETED.findall(sections.text("swept"))
    return replace(_tried(sections, name), swept=tuple(swept))


def _tried(sections: Sections, name: str) -> PodTrial:
    """The sections `create`, `state`, `logs` and `delete`; the second has lines as

    phase=Failed
    reason=UnexpectedAdmissionError
    message=Pod Allocate failed due to requested number of devices unavailable
    ended=1 Error
    """
    create = sections.commands.get("create")
    if create is None or create.rc is None:
        why = (create.unread if create else None) or "it was not reached"
        left = _left(sections, asked=False)
        if (
            create is not None and "delete" in sections.commands
        ):  # a server that is slow may make it behind the deletion
            left = left or "its making may still come"
        return PodTrial(name, says=why, no_kubeconfig=why == "none", left=left)
    if create.rc != 0:
        return PodTrial(name, says=_last(create), left=_left(sections, asked=True))
    if (seen := sections.commands.get("state")) is None or seen.rc != 0:
        says = (seen.unread or _last(seen)) if seen else "it was not looked at"
        return PodTrial(name, "Unknown", says, left=_left(sections, asked=True))
    state = _state(seen.text)
    words = (state.get(key, "") for key in ("reason", "message", "waiting", "ended"))
    log = tuple(sections.text("logs").splitlines()[-MOST_LINES:])
    phase = state.get("phase") or "Unknown"
    return PodTrial(name, phase, ", ".join(word[:400] for word in words if word), log, _left(sections, asked=True))


def _state(text: str) -> dict[str, str]:
    """The first of each: a message may have lines of its own, and whoever wrote it may know this form."""
    found: dict[str, str] = {}
    for line in text.split("\n")[:MOST_LINES]:
        name, _, value = line.partition("=")
        found.setdefault(name, value)
    return found


def _left(sections: Sections, *, asked: bool) -> str:
    """Why it may still be there. `asked`: a server answered to its making; without an answer it is deleted as well."""
    delete = sections.commands.get("delete")
    if delete is None:
        return "its end was not reached" if asked else ""
    if delete.rc is None:
        return delete.unread or "no reason given"
    return "" if delete.rc == 0 else _last(delete)


def _last(section: Section) -> str:
    lines = [line.strip() for line in section.text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else f"exit code {section.rc}"
