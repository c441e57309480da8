"""What a program of the site said: one JSON object, or a line and an exit code as a Nagios plugin has them.

Whatever else it does (another code, a signal, no end, an odd object) is no verdict, with the reason: never a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpunode.advice import meant
from gpunode.foreign import NotRead, read_json
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction
from gpunode.site_checks.program import Ended

LONGEST = 1000  # characters of one text; a line that is longer is cut
KEYS = {
    "pass": ("outcome",),
    "finding": ("outcome", "severity", "summary", "evidence", "remedy", "action"),
    "unknown": ("outcome", "reason"),
}
_MUST = {"pass": (), "finding": ("severity", "summary"), "unknown": ("reason",)}
_AN_OBJECT = regex(r"(?m)^[^\S\n]*(?:\[\s*)?\{")  # as a line begins; behind a warning, or in a list
_SEVERITIES = {1: Severity.WARNING, 2: Severity.ERROR}  # of Nagios' exit codes; 0 is well, 3 is unknown


def outcome_of(ended: Ended, path: str) -> CheckOutcome:
    """The verdict of the program at `path`."""
    if ended.why:
        return _unknown(f"the program {ended.why}", ended)
    text = ended.out.decode("utf-8-sig", "surrogateescape").strip()
    if text.startswith("{"):
        return _of_json(text, ended)
    if ended.code == 0 and _AN_OBJECT.search(text):
        return NotApplicable("unknown: the program printed JSON among other text: an answer is one object, and no more")
    if ended.code in (0, *_SEVERITIES):
        line = _line(text.partition("|")[0].split("\n")[0])  # what is behind "|" is a plugin's performance data
        return None if ended.code == 0 else _finding(ended.code, line, path)
    how = f"ended with code {ended.code}" if (ended.code or 0) > 0 else f"was ended by signal {-(ended.code or 0)}"
    return _unknown(f"the program {how}", ended)


def _finding(code: int, line: str, path: str) -> Finding:
    said = line or "the program says nothing of what is wrong"
    return Finding(said, f"{path} ended with code {code}", Remedy(), severity=_SEVERITIES[code])


def _unknown(why: str, ended: Ended) -> NotApplicable:
    last = _line((ended.err or ended.out).decode("utf-8", "surrogateescape").strip().rpartition("\n")[2])
    return NotApplicable(f"unknown: {why}{f': {last}' if last else ''}")


def _of_json(text: str, ended: Ended) -> CheckOutcome:
    if ended.code != 0:
        return _unknown(f"the program printed JSON, and ended with code {ended.code}", ended)
    try:
        return _read(read_json(text, unique=True))
    except (NotRead, _Odd) as fault:
        return NotApplicable(f"unknown: the program's answer is not as it should be: {fault}")


class _Odd(ValueError):
    pass


def _read(answer: Mapping[str, Any]) -> CheckOutcome:
    outcome = _word(answer, "outcome", KEYS)
    for key in answer:
        if key not in KEYS[outcome]:
            raise _Odd(f"{key[:60]} is not a key; {meant(key, KEYS[outcome])}they are {', '.join(KEYS[outcome])}")
    for key in _MUST[outcome]:
        if key not in answer:
            raise _Odd(f"{key} is missing")
    if outcome == "pass":
        return None
    if outcome == "unknown":
        return NotApplicable(f"unknown: {_words(answer, 'reason')}")
    action = RepairAction(_word(answer, "action", [a.value for a in RepairAction]) if "action" in answer else "none")
    severity = Severity(_word(answer, "severity", [s.value for s in Severity]))
    remedy = Remedy(action, _words(answer, "remedy"))
    return Finding(_words(answer, "summary"), _words(answer, "evidence"), remedy, severity=severity)


def _word(answer: Mapping[str, Any], key: str, known: Any) -> str:
    word = answer.get(key)
    if isinstance(word, str) and word in known:
        return word
    raise _Odd(f"{key} is none of {', '.join(known)}")


def _words(answer: Mapping[str, Any], key: str) -> str:
    text = answer.get(key, "")
    if not isinstance(text, str) or (key in ("summary", "reason") and not text.strip()):
        raise _Odd(f"{key} is no text")
    return _line(text)


def _line(text: str) -> str:
    line = " ".join(text[: 2 * LONGEST].split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
