"""paramiko as it is used here: without invoke, without output, and with bounds on what a server may make us hold."""

from __future__ import annotations

import fnmatch
import hmac
import logging
import re
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from gpunode.errors import UnsupportedHost
from gpunode.transport.public_key import CERTIFICATE
from gpunode.transport.ssh_config_canonical import canonical, canonicalizes
from gpunode.transport.ssh_config_text import ORIGINAL, MatchExec
from gpunode.transport.ssh_config_tokens import expanded
from gpunode.transport.ssh_socket import Link

# paramiko imports invoke, half its own import time, for `Match exec` alone; see MatchExec.
_block = "invoke" not in sys.modules
if _block:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # makes `import invoke` raise ImportError
try:
    with warnings.catch_warnings():
        # Old paramikos (Debian 12 has 2.12) name ciphers that newer cryptography warns of at import, on every run.
        warnings.simplefilter("ignore")
        import paramiko as paramiko
        import paramiko.config
        import paramiko.packet
        from paramiko.agent import AgentSSH
        from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EOF, MSG_CHANNEL_EXTENDED_DATA
        from paramiko.packet import Packetizer
        from paramiko.pkey import PublicBlob
except ModuleNotFoundError as error:
    if error.name != "paramiko":
        raise
    raise UnsupportedHost(
        "this gpunode has no SSH",
        evidence=f"{sys.executable} finds no paramiko; a zipapp holds none, and acts on the host that it runs on",
        remedy="install gpunode with pipx, uv or pip where the fleet is controlled from (README.md, Install); next to "
        "its deb or rpm, the package python3-paramiko",
    ) from error
finally:
    if _block:
        del sys.modules["invoke"]


paramiko.config.invoke = MatchExec  # type: ignore[attr-defined]
# Each packet's MAC, in constant time. paramiko's own compares byte after byte in Python: a fifth of its thread's work.
paramiko.util.constant_time_bytes_eq = hmac.compare_digest  # type: ignore[assignment]
# And made by one call into OpenSSL, where paramiko's makes an object of four for each.
paramiko.packet.compute_hmac = hmac.digest  # type: ignore[assignment]

_OF_OPEN_CHANNELS = (MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA, MSG_CHANNEL_EOF)

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
    _at_hand: Callable[[int], bytes] | None = None

    def __init__(self, link: socket.socket) -> None:
        super().__init__(link)
        if isinstance(link, Link):
            self._at_hand = link.at_hand

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
        piece = self._at_hand(n) if self._at_hand is not None and self._nothing_before else b""
        return piece or super().read_all(n, check_rekey)

    @property
    def _nothing_before(self) -> bool:
        """What came behind the version, in the same piece, is read first: paramiko keeps that."""
        return not getattr(self, "_Packetizer__remainder", True)

    def _read_timeout(self, timeout: float) -> bytes:
        """One piece of the lines before the version; nothing else is read this way."""
        piece: bytes = super()._read_timeout(timeout)  # type: ignore[misc]
        self._banner_bytes += len(piece)
        self.words += piece[: _WORDS_BYTES - len(self.words)]
        if self._banner_bytes > BANNER_LIMIT_BYTES:
            raise paramiko.SSHException(f": more than {BANNER_LIMIT_BYTES >> 10} KiB came before the version")
        return piece


class Config(paramiko.SSHConfig):
    """With ssh's tokens, patterns and full names. paramiko knows fewer tokens, asks for this machine's names for each
    value of each host, and compiles the patterns of a large file again for each: a quarter of a second, of two thousand
    blocks. It makes a full name of what was typed, and dials that in place of HostName. One look-up at a time.
    """

    _typed = ""

    def lookup(self, hostname: str) -> paramiko.SSHConfigDict:
        """As ssh: HostName first, then CanonicalizeHostname; Host lines are then asked of the name that this made.

        Raises ValueError for a value that ssh would not read, or a host that may not stay without a full name.
        """
        self._typed = hostname
        found = self._lookup(hostname)  # type: ignore[attr-defined]
        found["hostname"] = expanded("hostname", found.get("hostname", hostname), found, hostname)
        if is_canonical := canonicalizes(found) != "no":
            hostname = found["hostname"] = canonical(found["hostname"], found)
        found = self._lookup(hostname, found, is_canonical)  # type: ignore[attr-defined]
        settings: paramiko.SSHConfigDict = super()._expand_variables(found, hostname)  # type: ignore[misc]
        return settings

    def _expand_variables(self, config: paramiko.SSHConfigDict, target_hostname: str) -> paramiko.SSHConfigDict:
        """Nothing yet: lookup does it once, after the last look."""
        return config

    def _tokenize(self, config: Mapping[str, object], target_hostname: str, key: str, value: str) -> str:
        return value if key == "hostname" else expanded(key, value, config, self._typed)

    def _does_match(self, match_list: Sequence[Mapping[str, Any]], target_hostname: str, *more: object) -> bool:
        """Host is asked of the host's full name where it has one; originalhost of what was typed."""
        rest = []
        for asked in match_list:
            if asked["type"] != ORIGINAL:
                rest.append(asked)
            elif self._pattern_matches(asked["param"], self._typed) is asked["negate"]:
                return False
        if match_list and not rest:
            return True
        return bool(super()._does_match(rest, target_hostname, *more))  # type: ignore[misc]

    def _pattern_matches(self, patterns: str | Sequence[str], target: str) -> bool:
        hit = False
        for pattern in patterns.split(",") if isinstance(patterns, str) else patterns:
            if pattern.startswith("!") and _fits(pattern[1:], target):
                return False
            hit = hit or _fits(pattern, target)
        return hit


def _fits(pattern: str, name: str) -> bool:
    """ssh's patterns know * and ? alone; most of a long file have neither."""
    if "*" in pattern or "?" in pattern:
        return _compiled(pattern).fullmatch(name) is not None
    return pattern == name


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


class Transport(paramiko.Transport):
    """One connection, within those bounds, that can ask for the host's certificate before its plain key."""

    certificate_first = False
    pipelining = True  # may be tried (pipelining.py)
    pipelined = False  # was tried
    asked: Asked | None = None  # the first session, where it was asked for with the login
    first_line = ""  # a command that may be started in it unasked, and twice; "": there is none
    awaited: threading.Event | None = None  # what a Patient waits for

    _channel_handler_table: ClassVar[dict[int, Callable[..., None]]] = {
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_DATA: lambda channel, message: _fed(channel, channel._feed, message),
        MSG_CHANNEL_EXTENDED_DATA: lambda channel, message: _fed(channel, channel._feed_extended, message),
    }

    def __init__(self, link: socket.socket | paramiko.Channel) -> None:
        super().__init__(link)
        self.packetizer = BoundedPackets(link)  # type: ignore[arg-type]  # a Channel will do, as for its superclass
        self._one_by_one = threading.RLock()  # a forgotten channel closes itself wherever memory is collected

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
        return None if error is None else expected(error)

    def _log(self, level: int, msg: object, *args: object) -> None:
        """Nobody reads it (above): thirty lines for each connection."""

    def _filter_algorithm(self, type_: str) -> tuple[str, ...]:
        """What is preferred, for none is disabled here: paramiko goes through its lists sixteen times a connection."""
        preferred: tuple[str, ...] = getattr(self, f"_preferred_{type_}")
        return preferred

    def _parse_debug(self, m: paramiko.Message) -> None:
        """sshd says with each login which line of authorized_keys let us in; paramiko prepares that for its log."""

    def _send_user_message(self, data: paramiko.Message) -> None:
        """Nothing of a channel follows its end (RFC 4254, 5.3): OpenSSH ends the connection over it. paramiko's own
        thread may answer the server's end while ours is about to send what was made just before.
        """
        head = data.asbytes()[:5]
        with self._one_by_one:
            if head[0] not in _OF_OPEN_CHANNELS or self._is_open(int.from_bytes(head[1:], "big")):
                super()._send_user_message(data)  # type: ignore[misc]

    def _is_open(self, number: int) -> bool:
        """Whether paramiko still has the channel, by the host's number: it lets go of it before it answers its end."""
        return any(number == channel.remote_chanid for channel in self._channels.values())  # type: ignore[attr-defined]

    def negotiate(self, limit_s: float) -> None:
        """Key exchange, as start_client with a time limit. Raises SSHException, EOFError or OSError."""
        event = Patient(self, limit_s)
        self.start_client(event)
        event.wait()
        if not self.is_active():
            raise self.get_exception() or paramiko.SSHException("Negotiation failed.")

    def close(self) -> None:
        """Also wakes whoever waits for an answer that will not come."""
        super().close()
        if self.awaited is not None:
            self.awaited.set()
        for event in list(getattr(self, "channel_events", {}).values()):
            event.set()

    def shown(self) -> tuple[bytes, bytes | None]:
        """The plain key that the host proved to have, and the certificate about it, where it showed one."""
        key = self.get_remote_server_key()
        blob = getattr(key, "public_blob", None)
        return key.asbytes(), None if blob is None or not blob.key_type.endswith(CERTIFICATE) else blob.key_blob


def _fed(channel: Any, feed: Callable[[paramiko.Message], None], message: paramiko.Message) -> None:
    """What nobody has read yet is never more than the window that was granted (RFC 4254, 5.2), which paramiko does not
    hold a server to: before its answer to a command, say, nobody reads.
    """
    feed(message)
    if len(channel.in_buffer) + len(channel.in_stderr_buffer) > channel.in_window_size:
        raise paramiko.SSHException(f"more came than the {channel.in_window_size} bytes that were granted")


def expected(error: Exception) -> Exception:
    """`error`, or an SSHException about it: whatever a server can provoke is that, an EOFError or an OSError here."""
    if isinstance(error, paramiko.SSHException | EOFError | OSError):
        return error
    wrapped = paramiko.SSHException(f"what the server sent makes no sense ({type(error).__name__})")
    wrapped.__cause__ = error
    return wrapped


class Patient(threading.Event):
    """What paramiko waits for, where it wakes ten times a second to see whether the connection is still there.

    The end of a connection sets it (Transport.close, and paramiko's own thread), so one wait of `limit_s` is enough.
    """

    def __init__(self, transport: Transport, limit_s: float | None) -> None:
        super().__init__()
        self._limit_s = limit_s
        transport.awaited = self

    def wait(self, timeout: float | None = None) -> bool:
        """`timeout` is paramiko's tenth of a second."""
        return super().wait(self._limit_s)


class Asked:
    """A session that was asked for (pipelining.ask), whose answer nobody has waited for yet."""

    def __init__(self, transport: paramiko.Transport, channel: paramiko.Channel, came: threading.Event) -> None:
        self._transport = transport
        self.channel = channel  # paramiko itself holds it weakly
        self._came = came
        self.line = ""  # the command that was sent without waiting for it
        self.sent = (0.0, 0.0)  # when: by the clock, and by the one that nobody sets

    def opened(self, limit_s: float) -> paramiko.Channel:
        """Raises as paramiko.Transport.open_session: ChannelException where the host refuses it."""
        came = self._came.wait(limit_s)
        if came and self._transport.is_active() and self._known:
            return self.channel
        if not came and self._transport.is_active():
            raise paramiko.SSHException("Timeout opening channel.")
        raise self._transport.get_exception() or paramiko.SSHException("Unable to open channel.")

    @property
    def granted(self) -> bool | None:
        """None: there is no answer yet."""
        return self._known if self._came.is_set() else None

    @property
    def _known(self) -> bool:
        """paramiko forgets one that the host refuses."""
        return self._transport._channels.get(self.channel.get_id()) is not None  # type: ignore[attr-defined]

    def forget(self) -> None:
        """Nobody will ask for it."""
        self._transport._channels.delete(self.channel.get_id())  # type: ignore[attr-defined]


class Agent(AgentSSH):
    """The one at `path`, where paramiko's own is that of SSH_AUTH_SOCK. Raises OSError, SSHException, ValueError."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(str(path))
            self._connect(link)  # type: ignore[attr-defined]  # reads its keys
        except BaseException:
            link.close()
            raise

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]


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
