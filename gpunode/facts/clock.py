"""What a host's clock said, from the probe's section `clock`, and how far that is from this machine's."""

from __future__ import annotations

import re

from gpunode.facts.release import key_values
from gpunode.foreign import whole_number
from gpunode.model.connection import ClockSkew
from gpunode.regex import regex

_SECOND_S = 1.0  # the probe reads whole ones
_UPTIME = regex(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def parse_skew(text: str, sent_at: float, answered_at: float) -> ClockSkew | None:
    """None where the section says nothing, or what no host can.

    epoch=1795186101
    begun=90210.52
    ended=90213.07

    The clock said `epoch` before the host was `begun` seconds up, and the answer ended when it was `ended`. So of the
    time between `sent_at` and `answered_at` only what the host did not spend after `begun` is uncertain.
    """
    value = key_values(text)
    epoch, begun, ended = whole_number(value.get("epoch")), _uptime(value.get("begun")), _uptime(value.get("ended"))
    if epoch is None or begun is None or ended is None:
        return None
    at_work_s, took_s = ended - begun, answered_at - sent_at
    if not 0 <= at_work_s <= took_s:
        return None
    least, most = epoch - (answered_at - at_work_s), epoch + _SECOND_S - sent_at
    return ClockSkew(round((least + most) / 2, 3), round((most - least) / 2, 3))


def _uptime(text: str | None) -> float | None:
    return float(text) if text and _UPTIME.fullmatch(text) else None
