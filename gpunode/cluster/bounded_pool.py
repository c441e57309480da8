"""Every request of the client goes through here: bounded in time and size, without redirects and repeats.

The client reads an answer to its end however long that is, follows an address that a server gives, and repeats what
fails. urllib3's time limits count between two bytes, so that a server which sends one now and then is never over them,
and none of them is for finding an address by its name: the whole of a request has a limit of its own.
"""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from gpunode.foreign import whole_number

MOST_BYTES = 4 << 20  # an object of etcd's is 1.5 MiB at most (--max-request-bytes), as JSON with its managedFields
PIECE_BYTES = 64 << 10
CALL_S = 30.0
CONNECT_S = 10.0
BUSY = 429  # not begun, by the server's own word: it is asked again
LONGEST_PAUSE_S = 5.0

Answered = TypeVar("Answered")


class Refused(Exception):
    """The server's answer is not what was asked for: `status`, and what it says of it."""

    def __init__(self, status: int, body: bytes, retry_after: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.retry_after = retry_after


class Overlong(Exception):
    """The answer is over MOST_BYTES."""


class Unreached(Exception):
    """What urllib3 says of a request that got no answer; the client turns some of it into errors of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class BoundedPool:
    """In the place of the client's urllib3.PoolManager, by the two methods that it calls."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def clear(self) -> None:
        self._pool.clear()

    def request(self, method: str, url: str, **options: Any) -> Any:
        """A response that is in memory already. Raises Refused, Overlong and Unreached."""
        import urllib3

        options |= {"redirect": False, "retries": False, "preload_content": False}
        options["timeout"] = urllib3.Timeout(connect=CONNECT_S, read=CALL_S)
        try:
            answer = self._pool.request(method, url, **options)
            try:
                body = _whole(answer)
                answer.release_conn()
            except BaseException:
                answer.close()
                raise
        except (urllib3.exceptions.HTTPError, UnicodeError) as error:  # the latter for a name that is none
            raise Unreached(error) from error
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, body, answer.headers.get("Retry-After", ""))
        return urllib3.HTTPResponse(io.BytesIO(body), status=answer.status, preload_content=False)


def _whole(answer: Any) -> bytes:
    """As it was sent: nothing was asked for that would have to be unpacked."""
    body = bytearray()
    while piece := answer.read(PIECE_BYTES, decode_content=False):
        body += piece
        if len(body) > MOST_BYTES:
            raise Overlong
    return bytes(body)


def within(limit_s: float, ask: Callable[[], Answered]) -> Answered:
    """What `ask` answers, or raises; TimeoutError when its time is over. What still waits then ends with gpunode."""
    done: queue.SimpleQueue[tuple[Answered | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((ask(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=work, name="gpunode-api", daemon=True).start()
    try:
        answer, error = done.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]  # None is an answer as well


def patiently(ask: Callable[[], Answered], limit_s: float, pause: Callable[[float], None] = time.sleep) -> Answered:
    """The same, asked again while the server is too busy to begin, as long as there is time."""
    end = time.monotonic() + limit_s
    while True:
        try:
            return within(max(0.1, end - time.monotonic()), ask)
        except Refused as refused:
            asked_s = whole_number(refused.retry_after)
            wait_s = 1.0 if asked_s is None else max(0.0, min(float(asked_s), LONGEST_PAUSE_S))
            if refused.status != BUSY or time.monotonic() + wait_s >= end:
                raise
            pause(wait_s)
