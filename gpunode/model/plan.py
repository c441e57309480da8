"""The difference between a host and a spec, as data: saved, shown, reviewed, applied tomorrow."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpunode.errors import ExitCode
from gpunode.model.action import Action, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.spec import RebootPolicy, Spec
from gpunode.model.summary import HostSummary
from gpunode.remedy import NO_REMEDY, Remedy
from gpunode.values import dataclass

Product = Literal["driver", "cuda", "toolkit"]  # what is installed from packages
VendorRepository = Literal["cuda", "toolkit", "local"]  # local: of --driver-source local
ForGood = Literal["prerequisites", "mig-layout", "signing-key"]  # what no undo reverts


@dataclass(frozen=True)
class ForUndo:
    """What undo goes by; the journal keeps it with the step (apply/journal/for_undo.py)."""

    engine: str = ""  # RuntimeFacts.label of the engine whose configuration it sets; "": none
    initramfs: bool = False  # it holds the step's files: whoever reverts them rebuilds it and reboots
    for_good: ForGood | None = None
    erases: bool = False  # an undo's removal of packages, which goes on where it was interrupted
    restarts: str = (
        ""  # the unit that reads its files at start only, "kubelet.service"; "": none, or it may not come up
    )


# What a finding can name as the step that mends it; the planner's steps and what they leave are called so.
DRIVER_STEP, HEADERS_STEP, NOUVEAU_STEP = "driver.install", "kernel.headers", "kernel.nouveau"
BUILD_STEP, SWAP_STEP, MODULES_STEP = "driver.build", "driver.swap", "driver.modules"
REMOVE_STEP, REPLACE_STEP = "driver.remove", "driver.replace"
ENROL_STEP, HOLD_STEP, UNHOLD_STEP, MIG_STEP = "secureboot.enrol", "driver.hold", "driver.unhold", "mig.layout"
MIG_UNIT = "gpunode-mig.service"  # what MIG_STEP enables: it makes the instances again at every boot
LOAD_STEP, SERVICES_STEP, CHAR_LINKS_STEP = "driver.load", "driver.services", "driver.char-links"
CDI_READABLE_STEP, CDI_REFRESH_STEP, CDI_STALE_STEP = "cdi.readable", "cdi.refresh", "cdi.stale"
CDI_SPEC_STEP, TOOLKIT_CONFIG_STEP = "cdi.spec", "toolkit.config"
BUNDLE_STEP, BUNDLE_TIDY_STEP = "bundle.put", "bundle.tidy"
KUBELET_STEP, BOOT_ORDER_STEP, IMEX_STEP = "kubelet.gates", "kubelet.boot-order", "kubernetes.imex"


def engine_step(label: str) -> str:
    """The step that configures one engine, by RuntimeFacts.label: "docker.default"."""
    return f"{label}.default"


@dataclass(frozen=True)
class Step:
    """One thing that changes, in the order an engineer would type it.

    When an action fails, every file this step wrote is restored, and then `undo` runs.
    """

    id: str  # "driver.install"
    title: str  # "install 14 packages, all 595.91.07 (nvidia-open, ...), and pin them"
    why: str
    actions: tuple[Action, ...]
    undo: tuple[Action, ...] = ()
    diff: str = ""  # unified diff of the files it changes, secrets masked, for a person
    by_hand: str = ""  # the manual step afterwards: a daemon that nothing restarts
    installs: Product | None = None
    serves: tuple[Product, ...] = ()  # when the run fails and no step has installed any of them, this goes back too
    repository: VendorRepository | None = None  # which one it sets up
    changes_repositories: bool = False  # until it is done, the resolver would answer for other packages
    replan_after: bool = False  # packages may change configuration: re-probe and re-plan
    for_undo: ForUndo = ForUndo()
    # `check --fix` may do it unasked for: nothing that runs is stopped, no package changes, undo takes it back.
    safe: bool = False


@dataclass(frozen=True)
class Kept:
    """Something that is unchanged, with the reason."""

    id: str
    text: str
    by_hand: str = ""  # the manual step before it is in force; "" = none
    repository: VendorRepository | None = None  # which one is set up already
    refused: bool = False  # it is wanted, and gpunode does not do it on this host: the rest of the plan is done
    evidence: str = ""  # of a refusal
    remedy: Remedy = NO_REMEDY
    beware: bool = False  # something speaks against it: the end of a run says so once more
    later: bool = False  # a later pass of the same run does it, and what it does depends on what this plan installs
    restarts: str = ""  # the unit that the later pass restarts for it


@dataclass(frozen=True)
class Undoing:
    """What a plan of `gpunode undo` reverts."""

    runs: tuple[str, ...]  # the journal's runs, oldest first
    packages: bool = False  # packages, pins and repositories are removed too
    left: tuple[Kept, ...] = ()  # what is not changed, since it is no longer gpunode's alone; with the commands to run
    lost: tuple[Kept, ...] = ()  # containers that do not work on without what is removed (--allow-container-loss)
    pending: bool = False  # something is left for a later undo, which finds these runs in the journal again


@dataclass(frozen=True)
class Answer:
    """What the host's resolver would do for a step: "install NAME VERSION", "upgrade ...", "remove ..." a line."""

    step: str  # its id
    changes: tuple[str, ...]
    download_bytes: int | None = None  # what is still to be fetched for it; None: the resolver does not say
    mixed: tuple[str, ...] = ()  # "NAME VERSION" of one package of each version, where the driver's would have several
    refused: str = ""  # why setup would stop at it, before anything is changed: another branch than the chosen one


@dataclass(frozen=True)
class Plan:
    target: str
    spec: Spec
    facts_sha256: str  # which facts it was made from; never a reason to believe the rest
    about: HostSummary = field(default_factory=HostSummary)
    driver: DriverChoice | None = None  # None: the driver is not changed, or is removed
    steps: tuple[Step, ...] = ()
    kept: tuple[Kept, ...] = ()
    reboot: str | None = None  # why a reboot is needed after the steps; None when not
    console: str | None = None  # what only a person at the console can do at that reboot, which gpunode then leaves
    replan_after: bool = False  # a step asks for it
    undo: Undoing | None = None  # None: a plan of setup
    answers: tuple[Answer, ...] = ()  # of the package manager, for the steps that it could be asked about
    hostname: str = ""  # what the host calls itself: a saved plan is for no other

    @property
    def empty(self) -> bool:
        return not self.steps and self.reboot is None and not self.by_hand

    @property
    def acts(self) -> bool:
        """Whether carrying it out changes the host, or reboots it: not one at whose console somebody has to be."""
        reboots = self.reboot is not None and not self.console and self.spec.reboot is RebootPolicy.IF_NEEDED
        return bool(self.steps) or reboots

    @property
    def refused(self) -> tuple[Kept, ...]:
        return tuple(kept for kept in self.kept if kept.refused)

    @property
    def restarts(self) -> tuple[str, ...]:
        """The units that it restarts, each once, those of a later pass last; a rollback's are not among them."""
        runs = [action.restarts for step in self.steps for action in step.actions if isinstance(action, Run)]
        return tuple(dict.fromkeys(unit for unit in (*runs, *(kept.restarts for kept in self.kept)) if unit))

    @property
    def code(self) -> ExitCode:
        """With which a run ends whose steps are all done."""
        refused = self.refused or any(answer.refused for answer in self.answers)
        return ExitCode.UNSUPPORTED if refused else ExitCode.DONE

    @property
    def by_hand(self) -> tuple[str, ...]:
        """The manual steps for this host, as commands to run."""
        words = (*(step.by_hand for step in self.steps), *(kept.by_hand for kept in self.kept))
        return tuple(filter(None, words))
