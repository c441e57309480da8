"""Which lines of the kernel's log still count: loading the driver again starts its GPUs anew."""

from __future__ import annotations

from collections.abc import Iterable

from gpunode.model.facts import HostFacts
from gpunode.regex import regex

# dmesg's "[ 9120.551201] " and journalctl's, whatever stands behind it.
_STAMP = regex(r"\[ *([0-9]{1,9})\.[0-9]")


def is_over(host: HostFacts, last_s: int | None) -> bool:
    """The driver was loaded again since, which starts its GPUs anew."""
    since = host.log.driver_since_s
    return last_s is not None and since is not None and last_s < since


def since_loaded(host: HostFacts, lines: Iterable[str]) -> list[str]:
    """Those of this driver, as it runs; a line without a time may be one."""
    stamped = ((line, _STAMP.match(line)) for line in lines)
    return [line for line, stamp in stamped if not is_over(host, int(stamp[1]) if stamp else None)]
