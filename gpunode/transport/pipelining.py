"""A login in one flight: service, key and first session are asked for together, and a first command that only reads.

paramiko's public interface waits for each answer before it asks for more: two or three round trips. A client may go on
at once, for the server answers in order; nothing of this is sent before the host's key is known. It takes names that
paramiko keeps to itself. They are looked for first: without them, and where another server than OpenSSH answers, one is
asked for after the other.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from gpunode.transport.ssh_library import Asked, Patient, Transport, expected, paramiko

# Of paramiko's own, as 5.1 has them; where one is missing, nothing here is used.
_NAMES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (paramiko.auth_handler.AuthHandler, ("_request_auth", "_parse_service_accept", "wait_for_response")),
    (paramiko.Transport, ("_next_channel", "_sanitize_window_size", "_sanitize_packet_size", "_send_user_message")),
    (paramiko.Channel, ("_set_transport", "_set_window", "_event_pending", "_wait_for_event")),
)
_VALUES = ("lock", "_channels", "channel_events", "channels_seen")  # of a connection
_OPEN, _EOF, _REQUEST = (bytes((number,)) for number in (90, 96, 98))  # SSH_MSG_CHANNEL_... (RFC 4254)
# How OpenSSH calls the first session of a connection: the lowest number that is free (channels.c, channel_new).
FIRST = 0


def possible(transport: paramiko.Transport) -> bool:
    """Whether this paramiko has what is used here."""
    named = all(hasattr(kind, name) for kind, names in _NAMES for name in names)
    return named and all(hasattr(transport, name) for name in _VALUES)


def fits(transport: Transport, key: paramiko.PKey) -> bool:
    """Whether server and key are such that asking early changes nothing but the time it takes.

    OpenSSH answers an early request for a session with UNIMPLEMENTED where it refuses the key, and goes on (dispatch.c,
    dispatch_protocol_error); others may end the connection. How an RSA key is to sign the server says in a message that
    may still be on its way.
    """
    algorithms = getattr(transport, "server_extensions", {}).get("server-sig-algs", b"")
    told = "rsa" not in key.get_name() or b"rsa-sha2-" in algorithms
    openssh = transport.remote_version.startswith("SSH-2.0-OpenSSH")
    return told and openssh and transport.pipelining and possible(transport)


def offer(transport: Transport, user: str, key: paramiko.PKey, *, session: bool) -> list[str]:
    """As Transport.auth_publickey, and that one where nothing else `fits`.

    `session`: the first session is asked for as well, and is in `transport.asked` once the key is accepted. For the
    last key alone: where another one is right the host would log a request that came too early.
    """
    event = Patient(transport, transport.auth_timeout)
    if not fits(transport, key):
        transport.auth_publickey(user, key, event)
        assert transport.auth_handler is not None
        return list(transport.auth_handler.wait_for_response(event))
    transport.pipelined = True
    transport.auth_handler = handler = _OneFlight(transport)
    try:
        handler.auth_publickey(user, key, event)
    except Exception as error:  # the agent's, where paramiko's own thread would have met it
        raise expected(error) from error
    asked = ask(transport) if session else None
    if asked is not None and transport.first_line:
        start(transport, asked, transport.first_line, FIRST)
    left = ["?"]
    try:
        left = list(handler.wait_for_response(event))
    except paramiko.AuthenticationException:
        if asked is None or not asked.line or not handler.is_authenticated():
            raise
        left = []  # it let us in; that it has hung up since, over the command, is seen by who wants its answer
    finally:
        if left and asked is not None:
            asked.forget()
    transport.asked = asked
    return left


class _OneFlight(paramiko.auth_handler.AuthHandler):
    """Asks to be logged in right behind asking for the service. A server that refuses the service disconnects."""

    def _request_auth(self) -> None:
        super()._request_auth()  # type: ignore[misc]
        accepted = paramiko.Message()
        accepted.add_string("ssh-userauth")
        accepted.rewind()
        super()._parse_service_accept(accepted)  # type: ignore[misc]

    def _parse_service_accept(self, m: paramiko.Message) -> None:
        """The answer to what was taken for granted."""


def start(transport: Transport, asked: Asked, line: str, number: int, *, reads: bool = False) -> None:
    """Start `line` in a session, by the host's number of it, and wait for nothing; `reads`: its stdin stays open.

    Where the session is not granted yet and is refused then, or has another number, OpenSSH ends the connection and
    nothing was started.
    """
    asked.line, asked.sent = line, (time.time(), time.monotonic())
    hidden: Any = transport
    channel: Any = asked.channel
    channel._event_pending()
    request, end = paramiko.Message(), paramiko.Message()
    request.add_byte(_REQUEST)
    request.add_int(number)
    request.add_string("exec")
    request.add_boolean(True)
    request.add_string(line)
    hidden._send_user_message(request)
    if not reads:
        end.add_byte(_EOF)
        end.add_int(number)
        channel.eof_sent = True
        hidden._send_user_message(end)


def ask(transport: paramiko.Transport) -> Asked | None:
    """Ask for a session, as open_session does, and wait for nothing; None where this paramiko has no way to do so."""
    if not (possible(transport) and transport.is_active()):
        return None
    hidden: Any = transport
    with hidden.lock:
        window, largest = hidden._sanitize_window_size(None), hidden._sanitize_packet_size(None)
        number = hidden._next_channel()
        channel: Any = paramiko.Channel(number)
        hidden._channels.put(number, channel)
        hidden.channel_events[number] = came = threading.Event()
        hidden.channels_seen[number] = True
        channel._set_transport(transport)
        channel._set_window(window, largest)
    message = paramiko.Message()
    message.add_byte(_OPEN)
    message.add_string("session")
    for value in (number, window, largest):
        message.add_int(value)
    hidden._send_user_message(message)
    return Asked(transport, channel, came)
