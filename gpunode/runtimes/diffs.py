"""What a config change looks like to a person: a unified diff in which no secret is readable."""

from __future__ import annotations

import difflib

from gpunode.masking import MASK as MASK
from gpunode.masking import form_of
from gpunode.masking import masked as masked

_AROUND = 3  # lines of context


def unified(path: str, before: str | None, after: str) -> str:
    """A unified diff, masked; "" for equal texts. A file that was absent is compared to /dev/null."""
    old, new = before or "", after
    if old == new:
        return ""
    # Masked whole, in the file's own form, and after comparing: a changed secret is still shown as changed.
    shown_old, shown_new = _lines(masked(old, form_of(path))), _lines(masked(new, form_of(path)))
    groups = difflib.SequenceMatcher(None, _lines(old), _lines(new)).get_grouped_opcodes(_AROUND)
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


def _lines(text: str) -> list[str]:
    """Parted at newlines only: masking keeps those, and what else Python takes for a line's end may be in a secret."""
    return text.removesuffix("\n").split("\n") if text else []


def _range(start: int, end: int) -> str:
    """As diff(1) counts: from 1, the length left out where it is one, an empty range by the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
