"""What the package managers add to the probe: their tools, how each lists its packages, and where its files are.

shell/probe/managers.sh is this text as gpunode's own managers make it, for a probe that begins before they are loaded.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from gpunode.packages.registry import BACKENDS

_HEAD = """# shellcheck shell=sh disable=SC2034
# Made by gpunode/packages/probe.py (tests/packages/test_probe_part.py): what the package managers add to the probe.
"""


def probe_part() -> str:
    """Shell that is put before the probe's other files: lists for its loops, and list_SECTION for each listing."""
    managers = BACKENDS.values()
    words: dict[str, Iterable[str]] = {
        "MANAGER_TOOLS": (tool for m in managers for tool in m.tools),
        "LISTINGS": (m.listing for m in managers),
        "SOURCE_FILES": (path for m in managers for path in m.source_files),
        "KEY_FILES": (path for m in managers for path in m.key_files),
        "HOLD_FILES": (path for m in managers for path in m.hold_files),
        "PROXY_FILES": (path for m in managers for path in m.proxy_files),
        "LOCK_FILES": (path for m in managers for path in m.lock_files),
        "PID_FILES": (path for m in managers for path in m.pid_files),
    }
    listings = {m.listing: m.list_script for m in managers}
    return "".join(
        (
            _HEAD,
            *(f"{name}={shlex.quote(' '.join(dict.fromkeys(each)))}\n" for name, each in words.items()),
            *(f"list_{name}() {{\n{script}}}\n" for name, script in listings.items()),
        )
    )
