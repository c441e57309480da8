"""How a config change is shown: a unified diff in which no secret is readable."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache

from gpunode.masking import MASK as MASK
from gpunode.masking import form_of
from gpunode.masking import masked as masked

_AROUND = 3  # lines of context
_KEPT, _LONGEST_KEPT = 64, 1 << 16  # diffs that are kept, and characters of the two texts of one of them
MOST_COMPARED = 1_000_000  # old lines times new lines between the first and the last change
Opcode = tuple[str, int, int, int, int]


def unified(path: str, before: str | None, after: str) -> str:
    """A unified diff, masked; "" for equal texts. A file that was absent is compared to /dev/null."""
    if (before or "") == after:
        return ""
    short = len(before or "") + len(after) <= _LONGEST_KEPT
    return (_remembered if short else _unified)(path, before, after)


def _unified(path: str, before: str | None, after: str) -> str:
    old, new = before or "", after
    # Masked whole, in the file's own form, and after comparing: a changed secret is still shown as changed.
    shown_old, shown_new = _lines(masked(old, form_of(path))), _lines(masked(new, form_of(path)))
    groups = _grouped(_opcodes(_lines(old), _lines(new)))
    lines = [f"--- {path if before is not None else '/dev/null'}", f"+++ {path}"]
    for group in groups:
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [f" {line}" for line in shown_old[old_from:old_to]]
                continue
            lines += [f"-{line}" for line in shown_old[old_from:old_to]]
            lines += [f"+{line}" for line in shown_new[new_from:new_to]]
    return "\n".join(lines) if len(lines) > 2 else ""


# check asks for half a dozen plans of a host, which write the same files, and so do those of the next host.
_remembered = lru_cache(maxsize=_KEPT)(_unified)


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    """As SequenceMatcher says them; in linear time, for it compares in quadratic time what lies between the changes."""
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    ends = zip(reversed(old), reversed(new), strict=False)
    same = next((i for i, (a, b) in enumerate(ends) if a != b or i == most), most)
    end, new_end = len(old) - same, len(new) - same
    if (end - start) * (new_end - start) > MOST_COMPARED:
        middle: list[Opcode] = [("replace", start, end, start, new_end)]
    else:
        inside = difflib.SequenceMatcher(None, old[start:end], new[start:new_end]).get_opcodes()
        middle = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in inside]
    head: list[Opcode] = [("equal", 0, start, 0, start)] if start else []
    tail: list[Opcode] = [("equal", end, len(old), new_end, len(new))] if same else []
    return _joined([*head, *middle, *tail])


def _joined(opcodes: list[Opcode]) -> list[Opcode]:
    """Equal stretches that touch are one."""
    found: list[Opcode] = []
    for code in opcodes:
        if found and code[0] == "equal" == found[-1][0]:
            found[-1] = ("equal", found[-1][1], code[2], found[-1][3], code[4])
        else:
            found.append(code)
    return found


def _grouped(opcodes: list[Opcode]) -> Iterator[list[Opcode]]:
    """Changes with the lines around them; changes further apart than that are groups of their own."""
    group: list[Opcode] = []
    last = len(opcodes) - 1
    for place, (tag, old_from, old_to, new_from, new_to) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, old_from, old_to, new_from, new_to))
            continue
        length = old_to - old_from
        if place and (place == last or length > 2 * _AROUND):
            kept = min(_AROUND, length)
            yield [*group, (tag, old_from, old_from + kept, new_from, new_from + kept)]
            group = []
        if place == 0 or (place != last and length > 2 * _AROUND):
            kept = min(_AROUND, length)
            group = [(tag, old_to - kept, old_to, new_to - kept, new_to)]
        elif place != last:
            group.append((tag, old_from, old_to, new_from, new_to))
    if any(code[0] != "equal" for code in group):
        yield group


def _lines(text: str) -> list[str]:
    """Parted at newlines only: masking keeps those, and what else Python takes for a line's end may be in a secret."""
    return text.removesuffix("\n").split("\n") if text else []


def _range(start: int, end: int) -> str:
    """As diff(1) counts: from 1, the length left out where it is one, an empty range by the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
