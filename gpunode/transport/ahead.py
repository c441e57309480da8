"""A script that runs here while gpunode still loads what will ask for its answer.

This file is loaded before almost all others, so it loads little itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from io import FileIO

from gpunode.transport.shell import Delivery, deliver

_PIPE_BYTES = 1 << 20  # what anybody's pipe may hold: a script that is started ahead does not wait for its reader

_running: dict[tuple[tuple[str, ...], bytes], subprocess.Popen[bytes]] = {}


def start_ahead(script: str) -> None:
    """Start `script` here and now, as whoever runs gpunode, while gpunode still loads what will ask for its answer.

    Local.run takes it over where it is asked for just this script. What nobody took, `end_ahead` of local.py ends.
    """
    delivery = deliver(script, b"")
    with ExitStack() as stack, suppress(OSError):  # whoever asks for it then starts it, and says why it cannot be
        source = stack.enter_context(memory_file(delivery.payload))
        _running[delivery.argv, delivery.payload] = started(delivery, source, _PIPE_BYTES)


def taken(delivery: Delivery) -> subprocess.Popen[bytes] | None:
    """The script that was started ahead, whose answer is now the caller's; None where it was not."""
    return _running.pop((delivery.argv, delivery.payload), None)


def all_taken() -> Iterator[subprocess.Popen[bytes]]:
    """Each that is left."""
    while _running:
        yield _running.popitem()[1]


def started(delivery: Delivery, source: FileIO | int, pipe_bytes: int = -1) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C at the terminal stops gpunode between steps, not the step."""
    return subprocess.Popen(
        delivery.argv,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
        pipesize=pipe_bytes,
    )


def memory_file(payload: bytes) -> FileIO:
    """For stdin: no limit as argv has, no disk that may be full, and seekable, so readers stop where they must."""
    source = FileIO(os.memfd_create("in"), "r+b")
    source.write(payload)
    source.seek(0)
    return source
