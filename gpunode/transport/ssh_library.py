"""paramiko as it is used here: without invoke, without output, and with bounds on what a server may make us hold."""

from __future__ import annotations

import logging
import sys
import time

from gpunode.transport.ssh_config import MatchExec

# paramiko imports invoke, half its own import time, for `Match exec` alone; see MatchExec.
_block = "invoke" not in sys.modules
if _block:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # makes `import invoke` raise ImportError
try:
    import paramiko as paramiko
    import paramiko.config
    from paramiko.packet import Packetizer
finally:
    if _block:
        del sys.modules["invoke"]


paramiko.config.invoke = MatchExec  # type: ignore[attr-defined]

# It logs tracebacks of broken connections to stderr; every one of them becomes a TransportError here.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)

PACKET_LIMIT_BYTES = 256 * 1024  # OpenSSH's own limit (packet.c, PACKET_MAX_SIZE); RFC 4253 6.1 asks for 35000
BANNER_LIMIT_BYTES = 64 * 1024  # lines before the version: OpenSSH reads 1024 of them, real servers send none


class BoundedPackets(Packetizer):
    """Reads packets and the banner as far as a sane server goes. Raises SSHException beyond that.

    A packet's length is the first thing that whoever answers on the port sends, up to 4 GiB and before any host key
    is checked; before the version there may be a line without end.
    """

    _banner_bytes = 0
    _handshake_until: float | None = None

    def start_handshake(self, timeout: float) -> None:
        """Asks the clock where paramiko starts a thread for each connection."""
        self._handshake_until = time.monotonic() + timeout

    def handshake_timed_out(self) -> bool:
        return self._handshake_until is not None and time.monotonic() > self._handshake_until

    def complete_handshake(self) -> None:
        self._handshake_until = None

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > PACKET_LIMIT_BYTES:
            raise paramiko.SSHException(f"a packet of {n} bytes was announced; {PACKET_LIMIT_BYTES} are the limit")
        return super().read_all(n, check_rekey)

    def _read_timeout(self, timeout: float) -> bytes:
        """One piece of the lines before the version; nothing else is read this way."""
        piece: bytes = super()._read_timeout(timeout)  # type: ignore[misc]
        self._banner_bytes += len(piece)
        if self._banner_bytes > BANNER_LIMIT_BYTES:
            raise paramiko.SSHException(f": more than {BANNER_LIMIT_BYTES >> 10} KiB came before the version")
        return piece
