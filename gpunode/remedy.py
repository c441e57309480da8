"""What to do next, as data: which kind of action, and prose in which gpunode's own commands are words, not text.

A remedy is written where the fault is known. Whoever shows it may need its commands otherwise: with the host they are
for (--ssh), or with the verb that is running (undo goes on with undo).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from gpunode.advice import named
from gpunode.values import dataclass


class RepairAction(str, Enum):
    """What kind of action fixes it: for a program that decides on drain, reboot, ticket or retry.

    Not model.plan.Action, which is what gpunode itself does in a step.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> RepairAction:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    NONE = "none", "nothing that a program could decide on: the text has the command to run, or whom to ask"
    CONFIGURE = "configure", "settings: of an engine, the toolkit, device nodes, the kernel, the firmware, a file"
    RESTART_SERVICE = "restart-service", "a daemon of the host is started, reloaded or restarted"
    RELOAD_MODULE = "reload-module", "a kernel module is loaded, or unloaded and loaded again"
    RESET_GPU = "reset-gpu", "`nvidia-smi --gpu-reset`, with nothing running on the GPU"
    REBOOT = "reboot", "drain the node, then reboot it: nothing less helps"
    POWER_CYCLE = "power-cycle", "off and on: a warm reboot is often not enough; or look at the console"
    REPLACE = "replace", "hardware is looked at, reseated or replaced, or another instance type is taken"
    UPGRADE = "upgrade", "packages are installed, changed or removed: driver, toolkit, engine, kernel headers"
    WAIT = "wait", "something is at work, busy or interrupted: the same again later"
    SUPPORT = "support", "nothing is known to help: read the log that is named, then report it"


@dataclass(frozen=True)
class Command:
    """Words of gpunode's own command line."""

    verb: str  # "setup", "runtime configure"; "" for gpunode itself
    options: tuple[str, ...] = ()
    again: bool = False  # whichever verb is running: AGAIN
    on_hosts: bool = True  # it takes --ssh
    ssh: str = ""  # the hosts it is typed for, as one word of --ssh, or of --limit
    inventory: str = ""  # the file that says how these are reached, "-": standard input; "": --ssh does
    reach: tuple[str, ...] = ()  # options that were typed next to them: ("--user", "ann", "--port", "2222")

    @property
    def words(self) -> tuple[str, ...]:
        """("gpunode", "setup", "--ssh", "gpu[01-03]", "--only", "driver")."""
        return ("gpunode", *self.verb.split(), *self._hosts, *self._reach, *self.options)

    def __str__(self) -> str:
        """As it is typed into a shell."""
        hosts = (*map(named, self._hosts[:-1]), *map(_quoted_hosts, self._hosts[-1:]))
        options = map(named, (*self._reach, *self.options))
        return " ".join(filter(None, ("gpunode", self.verb, *hosts, *options)))

    @property
    def _hosts(self) -> tuple[str, ...]:
        if not self.ssh:
            return ()
        # What came on standard input was read, and is not there when this is typed: whoever has it puts its file here.
        inventory = "FILE" if self.inventory == "-" else self.inventory
        return ("--inventory", inventory, "--limit", self.ssh) if inventory else ("--ssh", self.ssh)

    @property
    def _reach(self) -> tuple[str, ...]:
        return self.reach if self.ssh else ()


CHANGES = ("setup", "undo")
WANT = ("setup", "plan")
AGAIN = Command("setup", again=True)


def setup(*options: str) -> Command:
    return Command("setup", options)


def gpunode(verb: str, *options: str, ssh: bool = True) -> Command:
    """Another verb: `gpunode plan --save`. Without `ssh`, one that has no host, or that is to be typed on it."""
    return Command(verb, options, on_hosts=ssh)


@dataclass(frozen=True, init=False)
class Remedy:
    """`Remedy(RepairAction.UPGRADE, setup("--only", "driver"), " installs one version of all")`; false when empty."""

    action: RepairAction
    parts: tuple[str | Command, ...]

    def __init__(self, action: RepairAction = RepairAction.NONE, *parts: str | Command) -> None:
        object.__setattr__(self, "action", action)
        object.__setattr__(self, "parts", tuple(part for part in parts if part))

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def text(self) -> str:
        """For the user to read."""
        return "".join(map(str, self.parts))

    @property
    def command(self) -> tuple[str, ...]:
        """The words of its first command that changes a host, else of its first; () where it has none of gpunode's."""
        mine = [part for part in self.parts if isinstance(part, Command)]
        return next((one.words for one in (*(m for m in mine if m.verb in CHANGES), *mine)), ())

    def during(self, verb: str) -> Remedy:
        """AGAIN becomes this verb."""
        return self._with(lambda one: replace(one, verb=verb) if one.again else one)

    def over_ssh(self, hosts: str, inventory: str = "", reach: tuple[str, ...] = ()) -> Remedy:
        """Its commands as they are typed where gpunode was; `hosts` is the word after --ssh: "gpu[01-03]".

        `inventory`: the file of --inventory, where that knows how these hosts are reached; `hosts` are of --limit then.
        `reach`: what was typed of how to connect to them (`--user ann`): without it another account is meant.
        """
        return self._with(
            lambda one: replace(one, ssh=hosts, inventory=inventory, reach=reach) if one.on_hosts else one
        )

    def wanting(self, options: tuple[str, ...]) -> Remedy:
        """Its setup and plan with what says what is wanted (`--spec FILE`): without that they would want something
        else, for instance another handler. What one says itself (`--kubernetes-mode device-plugin`) is said once."""
        return self._with(
            lambda one: replace(one, options=_without(options, one.options) + one.options) if one.verb in WANT else one
        )

    def reworded(self, change: Callable[[str], str]) -> Remedy:
        """Its prose changed; its commands stay as they are."""
        return Remedy(self.action, *(change(part) if isinstance(part, str) else part for part in self.parts))

    def _with(self, change: Callable[[Command], Command]) -> Remedy:
        return Remedy(self.action, *(change(part) if isinstance(part, Command) else part for part in self.parts))


NO_REMEDY = Remedy()


def remedy_of(said: Remedy | str, action: RepairAction = RepairAction.NONE) -> Remedy:
    """A remedy; of mere prose, one with this action."""
    return Remedy(action, said) if isinstance(said, str) else said


def _without(options: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """`options` less the flags, each with its value, that `own` has too."""
    kept: list[str] = []
    keeps = True
    for word in options:
        keeps = word not in own if word.startswith("--") else keeps
        kept += [word] * keeps
    return tuple(kept)


def _quoted_hosts(word: str) -> str:
    import re  # late: --help has no remedy with hosts

    # A range's brackets: zsh ends a command where no file is called so. Quoted, all shells take them.
    return word if re.fullmatch(r"[\w@.:,%+-]+", word) else named(word)
