"""A bad link before a server, as a process of its own: it stalls in a rhythm, or breaks after so many bytes.

    python -m tests.hostile.link SERVER_PORT [--stall 0.8 --every 1.3] [--cut BYTES]

prints its own port on 127.0.0.1 and serves until its stdin ends. `--cut` counts what the server says on a connection.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def link(server_port: int, *options: str) -> Iterator[int]:
    """The port of a link to the server while the block runs."""
    command = (sys.executable, "-m", "tests.hostile.link", str(server_port), *options)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, bad: argparse.Namespace, cut: int) -> None:
    left = cut
    with suppress(OSError):
        while piece := await source.read(16384):
            if bad.stall and (phase := time.monotonic() % bad.every) < bad.stall:
                await asyncio.sleep(bad.stall - phase)
            if cut:
                piece, left = piece[:left], left - len(piece)
            sink.write(piece)
            await sink.drain()
            if cut and left <= 0:
                break
    sink.close()


async def _serve(bad: argparse.Namespace) -> None:
    async def joined(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        server, up = await asyncio.open_connection("127.0.0.1", bad.server)
        other = asyncio.ensure_future(_pump(client, up, bad, 0))
        await _pump(server, answer, bad, bad.cut)
        other.cancel()
        up.close()

    listener = await asyncio.start_server(joined, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("server", type=int)
    words.add_argument("--stall", type=float, default=0.0)
    words.add_argument("--every", type=float, default=1.0)
    words.add_argument("--cut", type=int, default=0)
    asyncio.run(_serve(words.parse_args()))
