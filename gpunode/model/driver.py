"""The driver that a plan gives its host, as data: what was chosen and why, what was rejected, how sure it is."""

from __future__ import annotations

from typing import Literal

from gpunode.values import dataclass

ModuleFlavour = Literal["open", "proprietary"]
# NVIDIA's CUDA repository, the distribution's archive, the repository at --mirror; "none": no package provides it.
DriverOrigin = Literal["cuda", "distro", "local", "none"]
BranchKind = Literal["production", "lts", "feature", "legacy", "unknown"]
BranchStatus = Literal["supported", "ended", "dead"]
# How sure a row of the catalog is: a named source says it, it follows from one, or it was recalled and not looked up.
Grade = Literal["documented", "inferred", "unverified"]


@dataclass(frozen=True)
class Alternative:
    """What was considered and rejected: a branch, a flavour or a source; the other two are None."""

    title: str  # "LTS branch", "proprietary modules", "NVIDIA's repository for Debian 12"
    reason: str  # why it was rejected, or what is known of it; "" where nothing speaks against it
    option: str = ""  # the option that chooses it, "--driver 580"; "" where this host cannot have it
    branch: int | None = None
    branch_kind: BranchKind | None = None
    end_of_support: str | None = None  # of the branch: month, "2028-06"; None: not published
    flavour: ModuleFlavour | None = None
    source: DriverOrigin | None = None


@dataclass(frozen=True)
class Confidence:
    """How sure the catalog is of a row that decided."""

    about: str  # "Debian 12", "branch 595", "Ada"
    grade: Grade
    checked: str  # the day on which somebody looked, "2026-11-21"


@dataclass(frozen=True)
class ForeignDriver:
    """A driver that neither a package manager nor gpunode owns."""

    summary: str  # "the driver was installed from a .run file"
    evidence: str
    hand_over: str  # the manual step after which gpunode may take it over

    @property
    def sentence(self) -> str:
        return f"{self.summary} ({self.evidence}); to hand it over: {self.hand_over}"


@dataclass(frozen=True)
class DriverChoice:
    """One driver for all GPUs of a host."""

    branch: int
    version: str | None  # exact: the one asked for, or on the host; None: the newest point release of the branch
    flavour: ModuleFlavour
    reasons: tuple[str, ...]
    branch_kind: BranchKind = "unknown"
    branch_status: BranchStatus = "supported"
    end_of_support: str | None = None  # month, "2027-03"; None: not published, or it never comes (rolling)
    newest_known: str | None = None  # point release of the branch that the catalog has seen; the source may have newer
    source: DriverOrigin = "cuda"
    source_title: str = ""  # "NVIDIA's repository for Debian 12"
    packages: tuple[str, ...] = ()  # what is installed, most telling first
    kept: bool = False  # it is on the host already and is not changed
    signed: bool = False  # its modules come built and signed: no headers, no DKMS, nothing to enrol
    rolling: bool = False  # the source provides one version only, whichever that is
    foreign: ForeignDriver | None = None  # a driver that gpunode does not manage, and does not change
    alternatives: tuple[Alternative, ...] = ()  # () for a driver that is not changed
    confidence: tuple[Confidence, ...] = ()
