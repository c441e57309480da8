"""paramiko as it is used here: without invoke, without output, and with bounds on what a server may make us hold."""

from __future__ import annotations

import logging
import socket
import sys
import time

from gpunode.errors import UnsupportedHost
from gpunode.transport.public_key import CERTIFICATE
from gpunode.transport.ssh_config import MatchExec

# paramiko imports invoke, half its own import time, for `Match exec` alone; see MatchExec.
_block = "invoke" not in sys.modules
if _block:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # makes `import invoke` raise ImportError
try:
    import paramiko as paramiko
    import paramiko.config
    from paramiko.packet import Packetizer
    from paramiko.pkey import PublicBlob
except ModuleNotFoundError as error:
    if error.name != "paramiko":
        raise
    raise UnsupportedHost(
        "this gpunode has no SSH",
        evidence=f"{sys.executable} finds no paramiko; a zipapp holds none, and acts on the host that it runs on",
        remedy="install gpunode with pipx, uv or pip where the fleet is controlled from (README.md, Install)",
    ) from error
finally:
    if _block:
        del sys.modules["invoke"]


paramiko.config.invoke = MatchExec  # type: ignore[attr-defined]

# It logs tracebacks of broken connections to stderr; every one of them becomes a TransportError here.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)

PACKET_LIMIT_BYTES = 256 * 1024  # OpenSSH's own limit (packet.c, PACKET_MAX_SIZE); RFC 4253 6.1 asks for 35000
_WORDS_BYTES = 200
BANNER_LIMIT_BYTES = 64 * 1024  # lines before the version: OpenSSH reads 1024 of them, real servers send none


class BoundedPackets(Packetizer):
    """Reads packets and the banner as far as a sane server goes. Raises SSHException beyond that.

    A packet's length is the first thing that whoever answers on the port sends, up to 4 GiB and before any host key
    is checked; before the version there may be a line without end.
    """

    _banner_bytes = 0
    _handshake_until: float | None = None
    words = b""  # the first of what came before the version

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
        self.words += piece[: _WORDS_BYTES - len(self.words)]
        if self._banner_bytes > BANNER_LIMIT_BYTES:
            raise paramiko.SSHException(f": more than {BANNER_LIMIT_BYTES >> 10} KiB came before the version")
        return piece


class Transport(paramiko.Transport):
    """One connection, within those bounds, that can ask for the host's certificate before its plain key."""

    certificate_first = False

    def __init__(self, link: socket.socket | paramiko.Channel) -> None:
        super().__init__(link)
        self.packetizer = BoundedPackets(link)  # type: ignore[arg-type]  # a Channel will do, as for its superclass

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """paramiko puts the certificates behind the keys, and whoever has one has a key as well."""
        offered = super().preferred_keys
        return tuple(sorted(offered, key=lambda name: self.certificate_first and not name.endswith(CERTIFICATE)))

    @property
    def said(self) -> str:
        """What came in place of a version; "" where one came, or nothing."""
        words = getattr(self.packetizer, "words", b"").decode("utf-8", "replace")
        return "" if "SSH-" in words else " ".join(words.split())

    def get_exception(self) -> Exception | None:
        """What ended the thread that reads, which paramiko raises in ours: a ValueError for a key that is too short.

        Whatever a server can provoke is an SSHException, an EOFError or an OSError here.
        """
        error: Exception | None = super().get_exception()
        if error is None or isinstance(error, paramiko.SSHException | EOFError | OSError):
            return error
        wrapped = paramiko.SSHException(f"what the server sent makes no sense ({type(error).__name__})")
        wrapped.__cause__ = error
        return wrapped

    def shown(self) -> tuple[bytes, bytes | None]:
        """The plain key that the host proved to have, and the certificate about it, where it showed one."""
        key = self.get_remote_server_key()
        blob = getattr(key, "public_blob", None)
        return key.asbytes(), None if blob is None or not blob.key_type.endswith(CERTIFICATE) else blob.key_blob


class CertifiedKey(paramiko.PKey):
    """A key, of a file or of an agent, that logs in with a certificate about it. It is not changed itself."""

    def __init__(self, key: paramiko.PKey, kind: str, certificate: bytes) -> None:
        self._key = key
        self.public_blob = PublicBlob(kind, certificate)

    def get_name(self) -> str:
        return self._key.get_name()

    def asbytes(self) -> bytes:
        return self._key.asbytes()

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> paramiko.Message:
        return self._key.sign_ssh_data(data, algorithm)
