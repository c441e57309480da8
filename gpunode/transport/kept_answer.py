"""A host whose answer to one script is kept for whoever asks the very same next: one look, and two who need it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpunode.transport.base import Completed, Transport


class KeptAnswer:
    """`inner` in all else. Any other script, which may change the host, and a new connection end what was kept."""

    def __init__(self, inner: Transport) -> None:
        self.target = inner.target
        self._inner = inner
        self._keeps = False
        self._kept: tuple[str, Completed] | None = None

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """The last answer within is kept."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """See Transport.run."""
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == script and not stdin:
            return kept[1]
        answer = self._inner.run(script, stdin=stdin, timeout_s=timeout_s)
        if self._keeps:
            self._kept = (script, answer)
        return answer

    def reconnect(self) -> None:
        """See Transport.reconnect."""
        self._kept = None
        self._inner.reconnect()

    def close(self) -> None:
        """See Transport.close."""
        self._kept = None
        self._inner.close()
