"""What a person wants, parsed once from what they typed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from gpunode.errors import UsageError


@dataclass(frozen=True)
class DriverRequest:
    """auto | none | a branch (580) | an exact version (580.178.04). At most one of branch and exact is set."""

    kind: str  # "auto" | "none" | "branch" | "exact"
    branch: int | None = None
    exact: str | None = None

    @classmethod
    def parse(cls, text: str) -> DriverRequest:
        """Raises UsageError naming the four forms."""
        word = text.strip().lower()
        if word in ("auto", "none"):
            return cls(word)
        if re.fullmatch(r"\d{3}", word):
            return cls("branch", branch=int(word))
        if re.fullmatch(r"\d{3}(\.\d{2,3}){1,2}", word):
            return cls("exact", branch=int(word[:3]), exact=word)
        raise UsageError(
            f"--driver {text!r} is not a driver",
            evidence="the forms are: auto, none, a branch such as 580, a version such as 580.178.04",
            remedy="choose one of the four forms; gpunode catalog branches lists the branches",
        )

    def __str__(self) -> str:
        return self.exact or (str(self.branch) if self.branch else self.kind)


class Flavour(str, Enum):
    AUTO = "auto"
    OPEN = "open"
    PROPRIETARY = "proprietary"


class DriverSource(str, Enum):
    AUTO = "auto"
    CUDA = "cuda"  # NVIDIA's CUDA repository
    DISTRO = "distro"  # the distribution's own archive
    LOCAL = "local"


class RebootPolicy(str, Enum):
    NEVER = "never"  # the plan ends with the remedy
    IF_NEEDED = "if-needed"


RUNTIMES = ("docker", "containerd")
PARTS = ("driver", "toolkit", "runtime", "kubernetes")


@dataclass(frozen=True)
class RuntimeSpec:
    """How one engine shall run: which handler is added and whether it becomes the default."""

    default: bool = True  # nvidia becomes the default runtime
    cdi: bool = False  # CDI enabled in the engine
    handler: str = "nvidia"
    path: str = "/usr/bin/nvidia-container-runtime"


@dataclass(frozen=True)
class ToolkitRequest:
    """auto | none | an exact version (1.20.0)."""

    kind: str = "auto"
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> ToolkitRequest:
        word = text.strip().lower()
        if word in ("auto", "none"):
            return cls(word)
        if re.fullmatch(r"\d+\.\d+\.\d+", word):
            return cls("exact", word)
        raise UsageError(
            f"--toolkit {text!r} is not a toolkit version",
            evidence="the forms are: auto, none, a version such as 1.20.0",
            remedy="choose one of the three forms",
        )


@dataclass(frozen=True)
class Expectation:
    """What a check may hold the host to."""

    gpus: int | None = None  # how many cards must be there


@dataclass(frozen=True)
class Spec:
    """Everything that is wanted of a host. Whole, immutable, and the same for every host of a fleet."""

    driver: DriverRequest = DriverRequest("auto")
    flavour: Flavour = Flavour.AUTO
    driver_source: DriverSource = DriverSource.AUTO
    toolkit: ToolkitRequest = ToolkitRequest()
    toolkit_channel: str = "stable"  # "stable" | "experimental"
    runtimes: tuple[str, ...] | None = None  # None: every engine found (auto); (): none
    runtime: RuntimeSpec = RuntimeSpec()
    only: tuple[str, ...] = PARTS
    reboot: RebootPolicy = RebootPolicy.NEVER
    hold: bool = True
    mirror: str | None = None  # https URL that stands for NVIDIA's repositories
    trust_keys: tuple[str, ...] = field(default=())  # full fingerprints, 40 upper-case hex digits
    proxy: str | None = None  # for the package manager; may carry a password, so never printed
    allow_no_gpu: bool = False
    allow_container_restart: bool = False
    expect: Expectation = Expectation()


def parse_fingerprint(text: str) -> str:
    """40 upper-case hex digits; spaces and case are forgiven, short key ids are not."""
    digits = re.sub(r"[\s:]", "", text).upper().removeprefix("0X")
    if re.fullmatch(r"[0-9A-F]{40}", digits):
        return digits
    raise UsageError(
        f"--trust-key {text!r} is not a full fingerprint",
        evidence=f"it has {len(digits)} characters; a full one has 40 hex digits, and short key ids can be forged",
        remedy="gpg --show-keys --with-fingerprint FILE prints the full one",
    )


def parse_runtimes(text: str) -> tuple[str, ...] | None:
    """'auto' -> None, 'none' -> (), 'docker,containerd' -> both; raises UsageError for anything else."""
    word = text.strip().lower()
    if word == "auto":
        return None
    if word == "none":
        return ()
    names = tuple(n.strip() for n in word.split(",") if n.strip())
    unknown = [n for n in names if n not in RUNTIMES]
    if unknown or not names:
        raise UsageError(
            f"--runtime {text!r}: {', '.join(unknown) or 'nothing'} is not a container runtime gpunode configures",
            evidence=f"it configures {', '.join(RUNTIMES)}",
            remedy="name one or more of them with commas, or auto, or none",
        )
    return names


def parse_only(text: str) -> tuple[str, ...]:
    """'driver,toolkit' -> parts in the order gpunode works; raises UsageError for anything else."""
    names = {n.strip().lower() for n in text.split(",") if n.strip()}
    unknown = sorted(names - set(PARTS))
    if unknown or not names:
        raise UsageError(
            f"--only {text!r}: {', '.join(unknown) or 'nothing'} is not a part of setup",
            evidence=f"the parts are {', '.join(PARTS)}",
            remedy="name one or more of them with commas",
        )
    return tuple(p for p in PARTS if p in names)
