"""Who to log in to, as whom and through what: the target, the flags and ~/.ssh/config made into one Hop."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpunode.errors import TransportError, UsageError
from gpunode.regex import regex
from gpunode.transport.known_hosts import host_name
from gpunode.transport.ssh_config_words import words
from gpunode.transport.sudo_password import SudoPassword
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.transport.login import LoginPassword

_NO_USER = regex(r"""^-|['`";&<>|(){}\x00-\x1f\x7f]|\s-|\\$""")
_NUMBER = regex(r"[0-9]{1,5}")
_TIME = regex(r"([0-9]{1,6})([smhdwSMHDW]?)")
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BARE_VARIABLE = regex(r"\$[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")  # in ~/.ssh, the order ssh(1) tries them


@dataclass(frozen=True)
class SshTarget:
    """A host as the user names it. user and port None: from the flags, ~/.ssh/config or the defaults."""

    host: str  # name, alias in ~/.ssh/config, or address (IPv6 without brackets)
    user: str | None = None
    port: int | None = None
    name: str = ""  # what an inventory calls it; "": it has no name but these

    def __str__(self) -> str:
        if self.name:
            return self.name
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user + '@' if self.user else ''}{host}{f':{self.port}' if self.port else ''}"


_TARGET = regex(
    r"(?:(?P<user>(?!\w+://)[^\s,]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)))"
    r"(?::(?P<port>\d{1,5}))?"
)


def parse_target(text: str) -> SshTarget:
    """host, user@host, user@host:port, [v6]:port, or as a URI. Raises UsageError that names what is wrong with it."""
    found = _TARGET.fullmatch(_without_scheme(text))
    if found is None:
        bare_v6 = text.count(":") > 1 and "[" not in text
        raise UsageError(
            f"{text!r} is not a host",
            evidence="an IPv6 address stands in brackets"
            if bare_v6
            else "the forms are host, user@host:port, [v6]:port",
            remedy=f"write [{text}]" if bare_v6 else "check the spelling",
        )
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 65536:
        raise UsageError(f"{text!r}: port {port} does not exist", remedy="ports go from 1 to 65535")
    return SshTarget(found["v6"] or found["host"], found["user"], port)


def _without_scheme(text: str) -> str:
    """ssh(1) takes ssh://user@host:port as well, and a slash at its end."""
    rest = text.removeprefix("ssh://")
    return text if rest == text else rest.removesuffix("/")


@cache
def _directory(home: Path | None, users: str | None) -> Path:
    """`users`: where HOME says that the user's is, which Path.home() goes by. It is asked six times for each host."""
    return (home or Path.home()) / ".ssh"


@dataclass(frozen=True)
class SshOptions:
    """The SSH flags, the same for every host of a run."""

    user: str | None = None
    port: int | None = None
    identities: tuple[Path, ...] = ()
    jump: str | None = None  # "user@bastion:22", or several with commas, nearest first
    accept_new: bool = False  # --host-key accept-new: trust hosts never seen before; never a changed key
    connect_timeout_s: float | None = None  # None: ConnectTimeout from the config, else 10
    password: LoginPassword | None = None  # for hosts that take one; never for jump hosts
    become_password: SudoPassword | None = None
    become: Literal["auto", "always", "never"] = "auto"  # auto: sudo where the login is not root's
    several: bool = False  # scripts will follow the first, as those of a setup do (sessions.py)
    agent: bool = True
    home: Path | None = None  # whose ~/.ssh; None: the user's
    config: tuple[Path, ...] | None = None  # None: ~/.ssh/config and /etc/ssh/ssh_config
    known_hosts: tuple[Path, ...] | None = None  # None: as configured

    @property
    def directory(self) -> Path:
        return _directory(self.home, os.environ.get("HOME"))

    @property
    def config_files(self) -> tuple[Path, ...]:
        return self.config if self.config is not None else (self.directory / "config", Path("/etc/ssh/ssh_config"))


@dataclass(frozen=True)
class Hop:
    """One SSH connection, everything decided."""

    host: str  # what is dialled
    port: int
    user: str
    key_names: tuple[
        str, ...
    ]  # under which known_hosts knows it: HostKeyAlias, or the host with its port, then without
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]  # CertificateFile; none: next to each key
    identities_only: bool  # the agent may sign for these keys and no others
    agent: Path | None  # the socket of the one that is asked
    jumps: tuple[str, ...]  # nearest first
    proxy_command: str | None
    user_known_hosts: tuple[Path, ...]
    system_known_hosts: tuple[Path, ...]
    connect_timeout_s: float
    revoked_keys: Path | None = None  # RevokedHostKeys: keys that no host may show
    ca_algorithms: str = ""  # CASignatureAlgorithms, as written

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}"


# Host, and the user and port that were typed -> settings, keys in lower case, values str or list of str.
Lookup = Callable[[SshTarget], Mapping[str, object]]


def resolve(target: SshTarget, options: SshOptions, lookup: Lookup, *, jump: bool = False) -> Hop:
    """What was typed wins over the flags, they over the config. --user, --port and --jump are not for jump hosts.

    Raises TransportError for a user that no shell should see, and a Port or ConnectTimeout that is no number.
    """
    flags = SshOptions() if jump else options
    typed = SshTarget(target.host, _user(target.user or flags.user), target.port or flags.port)
    found = lookup(typed)
    identities, listed_only = _identities(found, options)
    host = _word(found, "hostname") or target.host
    port = typed.port or _port(_word(found, "port"))
    jumps, command = (flags.jump, "") if flags.jump else _way(found)
    return Hop(
        host=host,
        port=port,
        user=typed.user or _word(found, "user") or getpass.getuser(),
        key_names=_key_names(_word(found, "hostkeyalias"), host, port),
        identities=identities,
        certificates=_certificates(found, options),
        identities_only=listed_only,
        agent=_agent(_word(found, "identityagent"), options),
        jumps=_jumps(jumps),
        proxy_command=command or None,
        user_known_hosts=_known_hosts(found, "userknownhostsfile", options, ("known_hosts", "known_hosts2")),
        system_known_hosts=_system_known_hosts(found, options),
        connect_timeout_s=options.connect_timeout_s or _seconds(_word(found, "connecttimeout")) or 10,
        revoked_keys=_revoked_keys(_word(found, "revokedhostkeys"), options),
        ca_algorithms=_word(found, "casignaturealgorithms"),
    )


def _user(name: str | None) -> str | None:
    """It may come from an inventory that somebody else writes, and stands in ProxyCommand and Match exec as %r."""
    if name and _NO_USER.search(name):
        raise TransportError(
            f"{name[:40]!r} is not taken as the name of a user",
            evidence="a shell would read it as more than a name; ssh refuses it too (valid_ruser in its ssh.c)",
            remedy="check the user in --user, --ssh or the inventory; User in ~/.ssh/config may have such a name",
        )
    return name


def _key_names(alias: str, host: str, port: int) -> tuple[str, ...]:
    """An alias has no port. An authority may vouch for a host whatever its port is, as in ssh."""
    if alias:
        return (alias.lower(),)
    return tuple(dict.fromkeys((host_name(host, port), host.lower())))


def _identities(found: Mapping[str, object], options: SshOptions) -> tuple[tuple[Path, ...], bool]:
    """(key files in the order to try, whether only they may be tried)."""
    value = found.get("identityfile", ())
    named: Sequence[object] = value if isinstance(value, list) else ()
    listed = tuple(_expand(str(name), options) for name in named if str(name).lower() != "none")
    only = _word(found, "identitiesonly").lower() in ("yes", "true")
    default = tuple(options.directory / name for name in DEFAULT_KEYS)
    files = options.identities + (listed if named else () if options.identities else default)
    return tuple(dict.fromkeys(files)), only  # a key that is refused is refused the second time as well


def _agent(word: str, options: SshOptions) -> Path | None:
    """IdentityAgent: a socket, none, or the variable that names it ($NAME, or SSH_AUTH_SOCK as without it)."""
    if not options.agent or word.lower() == "none":
        return None
    if word and word != "SSH_AUTH_SOCK" and not _BARE_VARIABLE.fullmatch(word):
        return _expand(word, options)
    named = os.environ.get(word.removeprefix("$") or "SSH_AUTH_SOCK", "")
    return Path(named) if named else None


def _certificates(found: Mapping[str, object], options: SshOptions) -> tuple[Path, ...]:
    """paramiko's parser keeps the first CertificateFile."""
    word = _word(found, "certificatefile")
    return () if word.lower() in ("", "none") else (_expand(word, options),)


def _known_hosts(
    found: Mapping[str, object], key: str, options: SshOptions, default: tuple[str, ...]
) -> tuple[Path, ...]:
    if options.known_hosts is not None:
        return options.known_hosts
    if listed := words(_word(found, key)):
        return tuple(_expand(word, options) for word in listed if word.lower() != "none")
    return tuple(options.directory / name for name in default)


def _system_known_hosts(found: Mapping[str, object], options: SshOptions) -> tuple[Path, ...]:
    if options.known_hosts is not None:
        return ()
    listed = words(_word(found, "globalknownhostsfile")) or _SYSTEM_KNOWN_HOSTS
    return tuple(Path(word) for word in listed if word.lower() != "none")


def _revoked_keys(word: str, options: SshOptions) -> Path | None:
    """A token of ssh_config(5) that is not known here leaves a path that does not exist: every host is refused."""
    return _expand(word, options) if word.lower() not in ("", "none") else None


def _expand(word: str, options: SshOptions) -> Path:
    """~, %d and ${NAME} of a file's name. A variable that is not set stays, as a file that is not there."""
    home = str(options.directory.parent)
    word = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), word)
    if word.startswith("~/"):
        return Path(home, word[2:])
    return Path(os.path.expanduser(word).replace("%d", home))


def _way(found: Mapping[str, object]) -> tuple[str, str]:
    """(ProxyJump, ProxyCommand): whichever the config says first, though it be none; paramiko keeps that order."""
    first = next((key for key in found if key in ("proxyjump", "proxycommand")), "")
    return (_word(found, first), "") if first == "proxyjump" else ("", _word(found, first))


def _jumps(value: str) -> tuple[str, ...]:
    return () if value.lower() in ("", "none") else tuple(part.strip() for part in value.split(",") if part.strip())


def _word(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _port(word: str) -> int:
    if not word:
        return 22
    if _NUMBER.fullmatch(word) and 0 < int(word) < 65536:
        return int(word)
    raise _no_number("port", word, "a number between 1 and 65535")


def _seconds(word: str) -> float:
    """A time as ssh has it, `30`, `90s`, `1m30s`. 0: none is set."""
    if word.lower() in ("", "none"):
        return 0
    parts = _TIME.findall(word)
    if parts and "".join(number + unit for number, unit in parts) == word:
        return float(sum(int(number) * _UNIT_S[unit.lower()] for number, unit in parts))
    raise _no_number("connecttimeout", word, "a time in seconds, or as 1m30s")


def _no_number(keyword: str, word: str, want: str) -> TransportError:
    return TransportError(
        f"ssh config: {keyword} {word[:40]!r} is not {want}",
        remedy="correct it in ~/.ssh/config; `ssh -G HOST` shows what ssh itself reads",
    )
