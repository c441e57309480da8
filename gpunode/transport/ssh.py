"""A host over SSH, with paramiko: one connection a host, one channel a script, keys only, host keys always checked."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gpunode.errors import TransportError
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport import known_hosts, ssh_errors
from gpunode.transport.answer import result
from gpunode.transport.base import Completed, NotReached, PasswordRefused, Question, Way
from gpunode.transport.channel import Output, converse
from gpunode.transport.crowd import crowd_at, pause_s
from gpunode.transport.feed import StdinScript
from gpunode.transport.host_trust import Known, Shown, key_types, known, lines_for
from gpunode.transport.known_hosts import HostKey
from gpunode.transport.login import log_in
from gpunode.transport.packed import CANNOT_UNPACK, deliver_packed, worth_packing
from gpunode.transport.refusals import counted, not_started, unanswered, wants_terminal
from gpunode.transport.sessions import Refused, Sessions, TooEarly
from gpunode.transport.shell import Delivery, asking_process, deliver, reader_line
from gpunode.transport.ssh_config import (
    Hop,
    SshOptions,
    SshTarget,
    parse_target,
    resolve,
)
from gpunode.transport.ssh_config_lookup import looked_up
from gpunode.transport.ssh_library import Transport, paramiko
from gpunode.transport.ssh_socket import Link, Proxy, dial

# Key exchange, login, and the reply to "open" and "exec": a busy host's sshd takes seconds, a starved controller more.
_REPLY_S = 60.0
_KEEPALIVE_S = 15
# How often the thread that reads looks up for keepalives; paramiko does so ten times a second, to notice that its
# socket was closed, which wakes a Link.
_LOOKS_UP_S = 1.0
_MAX_HOPS = 8
_THE_RIGHT_ONE = "give the right password with --ask-become-pass or --become-pass-file, and run it again"


class Ssh:
    """One host. Dials at the first run, stays connected; not for two threads at once."""

    def __init__(self, target: SshTarget, options: SshOptions) -> None:
        self.target = str(target)
        self._to = target
        self._options = options
        self._password = options.become_password.at_host() if options.become_password else None
        self._hop: Hop | None = None
        self._chain: list[Transport] = []  # jump hosts first, the host itself last
        self._sessions: Sessions | None = None  # of the host itself
        self._proxies: list[Proxy] = []
        self._terminal = False  # sudo wants one (requiretty)
        self._argument = True  # False once a login shell has cut a script in its argument
        self._packed = True  # False once the host could not unpack one
        self._closed = False  # nothing is dialled, and no password or script sent, from then on
        self._beginning: Transport | None = None  # a handshake or login under way
        self._pipelining = True  # False once a login in one flight ended without an answer
        self._early = True  # False once a command that came with the login did not start
        self._first_line = ""  # such a command
        self._known = Known("", "")  # the key that the host showed last

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """See Transport.run."""
        begin = time.monotonic()
        try:
            delivery, sent, output = self._first_talk(script, stdin, timeout_s)
        except TooEarly:
            self._early = False
            delivery, sent, output = self._first_talk(script, stdin, timeout_s)
        while self._may_go_another_way(delivery, output):
            delivery = self._delivery(script, stdin)
            sent = (time.time(), time.monotonic())
            output = self._talk(*self._connected(), delivery, timeout_s)
        ended = time.monotonic()
        done = result(
            self.target, output.answer, output.code, ended - begin, late=output.late, not_begun=self._not_started
        )
        return replace(done, way=self._way(sent[0], sent[0] + ended - sent[1]))

    def _first_talk(self, script: str, stdin: bytes, timeout_s: float) -> tuple[Delivery, tuple[float, float], Output]:
        """How the script went, when, and what came of it. Raises TooEarly as `Sessions.started` does."""
        transport, sessions = self._connected(script if isinstance(script, Question) and not stdin else "")
        delivery = self._delivery(script, stdin)
        sent = sessions.sent or (time.time(), time.monotonic())
        return delivery, sent, self._talk(transport, sessions, delivery, timeout_s)

    def reconnect(self) -> None:
        """The next run dials again."""
        self._hang_up()

    def close(self) -> None:
        """For good: no run dials again. Also by another thread, where a deadline has passed in the middle of a run."""
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        """Of two threads, whoever comes first closes each."""
        self._sessions = None  # it holds the connection, and the run may last much longer
        if (beginning := self._beginning) is not None:
            beginning.close()
        with suppress(IndexError):
            while True:
                self._chain.pop().close()
        with suppress(IndexError):
            while True:
                self._proxies.pop().close()

    def _way(self, sent_at: float, answered_at: float) -> Way:
        user = self._hop.user if self._hop is not None else ""
        return Way(user, self._known.key, self._known.where, self._becomes, self._has_password, sent_at, answered_at)

    @property
    def _becomes(self) -> bool:
        user = self._hop.user if self._hop is not None else None
        return self._options.become == "always" or (self._options.become == "auto" and user != "root")

    @property
    def _has_password(self) -> bool:
        return self._password is not None

    def _delivery(self, script: str, stdin: bytes) -> Delivery:
        packed = self._packed and worth_packing(script, stdin)
        chosen = partial(deliver_packed, script) if packed else partial(deliver, script, stdin)
        asks = self._password is not None and not self._password.not_tried
        return chosen(become=self._becomes, password=asks, argument=self._argument, terminal=self._terminal)

    def _wants_terminal(self, output: Output) -> bool:
        """Once: the script did not begin, and no password was sent."""
        answer = output.answer
        return self._becomes and not self._terminal and not answer.began and wants_terminal(answer.stderr.noise)

    def _may_go_another_way(self, delivery: Delivery, output: Output) -> bool:
        """Whether nothing of the script ran because of how it came; it comes in another way from now on."""
        if self._wants_terminal(output):
            self._terminal = True
            return True
        if delivery.in_argument and output.code not in (None, 0) and not _began(output):
            self._argument = False  # it never began: csh cuts long words, some shells limit a line
            return True
        if delivery.packed and output.code == CANNOT_UNPACK and not output.answer.complete:
            self._packed = False  # its wrapper ended before it: without a mark of its end
            return True
        return False

    def _talk(self, transport: Transport, sessions: Sessions, delivery: Delivery, timeout_s: float) -> Output:
        channel = None
        self._go_on()
        try:
            channel = sessions.started(delivery.line, max(_REPLY_S, timeout_s), reads=not delivery.in_argument)
            feed = StdinScript(delivery, self._password)
            output = converse(channel, feed, timeout_s, lambda stderr: _end_sudo(sessions, stderr))
            self._note_password(output)
        except Refused as error:
            if transport.is_active():
                raise NotReached(
                    f"{self.target}: the host refuses to run a command ({error})",
                    remedy="check MaxSessions and ForceCommand in its sshd_config, and your authorized key's options",
                ) from error
            raise ssh_errors.lost(self.target, "before the script began", error) from error
        finally:
            if self._password is not None:
                self._password.answered(taken=None)
            if channel is not None:
                channel.close()
        if output.code == -1 and not output.answer.complete and not transport.is_active():
            raise ssh_errors.lost(self.target, "before the answer was complete")
        return output

    def _note_password(self, output: Output) -> None:
        """sudo may end without a second question, and a script before it is fed."""
        if self._password is None:
            return
        answer, taken = output.answer, True if _began(output) else None
        if taken is None and counted(not_started(self.target, -1, answer.stdout.noise, answer.stderr.noise)):
            taken = False
        self._password.answered(taken=taken)

    def _not_started(self, code: int, stdout: bytes | bytearray, stderr: bytes | bytearray) -> TransportError:
        error = not_started(self.target, code, stdout, stderr)
        password = self._password
        if password is not None and password.not_tried and (password.withheld or unanswered(error)):
            return PasswordRefused(
                f"{self.target}: sudo's password was not tried", evidence=password.not_tried, remedy=_THE_RIGHT_ONE
            )
        kind = PasswordRefused if self._has_password and counted(error) else NotReached
        return kind(error.problem, evidence=error.evidence, remedy=error.remedy)

    def _connected(self, question: str = "") -> tuple[Transport, Sessions]:
        """`question`: what will be asked first, which may be sent before the login is through."""
        if self._chain and self._sessions and self._chain[-1].is_active():
            return self._chain[-1], self._sessions
        self._hang_up()
        try:
            self._hop = resolve(self._to, self._options, self._lookup)
            self._first_line = self._line_of(question)
            transport = self._reach(self._hop, None, ())
            reader = "" if self._becomes else reader_line()
            self._sessions = Sessions(transport, several=self._options.several, reader=reader)
            self._go_on()
            return transport, self._sessions
        except BaseException:
            self._hang_up()
            raise

    def _line_of(self, question: str) -> str:
        """The command that is all of it; "" where something goes on its stdin."""
        if not (question and self._early):
            return ""
        delivery = self._delivery(question, b"")
        return delivery.line if delivery.in_argument else ""

    def _go_on(self) -> None:
        """Raises NotReached where `close` came meanwhile: nobody waits for an answer any more."""
        if self._closed:
            raise NotReached(
                f"{self.target}: the connection was closed",
                evidence="it was given up while something was still under way",
                remedy=Remedy(RepairAction.WAIT, "run it again, with more time (--deadline)"),
            )

    def _reach(self, hop: Hop, through: Transport | None, seen: tuple[str, ...], *, final: bool = True) -> Transport:
        """Connect to `hop`, through its jump hosts where it has some and we are not inside a chain already."""
        if str(hop) in seen or len(seen) >= _MAX_HOPS:
            raise TransportError(
                f"{self.target}: the jump hosts lead in a circle",
                evidence=" → ".join((*seen, str(hop))),
                remedy="correct ProxyJump in ~/.ssh/config, or --jump",
            )
        if through is None:
            for word in hop.jumps:
                bend = resolve(parse_target(word), self._options, self._lookup, jump=True)
                through = self._reach(bend, through, (*seen, str(hop)), final=False)
        transport = self._session(hop, through, final=final)
        self._chain.append(transport)
        return transport

    def _session(self, hop: Hop, through: Transport | None, *, final: bool) -> Transport:
        crowd, tries = crowd_at(",".join((*hop.jumps, f"{hop.host}:{hop.port}"))), 0
        with crowd.visit():
            for number in itertools.count():
                tries = max(tries, crowd.tries)
                with crowd.place() as drops:
                    self._go_on()
                    try:
                        return self._logged_in(hop, through, final=final)
                    except _Dropped as error:
                        self._go_on()
                        if error.pipelined:
                            self._pipelining = False
                            continue
                        if not error.may_pass or number + 1 >= tries:
                            raise ssh_errors.not_ssh(self.target, hop, error.cause, error.said) from error.cause
                        crowd.dropped(drops)
                time.sleep(pause_s(number))
        raise AssertionError("the loop has no end")

    def _logged_in(self, hop: Hop, through: Transport | None, *, final: bool) -> Transport:
        """Raises _Dropped where no session came about."""
        transport = None
        try:
            self._beginning = transport = self._transport(hop, through)
            self._go_on()
            transport.negotiate(_REPLY_S)
            self._check_host_key(transport, hop)
            self._go_on()
            transport.first_line = self._first_line if final else ""
            log_in(self.target, transport, hop, self._options.password if final else None, session=final)
            transport.set_keepalive(_KEEPALIVE_S)
            return transport
        except BaseException as error:
            if transport is not None:
                transport.close()
            if isinstance(error, paramiko.SSHException | EOFError | OSError):
                said, pipelined = (transport.said, transport.pipelined) if transport else ("", False)
                raise _Dropped(error, said, pipelined) from error
            raise
        finally:
            self._beginning = None

    def _transport(self, hop: Hop, through: Transport | None) -> Transport:
        link = self._socket(hop, through)
        transport = Transport(link)
        transport.pipelining = self._pipelining
        if isinstance(link, Link):
            link.settimeout(_LOOKS_UP_S)
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = _REPLY_S
        transport.clear_to_send_timeout = _REPLY_S  # new keys on the way
        options = transport.get_security_options()
        lines = lines_for(hop)
        types = key_types(hop)
        # A host has several keys: ask for one that is known here, as ssh does, so that the others raise no alarm.
        options.key_types = sorted(options.key_types, key=lambda name: known_hosts.algorithm_type(name) not in types)
        transport.certificate_first = bool(lines.authorities_for(hop.key_names))
        return transport

    def _socket(self, hop: Hop, through: Transport | None) -> socket.socket | paramiko.Channel:
        try:
            if through is not None:
                return through.open_channel(
                    "direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=hop.connect_timeout_s
                )
            if hop.proxy_command is not None:
                self._proxies.append(Proxy(hop.proxy_command))
                return self._proxies[-1].socket
            return dial(hop)
        except paramiko.ChannelException as error:
            raise NotReached(
                f"{self.target}: the jump host does not connect to {hop.host}:{hop.port}",
                evidence=str(error),
                remedy="check the name and port as seen from the jump host, and AllowTcpForwarding in its sshd_config",
            ) from error
        except OSError as error:
            raise ssh_errors.cannot_connect(self.target, hop, error) from error

    def _check_host_key(self, transport: Transport, hop: Hop) -> None:
        plain, certificate = transport.shown()
        key = HostKey(transport.get_remote_server_key().get_name(), plain)
        self._known = known(self.target, hop, Shown(key, certificate), accept_new=self._options.accept_new)

    def _lookup(self, typed: SshTarget) -> Mapping[str, object]:
        try:
            return looked_up(typed, self._options)
        except TransportError as error:
            raise ssh_errors.config_fault(self.target, error.evidence, error.remedy) from error


def _end_sudo(sessions: Sessions, stderr: bytes | bytearray) -> None:
    """Kill the sudo that refused the password, which is its user's to kill as long as it asks."""
    process = asking_process(stderr)
    if process is None:
        return
    # Where this cannot be (MaxSessions, a shell without kill), its input ends next, and it counts that as it likes.
    with suppress(*Refused):
        channel = sessions.started(f"kill -KILL {process}", _REPLY_S, reads=False)
        channel.status_event.wait(_REPLY_S)
        channel.close()


def _began(output: Output) -> bool:
    """By either stream's mark: where an rc file sends stdout elsewhere, the script runs all the same."""
    return output.answer.began or output.answer.stderr.began


class _Dropped(Exception):
    """The connection ended before a login was possible."""

    def __init__(self, cause: Exception, said: str, pipelined: bool) -> None:
        self.cause = cause
        self.said = said  # before, or in place of, the version
        self.pipelined = pipelined  # a login in one flight was under way: there is another way to try

    @property
    def may_pass(self) -> bool:
        """Closed before the version: what sshd does at random while more log in than MaxStartups allows. New ones say
        so; whoever says anything else is no sshd, or does not want us (PerSourcePenalties).
        """
        closed = isinstance(self.cause, EOFError | ConnectionResetError) or "banner" in str(self.cause)
        return closed and (not self.said or "MaxStartups" in self.said)
