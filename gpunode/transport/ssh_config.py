"""Who to log in to, as whom and through what: the target, the flags and ~/.ssh/config made into one Hop."""

from __future__ import annotations

import getpass
import glob
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpunode.errors import TransportError, UsageError
from gpunode.regex import regex
from gpunode.transport.known_hosts import host_name
from gpunode.transport.sudo_password import SudoPassword
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.transport.login import LoginPassword

DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")  # in ~/.ssh, the order ssh(1) tries them
_INCLUDE_DEPTH = 16  # ssh_config(5) stops there too


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
    r"(?:(?P<user>[^\s,]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)))"
    r"(?::(?P<port>\d{1,5}))?"
)


def parse_target(text: str) -> SshTarget:
    """host, user@host, user@host:port, [v6]:port. Raises UsageError that names what is wrong with it."""
    found = _TARGET.fullmatch(text)
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
    agent: bool
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


Lookup = Callable[[str], Mapping[str, object]]  # alias -> settings, keys in lower case, values str or list of str


def resolve(target: SshTarget, options: SshOptions, lookup: Lookup, *, jump: bool = False) -> Hop:
    """What was typed wins over the flags, they over the config. --user, --port and --jump are not for jump hosts.

    Raises TransportError for a Port or ConnectTimeout in the config that is no number.
    """
    found = lookup(target.host)
    flags = SshOptions() if jump else options
    identities, listed_only = _identities(found, options)
    command = found.get("proxycommand")
    host = _word(found, "hostname") or target.host
    port = target.port or flags.port or int(_number(found, "port", 22))
    return Hop(
        host=host,
        port=port,
        user=target.user or flags.user or _word(found, "user") or getpass.getuser(),
        key_names=_key_names(_word(found, "hostkeyalias"), host, port),
        identities=identities,
        certificates=_certificates(found, options),
        identities_only=listed_only,
        agent=options.agent and _word(found, "identityagent") != "none",
        jumps=_jumps(flags.jump or _word(found, "proxyjump")),
        proxy_command=str(command) if command and not flags.jump else None,
        user_known_hosts=_known_hosts(found, "userknownhostsfile", options, ("known_hosts", "known_hosts2")),
        system_known_hosts=()
        if options.known_hosts is not None
        else tuple(Path(w) for w in (_word(found, "globalknownhostsfile") or "/etc/ssh/ssh_known_hosts").split()),
        connect_timeout_s=options.connect_timeout_s or _number(found, "connecttimeout", 10),
        revoked_keys=_revoked_keys(_word(found, "revokedhostkeys"), options),
        ca_algorithms=_word(found, "casignaturealgorithms"),
    )


def _key_names(alias: str, host: str, port: int) -> tuple[str, ...]:
    """An alias has no port. An authority may vouch for a host whatever its port is, as in ssh."""
    if alias:
        return (alias.lower(),)
    return tuple(dict.fromkeys((host_name(host, port), host.lower())))


def _identities(found: Mapping[str, object], options: SshOptions) -> tuple[tuple[Path, ...], bool]:
    """(key files in the order to try, whether only they may be tried)."""
    value = found.get("identityfile", ())
    words: Sequence[object] = value if isinstance(value, list) else ()
    listed = tuple(_expand(str(w), options) for w in words if str(w).lower() != "none")
    only = _word(found, "identitiesonly").lower() == "yes"
    default = tuple(options.directory / name for name in DEFAULT_KEYS)
    files = options.identities + (listed if words else () if options.identities else default)
    return tuple(dict.fromkeys(files)), only  # a key that is refused is refused the second time as well


def _certificates(found: Mapping[str, object], options: SshOptions) -> tuple[Path, ...]:
    """paramiko's parser keeps the first CertificateFile."""
    word = _word(found, "certificatefile")
    return () if word.lower() in ("", "none") else (_expand(word, options),)


def _known_hosts(
    found: Mapping[str, object], key: str, options: SshOptions, default: tuple[str, ...]
) -> tuple[Path, ...]:
    if options.known_hosts is not None:
        return options.known_hosts
    words = _word(found, key).split()
    if words:
        return tuple(_expand(w, options) for w in words if w.lower() != "none")
    return tuple(options.directory / name for name in default)


def _revoked_keys(word: str, options: SshOptions) -> Path | None:
    """A token of ssh_config(5) that is not known here leaves a path that does not exist: every host is refused."""
    return _expand(word, options) if word.lower() not in ("", "none") else None


def _expand(word: str, options: SshOptions) -> Path:
    word = word.strip('"')
    if not word.startswith("~/") and "%d" not in word:
        return Path(word)
    home = options.directory.parent
    return home / word[2:] if word.startswith("~/") else Path(word.replace("%d", str(home)))


def _jumps(value: str) -> tuple[str, ...]:
    return () if value.lower() in ("", "none") else tuple(part.strip() for part in value.split(",") if part.strip())


def _word(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _number(found: Mapping[str, object], key: str, default: float) -> float:
    word = _word(found, key)
    if not word:
        return default
    if word.isdigit() and 0 < int(word) < 65536:
        return int(word)
    raise TransportError(
        f"ssh config: {key} {word!r} is not a number between 1 and 65535",
        remedy="correct it in ~/.ssh/config; `ssh -G HOST` shows what ssh itself reads",
    )


def read_config(files: Sequence[Path]) -> str:
    """The config files as one text, Include directives followed (paramiko does not support them).

    Missing files are passed over. Raises TransportError for one that cannot be read.
    """
    return "\n".join("Host *\n" + _read(path, path.parent, 0) for path in files if path.is_file())


def _read(path: Path, directory: Path, depth: int) -> str:
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise TransportError(
            f"cannot read {path}", evidence=str(error), remedy="make it readable for you, as ssh needs it too"
        ) from error
    lines, block = [], "Host *"
    for line in text.split("\n"):  # no other end of a line, as for ssh
        word, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if word.lower() in ("host", "match"):
            block = line
        if word.lower() == "include" and depth < _INCLUDE_DEPTH:
            lines += [_read(Path(p), directory, depth + 1) for p in _included(rest.split(), directory)]
            lines.append(block)  # an included file's own Host lines end with it
        else:
            lines.append(line)
    return "\n".join(lines)


def _included(words: Sequence[str], directory: Path) -> list[str]:
    """Relative names are next to the first file (~/.ssh, /etc/ssh); a pattern may match nothing."""
    patterns = (os.path.expanduser(word.strip('"')) for word in words)
    return [p for pattern in patterns for p in sorted(glob.glob(os.path.join(directory, pattern))) if os.path.isfile(p)]


class MatchExec:
    """Stands in for invoke inside paramiko: `Match exec` needs one exit status, and may not read our stdin."""

    def __init__(self, ok: bool) -> None:
        self.ok = ok

    @classmethod
    def run(cls, command: str, **_: object) -> MatchExec:
        null = subprocess.DEVNULL
        done = subprocess.run(("sh", "-c", command), stdin=null, stdout=null, stderr=null, check=False)
        return cls(done.returncode == 0)
