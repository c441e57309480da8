"""What ~/.ssh/config and /etc/ssh/ssh_config say of one host, read once for all hosts of a run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from gpunode.transport import ssh_errors
from gpunode.transport.ssh_config import SshOptions, SshTarget
from gpunode.transport.ssh_config_text import read_config
from gpunode.transport.ssh_library import Config, paramiko


def looked_up(typed: SshTarget, options: SshOptions) -> Mapping[str, object]:
    """What the config says of a host, after the user and port that were typed. Raises TransportError."""
    try:
        # lookup() works on shared state, so one thread at a time.
        with _config_lock:
            return _config(tuple(options.config_files), typed.user, typed.port).lookup(typed.host)
    except (paramiko.ConfigParseError, ValueError) as error:
        raise ssh_errors.config_fault("ssh", error) from error


def same_keys_for_all(options: SshOptions) -> bool:
    """Whether the config names no key, and hides none behind a condition, so that each host is offered the same.

    Raises TransportError.
    """
    text = _config_text(tuple(options.config_files)).lower()
    return not any(word in text for word in ("identit", "certificatefile", "proxyjump"))


_config_lock = threading.Lock()


@lru_cache(maxsize=64)  # most runs have one user and port for all
def _config(files: tuple[Path, ...], user: str | None, port: int | None) -> Config:
    """What comes first counts, so what was typed does: for %r, %p and `Match user` as well."""
    typed = (f"User {user}\n" if user else "") + (f"Port {port}\n" if port else "")
    return Config.from_text(f"Host *\n{typed}{_config_text(files)}")


@cache
def _config_text(files: tuple[Path, ...]) -> str:
    return read_config(files)
