"""How the probe came to a host over SSH, as the machine that runs gpunode saw it."""

from __future__ import annotations

from gpunode.values import dataclass


@dataclass(frozen=True)
class ClockSkew:
    """How far a host's clock is from this machine's."""

    ahead_s: float  # the middle of what is possible; below 0 it is behind
    error_s: float  # how far from that it may be: half of what the way took, and half of the second that was read


@dataclass(frozen=True)
class Connection:
    """The login that the facts came over."""

    user: str
    host_key: str  # "ssh-ed25519 SHA256:..."
    known_in: str  # "/root/.ssh/known_hosts:12"
    becomes: bool  # sudo or doas was asked for root's rights
    may_ask: bool  # sudo could ask for a password: one was at hand
    skew: ClockSkew | None = None  # None: the host's clock is not known
