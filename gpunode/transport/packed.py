"""A long script on its way to a host, compressed: what a fresh connection may send before it must wait is some 14 KB.

Three quarters of a script are gone with gzip, and with them a round trip or two. In the argument it is base64 as well,
which still fits there where the plain script does not. The host unpacks it all, or says that it cannot (no gzip, no
base64: an exit status of its own, and nothing of the script has run), and gets it plain (ssh.py).

The script may answer compressed in turn: GPUNODE_GZIP names the program that has just unpacked it.
"""

from __future__ import annotations

import base64
import threading
import zlib
from functools import lru_cache

from gpunode.transport.shell import (
    ARGUMENT_LIMIT_BYTES,
    FROM_MARKED_LINE,
    PREPARE,
    Delivery,
    deliver_line,
    evaluate,
)

WORTH_BYTES = 12_000  # a script that the first flight takes anyway gains nothing
CANNOT_UNPACK = 96  # the wrapper's exit status; the script's own comes with the mark of its end
_GZIP = 31  # zlib's word for a gzip header and trailer, whose checksum tells a cut one

_PROGRAM = (
    "GPUNODE_GZIP=/usr/bin/gzip; [ -x /usr/bin/gzip ] || GPUNODE_GZIP=/bin/gzip; "
    f'[ -x "$GPUNODE_GZIP" ] || exit {CANNOT_UNPACK}; '
)
_RUN = evaluate('"$gpunode_script"')
_FROM_ARGUMENT = (
    f"{PREPARE}{_PROGRAM}"
    'gpunode_script=$(printf %s "$1" | { /usr/bin/base64 -d || /bin/base64 -d; } 2>/dev/null | '
    f'"$GPUNODE_GZIP" -dc 2>/dev/null) || exit {CANNOT_UNPACK}; shift; {_RUN}'
)
# Nothing follows the script, so gzip may read to the end of stdin.
_FROM_STDIN = (
    f"{PREPARE}{_PROGRAM}{FROM_MARKED_LINE}"
    f'gpunode_script=$("$GPUNODE_GZIP" -dc 2>/dev/null) || exit {CANNOT_UNPACK}; {_RUN}'
)


def worth_packing(script: str, stdin: bytes) -> bool:
    """Whether it is long, and alone: data behind it would be read by gzip too."""
    return not stdin and len(script) > WORTH_BYTES


def deliver_packed(
    script: str, *, become: bool = False, password: bool = False, argument: bool = True, terminal: bool = False
) -> Delivery:
    """As `deliver` does, of a script without data that is `worth_packing`."""
    raw, text = _packed(script)
    if argument and not become and len(text) <= ARGUMENT_LIMIT_BYTES:
        return Delivery(("sh", "-c", _FROM_ARGUMENT, "gpunode", text), b"", packed=True)
    payload = b"\ngpunode-script:packed\n" + raw
    return deliver_line(_FROM_STDIN, payload, become=become, password=password, terminal=terminal, packed=True)


_one_at_a_time = threading.Lock()  # all threads of a fleet ask for the same one, at the same moment


def _packed(script: str) -> tuple[bytes, str]:
    """As it is, and as an argument."""
    with _one_at_a_time:
        return _compressed(script)


@lru_cache(maxsize=2)  # the probe, which every host is sent
def _compressed(script: str) -> tuple[bytes, str]:
    raw = _alike.compressed(script)
    return raw, base64.b64encode(raw).decode("ascii")


class _Alike:
    """Compresses; where scripts begin alike, as the probe with a few lines for one host at its end, that part once."""

    def __init__(self) -> None:
        self._last = self._shared = ""
        self._head, self._compressor = b"", _compressor()  # what became of the shared part, and how to go on

    def compressed(self, script: str) -> bytes:
        if not (self._shared and script.startswith(self._shared)):
            self._shared = self._longest_with(script)
            self._compressor = _compressor()
            self._head = self._compressor.compress(_bytes(self._shared))
        self._last = script
        compressor = self._compressor.copy()
        return self._head + compressor.compress(_bytes(script[len(self._shared) :])) + compressor.flush()

    def _longest_with(self, script: str) -> str:
        """What this script and the last begin with; "" where that is not most of it."""
        alike = _alike_length(self._last, script)
        return script[:alike] if 2 * alike > len(script) else ""


def _bytes(script: str) -> bytes:
    return script.encode("utf-8", "surrogateescape")


def _compressor() -> zlib._Compress:
    return zlib.compressobj(9, wbits=_GZIP)


def _alike_length(one: str, other: str) -> int:
    """How long what both begin with is. By halves: comparing whole pieces takes no time."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[:middle] == other[:middle] else (least, middle - 1)
    return least


_alike = _Alike()
