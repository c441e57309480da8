"""Generated daemon.json files through a real dockerd: what it took before it takes after, and nothing else changes.

GPUNODE_DOCKER_FILES says how many (2,000 take ten minutes a daemon); tests/engines/docker_texts.py makes them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpunode.errors import GpunodeError
from tests.engines.docker_cases import rewritten
from tests.engines.docker_texts import Generated, generated, how_many, shown

# Where gpunode is stricter than a daemon that loads the file, and why that is meant:
STRICTER = {
    "stands twice": "Go takes the last of two scalars and merges two objects: a reader is misled either way",
    "is spelled": "an empty object in capitals is passed over, a full one is not",
    "the file is UTF-16": "docker 28 alone reads it",
    "half of a surrogate pair": "dockerd reads another character in its place",
    "nested too deeply": "Go has a limit of 10,000",
    "has no CDI": "what was asked for is not there in 20.10",
    "a name that dockerd keeps": "a start fails, a reload need not",
    "Extra data": "20.10 reads the first object and overlooks what stands behind it",
    "not among the runtimes": "a start fails, a reload need not",
    "is not safe to reload": "20.10 dies of a nil pointer at the reload after that",
    "does not support: give it a path": "20.10 runs runc in its place, and says nothing",
}


@dataclass(frozen=True)
class Made:
    """What gpunode makes of a file: `after`, or the reason why nothing."""

    case: Generated
    after: str | None
    why: str = ""

    @property
    def name(self) -> str:
        return f"generated-{self.case.number}"


def made_for(version: str) -> list[Made]:
    return [_made(case, version) for case in generated(how_many(40))]


def _made(case: Generated, version: str) -> Made:
    try:
        return Made(case, rewritten(case.text, version, case.want).main.after)
    except GpunodeError as refused:
        return Made(case, None, refused.problem)


def judged(
    version: str, answers: Mapping[str, Any], made: list[Made], same: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Asserts it of every file, and prints how many had which outcome."""
    outcomes: Counter[str] = Counter()
    wrong = []
    for one in made:
        answer = answers[one.name]
        outcome = _outcome(one, answer, same)
        outcomes[outcome.partition("!")[0]] += 1
        if "!" in outcome:
            wrong.append(f"{outcome} {shown(one.case)} -> {one.after!r}: {str(answer)[:2000]}")
    print(f"dockerd {version}, {len(made)} generated files: {json.dumps(dict(sorted(outcomes.items())))}")
    assert not wrong, "\n".join(wrong[:5])


def _outcome(one: Made, answer: Mapping[str, Any], same: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """A sentence; with an exclamation mark it is one that must not be."""
    before, after = answer["before"], answer["reloaded"]
    if one.after is None:
        if not isinstance(before, dict):
            return "refused by both"
        reason = next((reason for reason in STRICTER if reason in one.why), None)
        return f"refused by gpunode alone: {reason}" if reason else f"refused by gpunode alone! {one.why}"
    if not isinstance(after, dict):
        if not isinstance(before, dict) and one.case.text.startswith("\ufeff") and not one.after.startswith("\ufeff"):
            return "refused for its byte order mark before, and for another fault of its own after"
        alike = not isinstance(before, dict) and _words(before) == _words(after)
        return "refused before and after, for the same reason" if alike else "refused after the edit!"
    if "died_later" in answer:
        return "edited, and dockerd dies of the next reload!"
    config = json.loads(one.after)
    if after["DefaultRuntime"] != (config.get("default-runtime") or "runc"):
        return "edited, and another default is in force!"
    if one.case.want.default and after["DefaultRuntime"] != one.case.want.handler:
        return "edited, and not the default asked for!"
    if one.case.want.handler not in after["Runtimes"]:
        return "edited, and the handler is not there!"
    if not isinstance(before, dict):
        return "refused before, taken after"
    return "taken before and after" if same(before) == same(after) else "edited, and something else changed!"


def _words(said: str) -> list[str]:
    """The last line without its time; directives are listed in any order."""
    return sorted(re.findall(r"[a-z-]{3,}", said.splitlines()[-1].partition("level=")[2] if said else ""))
