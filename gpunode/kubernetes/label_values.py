"""What Kubernetes takes as a label's value, and how NVIDIA's GPU feature discovery spells a product."""

from __future__ import annotations

import re

from gpunode.regex import regex

LONGEST = 63
# apimachinery, validation.IsValidLabelValue: "" is legal too.
_LEGAL = regex(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)
_DROPPED = regex(r"[^A-Za-z0-9\-_. ]", re.ASCII)


def is_legal(value: str) -> bool:
    return len(value) <= LONGEST and _LEGAL.fullmatch(value) is not None


def product_value(name: str) -> str:
    """ "NVIDIA H100 80GB HBM3" -> "NVIDIA-H100-80GB-HBM3", as feature discovery's `sanitise`, and always legal."""
    return legal_value("-".join(_DROPPED.sub("", name).split()))


def legal_value(text: str) -> str:
    """`text` without what no label may have: other characters, what is over 63 of them, signs at either end."""
    return _DROPPED.sub("", text).replace(" ", "-").strip("-_.")[:LONGEST].rstrip("-_.")
