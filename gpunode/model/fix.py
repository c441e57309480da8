"""Whether `gpunode check --fix` mends a finding, or a person does, and why."""

from __future__ import annotations

from enum import Enum

from gpunode.values import dataclass


class ByHand(str, Enum):
    """Why a finding is left to a person."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> ByHand:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    REBOOT = "reboot", "it takes a reboot"
    GPU_WORK = "gpu-work", "it ends what runs on the GPU"
    SERVICE = "service", "it restarts a service, and what that serves notices"
    CONTAINERS = "containers", "it stops containers, or nothing on the host restarts their engine"
    PACKAGES = "packages", "it changes packages: driver, toolkit, engine or kernel"
    HARDWARE = "hardware", "somebody looks at the hardware"
    LOG = "log", "a person reads the log that says what is wrong"
    WAIT = "wait", "it passes, or another program has to end first"
    DECISION = "decision", "a person decides"
    REFUSED = "refused", "setup refuses it on this host"
    NO_STEP = "no-step", "setup has no step for it"
    CAUSE = "cause", "what explains it comes first"


@dataclass(frozen=True)
class Fix:
    """What `check --fix` does about one finding."""

    safe: bool
    by_hand: ByHand | None = None  # None: it is safe
    why: str = ""  # the same in words, with what is known of this host
    setup: tuple[str, ...] = ()  # options of the setup whose plan has the steps: ("--only", "driver")
    steps: tuple[str, ...] = ()  # those steps of that plan: nothing else of it is done
