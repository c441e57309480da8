"""A host over SSH, with paramiko: one connection a host, one channel a script, keys only, host keys always checked."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.transport import known_hosts, ssh_errors
from gpunode.transport.answer import result
from gpunode.transport.base import Completed, NotReached, Way
from gpunode.transport.channel import Output, converse
from gpunode.transport.feed import StdinScript
from gpunode.transport.known_hosts import HostKey, Trust
from gpunode.transport.packed import CANNOT_UNPACK, deliver_packed, worth_packing
from gpunode.transport.refusals import not_started
from gpunode.transport.revoked_keys import revoked
from gpunode.transport.sessions import Refused, Sessions
from gpunode.transport.shell import Delivery, asking_process, deliver
from gpunode.transport.ssh_config import (
    DEFAULT_KEYS,
    Hop,
    SshOptions,
    SshTarget,
    parse_target,
    read_config,
    resolve,
)
from gpunode.transport.ssh_library import BoundedPackets, paramiko
from gpunode.transport.ssh_socket import Link, Proxy, dial

# Key exchange, login, and the reply to "open" and "exec": a busy host's sshd takes seconds, a starved controller more.
_REPLY_S = 60.0
_KEEPALIVE_S = 15
# How often the thread that reads looks up for keepalives; paramiko does so ten times a second, to notice that its
# socket was closed, which wakes a Link.
_LOOKS_UP_S = 1.0
_MAX_HOPS = 8
_RETRY_PAUSES_S = (0.5, 1.5)  # sshd drops connections at random while too many log in at once (MaxStartups)


class Ssh:
    """One host. Dials at the first run, stays connected; not for two threads at once."""

    def __init__(self, target: SshTarget, options: SshOptions) -> None:
        self.target = str(target)
        self._to = target
        self._options = options
        self._hop: Hop | None = None
        self._chain: list[paramiko.Transport] = []  # jump hosts first, the host itself last
        self._sessions: Sessions | None = None  # of the host itself
        self._proxies: list[Proxy] = []
        self._argument = True  # False once a login shell has cut a script in its argument
        self._packed = True  # False once the host could not unpack one
        self._host_key = ("", "")  # that the host showed last, and where it is known

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """See Transport.run."""
        begin = time.monotonic()
        transport, sessions = self._connected()
        delivery = self._delivery(script, stdin)
        sent = (time.time(), time.monotonic())
        output = self._talk(transport, sessions, delivery, timeout_s)
        while self._may_go_another_way(delivery, output):
            delivery = self._delivery(script, stdin)
            sent = (time.time(), time.monotonic())
            output = self._talk(transport, sessions, delivery, timeout_s)
        ended = time.monotonic()
        done = result(
            self.target, output.answer, output.code, ended - begin, late=output.late, not_begun=self._not_started
        )
        return replace(done, way=self._way(sent[0], sent[0] + ended - sent[1]))

    def reconnect(self) -> None:
        """The next run dials again."""
        self.close()

    def close(self) -> None:
        while self._chain:
            self._chain.pop().close()
        while self._proxies:
            self._proxies.pop().close()

    def _way(self, sent_at: float, answered_at: float) -> Way:
        user = self._hop.user if self._hop is not None else ""
        return Way(user, *self._host_key, self._becomes, self._has_password, sent_at, answered_at)

    @property
    def _becomes(self) -> bool:
        user = self._hop.user if self._hop is not None else None
        return self._options.become == "always" or (self._options.become == "auto" and user != "root")

    @property
    def _has_password(self) -> bool:
        return self._options.become_password is not None

    def _delivery(self, script: str, stdin: bytes) -> Delivery:
        become, password = self._becomes, self._has_password
        if self._packed and worth_packing(script, stdin):
            return deliver_packed(script, become=become, password=password, argument=self._argument)
        return deliver(script, stdin, become=become, password=password, argument=self._argument)

    def _may_go_another_way(self, delivery: Delivery, output: Output) -> bool:
        """Whether nothing of the script ran because of how it came; it comes in another way from now on."""
        if delivery.in_argument and output.code not in (None, 0) and not output.answer.began:
            self._argument = False  # it never began: csh cuts long words, some shells limit a line
            return True
        if delivery.packed and output.code == CANNOT_UNPACK and not output.answer.complete:
            self._packed = False  # its wrapper ended before it: without a mark of its end
            return True
        return False

    def _talk(self, transport: paramiko.Transport, sessions: Sessions, delivery: Delivery, timeout_s: float) -> Output:
        channel = None
        try:
            channel = sessions.started(delivery.line, max(_REPLY_S, timeout_s))
            feed = StdinScript(delivery, self._options.become_password)
            output = converse(channel, feed, timeout_s, lambda stderr: _end_sudo(sessions, stderr))
        except Refused as error:
            if transport.is_active():
                raise NotReached(
                    f"{self.target}: the host refuses to run a command ({error})",
                    remedy="check MaxSessions and ForceCommand in its sshd_config, and your authorized key's options",
                ) from error
            raise ssh_errors.lost(self.target, "before the script began", error) from error
        finally:
            if channel is not None:
                channel.close()
        if output.code == -1 and not output.answer.complete and not transport.is_active():
            raise ssh_errors.lost(self.target, "before the answer was complete")
        return output

    def _not_started(self, code: int, stdout: bytes | bytearray, stderr: bytes | bytearray) -> TransportError:
        error = not_started(self.target, code, stdout, stderr)
        return NotReached(error.problem, evidence=error.evidence, remedy=error.remedy)

    def _connected(self) -> tuple[paramiko.Transport, Sessions]:
        if self._chain and self._sessions and self._chain[-1].is_active():
            return self._chain[-1], self._sessions
        self.close()
        try:
            self._hop = resolve(self._to, self._options, self._lookup)
            transport = self._reach(self._hop, None, ())
            self._sessions = Sessions(transport)
            return transport, self._sessions
        except BaseException:
            self.close()
            raise

    def _reach(
        self, hop: Hop, through: paramiko.Transport | None, seen: tuple[str, ...], *, final: bool = True
    ) -> paramiko.Transport:
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
                through = self._reach(bend, through, (*seen, str(hop)))
        transport = self._session(hop, through)
        self._chain.append(transport)
        return transport

    def _session(self, hop: Hop, through: paramiko.Transport | None) -> paramiko.Transport:
        for pause in (*_RETRY_PAUSES_S, None):
            transport = None
            try:
                transport = self._transport(hop, through)
                transport.start_client(timeout=_REPLY_S)
                self._check_host_key(transport, hop)
                self._login(transport, hop)
                transport.set_keepalive(_KEEPALIVE_S)
                return transport
            except (paramiko.SSHException, EOFError, OSError) as error:
                if transport is not None:
                    transport.close()
                if pause is None or not _may_pass(error):
                    raise ssh_errors.not_ssh(self.target, hop, error) from error
            except BaseException:
                if transport is not None:
                    transport.close()
                raise
            time.sleep(pause)
        raise AssertionError("the last round returns or raises")

    def _transport(self, hop: Hop, through: paramiko.Transport | None) -> paramiko.Transport:
        link = self._socket(hop, through)
        transport = paramiko.Transport(link)
        if isinstance(link, Link):
            link.settimeout(_LOOKS_UP_S)
        transport.packetizer = BoundedPackets(link)  # type: ignore[arg-type]  # a Channel will do, as for Transport
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = _REPLY_S
        transport.clear_to_send_timeout = _REPLY_S  # new keys on the way
        options = transport.get_security_options()
        known = known_hosts.load((*hop.user_known_hosts, *hop.system_known_hosts))
        types = {k.key.type for k in known.keys(known_hosts.host_name(hop.key_name, hop.port))}
        # A host has several keys: ask for one that is known here, as ssh does, so that the others raise no alarm.
        options.key_types = sorted(options.key_types, key=lambda name: known_hosts.algorithm_type(name) not in types)
        return transport

    def _socket(self, hop: Hop, through: paramiko.Transport | None) -> socket.socket | paramiko.Channel:
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

    def _check_host_key(self, transport: paramiko.Transport, hop: Hop) -> None:
        remote = transport.get_remote_server_key()
        key = HostKey(remote.get_name(), remote.asbytes())
        if hop.revoked_keys is not None and (line := revoked(hop.revoked_keys, key)):
            raise ssh_errors.revoked_key(self.target, hop, key, (line,))
        name = known_hosts.host_name(hop.key_name, hop.port)
        verdict = known_hosts.load((*hop.user_known_hosts, *hop.system_known_hosts)).verdict(name, key)
        if verdict.trust is Trust.UNKNOWN and self._options.accept_new and hop.user_known_hosts:
            verdict = known_hosts.accept_new(hop.user_known_hosts[0], name, key)
        if verdict.trust is Trust.REVOKED:
            raise ssh_errors.revoked_key(self.target, hop, key, verdict.known)
        if verdict.trust is Trust.CHANGED:
            raise ssh_errors.changed_key(self.target, hop, key, verdict.known)
        if verdict.trust is Trust.UNKNOWN:
            raise ssh_errors.unknown_key(self.target, hop, key, verdict)
        known_in = next((known.where for known in verdict.known if known.key.blob == key.blob), "")
        self._host_key = (f"{key.type} {key.fingerprint}", known_in or f"{hop.user_known_hosts[0]}, added by this run")

    def _login(self, transport: paramiko.Transport, hop: Hop) -> None:
        """Public keys one after the other, as ssh does. Raises TransportError with all that was tried."""
        tried: list[str] = []
        skipped: list[str] = []
        why = "the server accepted none of them"
        for label, key in _keys(hop, skipped):
            tried.append(label)
            try:
                if not transport.auth_publickey(hop.user, key):
                    return
                why = "the key was accepted, but the server asks for a second proof as well"
                break
            except paramiko.BadAuthenticationType as error:
                allowed = ", ".join(filter(None, error.allowed_types))
                why = f"the server takes only {allowed or 'methods it does not name'}"
                break
            except paramiko.AuthenticationException:
                if transport.is_active():
                    continue
                why = "then the server closed the connection (too many keys: MaxAuthTries?)"
                break
        raise ssh_errors.login_refused(self.target, hop, tried, skipped, why)

    def _lookup(self, alias: str) -> Mapping[str, object]:
        try:
            # lookup() works on shared state, so one thread at a time.
            with _config_lock:
                return _config(tuple(self._options.config_files)).lookup(alias)
        except (paramiko.ConfigParseError, paramiko.CouldNotCanonicalize, ValueError) as error:
            raise ssh_errors.config_fault(self.target, error) from error


_config_lock = threading.Lock()


@cache
def _config(files: tuple[Path, ...]) -> paramiko.SSHConfig:
    return paramiko.SSHConfig.from_text(read_config(files))


def _end_sudo(sessions: Sessions, stderr: bytes | bytearray) -> None:
    """Kill the sudo that refused the password, which is its user's to kill as long as it asks."""
    process = asking_process(stderr)
    if process is None:
        return
    # Where this cannot be (MaxSessions, a shell without kill), its input ends next, and it counts that as it likes.
    with suppress(*Refused):
        channel = sessions.started(f"kill -KILL {process}", _REPLY_S)
        channel.status_event.wait(_REPLY_S)
        channel.close()


def _may_pass(error: Exception) -> bool:
    """Closed before the banner: what sshd does at random while more logins are under way than MaxStartups allows."""
    return isinstance(error, EOFError | ConnectionResetError) or "banner" in str(error)


def _keys(hop: Hop, skipped: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    """(name for messages, key) in the order ssh tries them: files first, each by the agent where it holds it."""
    agent = {key.asbytes(): key for key in _agent_keys()} if hop.agent else {}
    for path in hop.identities:
        public = known_hosts.public_key_blob(path.with_name(path.name + ".pub"))
        if public is not None and public in agent:
            yield f"{path} (agent)", agent.pop(public)
            continue
        if not path.exists():
            if path.name not in DEFAULT_KEYS:
                skipped.append(f"{path} does not exist")
            continue
        try:
            yield str(path), _load(path)
        except TransportError as error:
            skipped.append(error.problem)
    if not hop.identities_only:
        for key in agent.values():
            yield f"agent key {key.get_name()} {HostKey(key.get_name(), key.asbytes()).fingerprint}", key


def _agent_keys() -> tuple[paramiko.PKey, ...]:
    try:
        return tuple(paramiko.Agent().get_keys())
    except (paramiko.SSHException, OSError):
        return ()  # a dead SSH_AUTH_SOCK: ssh goes on with the files, too


@cache
def _load(path: Path) -> paramiko.PKey:
    """A private key, read once for all hosts. Raises TransportError with the reason as its sentence."""
    try:
        return paramiko.PKey.from_path(path)
    except (TypeError, paramiko.PasswordRequiredException) as error:
        raise TransportError(f"{path} has a passphrase, and the agent does not hold it (ssh-add {path})") from error
    except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
        raise TransportError(f"{path} cannot be read as a private key ({error})") from error
