"""One host's plan as one POSIX script, for a host that nothing but a person reaches and that needs no Python.

What each step does is not written a second time: StepRun asks a host that only notes what it is asked, and the script
has the same scripts with the same words. shell/export/plan.sh carries them out in order. Pure: values in, a file out.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from gpunode import resources
from gpunode.apply.files import sha256
from gpunode.apply.journal.entries import Journal
from gpunode.apply.journal.for_undo import to_entry
from gpunode.apply.journal.snapshot import before_values
from gpunode.apply.lock import STALE_S
from gpunode.apply.script import Host
from gpunode.apply.step import StepRun, name
from gpunode.errors import ExitCode, UnsupportedHost, worst
from gpunode.export.files import ExportedFile
from gpunode.masking import form_of, masked
from gpunode.model.action import Action, PutFile, Reboot, RemoveFile, Run
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Kept, Plan, Step
from gpunode.packages.registry import backend
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.transport.base import Completed
from gpunode.values import dataclass

NAME = "setup.sh"
MADE = "Made by `gpunode export script`."
# Stands for the run's id, which is not known before it runs: letters that apply.paths.slug leaves as they are.
_RUN = "00000000T000000Z-gpunode-export-script"
_FUNCTIONS = (
    *("lock", "files/check_drift", "files/put", "files/restore", "packages/inventory"),
    *("commands/run", "commands/list_detached", "commands/start_detached", "commands/wait_detached"),
)
_RUNNER = "commands/detached_runner"
_MARK = "END_OF_TEXT"


@dataclass(frozen=True)
class Asked:
    """One script that the engine had a host run. `words` without the lock's token and the journal's lines."""

    script: str  # "files/put"
    journal: str
    words: tuple[str, ...]
    stdin: bytes


class _Nowhere:
    """The transport of a host that is none. Whoever asks it asks what cannot be known before the script runs."""

    def __init__(self, target: str) -> None:
        self.target = target

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        raise UnsupportedHost(f"{self.target}: a step asks more of the host than a script can")

    def reconnect(self) -> None:
        """Nothing was connected."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Listener(Host):
    """A host that notes what it is asked, and to which everything succeeds."""

    code: int = 0  # with which its commands end
    asked: list[Asked] = field(default_factory=list)

    def run(
        self, script: str, *arguments: str, stdin: bytes = b"", timeout_s: float = 0, script_id: str = ""
    ) -> Completed:
        replies = {
            "files/put": "same",
            "commands/run": "ran",
            "commands/start_detached": "started",
            "commands/wait_detached": f"ended {self.code} 0",
        }
        if script not in replies:
            raise UnsupportedHost(f"{self.transport.target}: a step runs {script}, which a script cannot")
        if script != "commands/wait_detached":
            self.asked.append(Asked(script, arguments[1], arguments[2:], stdin))
        return Completed(self.code if script == "commands/run" else 0, f"{replies[script]}\n".encode(), b"", 0.0)

    def run_or_end(self, script: str, *arguments: str, what: str, stdin: bytes = b"", timeout_s: float) -> Completed:
        return self.run(script, *arguments, stdin=stdin)


def script(plan: Plan, host: HostFacts, shown: str) -> tuple[ExportedFile, ...]:
    """`setup.sh`: the plan for the host that `host` are the facts of; `shown`: the plan as a person reads it.

    Raises UnsupportedHost where it holds what a script cannot do, or must not carry.
    """
    _refuse(plan)
    body = _Body(plan, host).text()
    key = hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    values = {
        "KEY": key,
        "HOST_NAME": plan.hostname,
        "KERNEL": host.kernel.release,
        "SYSTEM": f"{host.os.id} {host.os.version_id}",
        "STALE_S": str(STALE_S),
        "STEPS": str(len(plan.steps)),
        "SHOWN": shown,
        "ENDS": str(int(_end(plan))),
        "ENDING": _ending(plan),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    parts = (
        "#!/bin/sh",
        f"# {MADE} For one host, whose name is in HOST_NAME, and for no other.",
        *lines,
        _engine(),
        body,
        'main "$@"',
    )
    text = "\n".join(parts) + "\n"
    return (ExportedFile(NAME, text.encode("utf-8", "surrogateescape"), 0o755),)


def _refuse(plan: Plan) -> None:
    for step in plan.steps:
        for action in (*step.actions, *step.undo):
            if isinstance(action, Reboot):
                raise _refused(plan, step, "reboots the host in the middle, and what comes after it is decided then")
            if isinstance(action, PutFile) and masked(action.text, form_of(action.path)) != action.text:
                raise _refused(plan, step, f"writes {action.path}, which holds a password or a key")
    for kept in plan.kept:
        if kept.later:
            first = ",".join(part for part in plan.spec.only if part in ("driver", "toolkit"))
            two = f"; or a script with --only {first}, and another one for the rest, made once that has run"
            raise _refused(plan, kept, f"is decided in the middle: {kept.text}", two)


def _refused(plan: Plan, step: Step | Kept, why: str, instead: str = "") -> UnsupportedHost:
    return UnsupportedHost(
        f"{plan.target}: there is no script of this plan: step {step.id} {why}",
        evidence="a script is a file that people hand on, and runs to its end by itself",
        remedy=Remedy(RepairAction.NONE, setup("--ssh"), " does it; the host needs no Python for that either", instead),
    )


def _end(plan: Plan) -> ExitCode:
    left = ExitCode.REBOOT_NEEDED if plan.reboot or plan.by_hand else ExitCode.DONE
    return worst((plan.code, left))


def _ending(plan: Plan) -> str:
    """What a person is told once all steps are done."""
    told = [f"{kept.id}: {kept.text}" for kept in plan.refused]
    told += [f"do this: {command}" for command in plan.by_hand]
    if plan.reboot:
        told.append(plan.console or f"reboot this host: {plan.reboot}")
    if plan.replan_after or plan.reboot:
        told.append("then check this host again: packages may have changed what this plan saw")
    return "\n".join(told)


def _engine() -> str:
    """The scripts, each a function with a shell of its own, and what calls them."""
    functions = (f"gpunode_{one.replace('/', '_')}() (\n{resources.script(one)})" for one in _FUNCTIONS)
    runner = f"RUNNER={shlex.quote(resources.script(_RUNNER))}"
    shared = (resources.script("as_user"), resources.script("common"))
    return "\n".join(("script_id=", *shared, *functions, runner, resources.script("export/plan")))


class _Body:
    """The plan's own part: its files, packages and steps, as calls of plan.sh's functions."""

    def __init__(self, plan: Plan, host: HostFacts) -> None:
        self._plan, self._host = plan, host
        self._before = before_values(host, plan)
        self._texts: dict[bytes, str] = {}

    def text(self) -> str:
        steps = [self._step(number, step) for number, step in enumerate(self._plan.steps, 1)]
        calls = "".join(f"  {call}\n" for _, call in steps)
        parts = (
            self._packages(),
            self._files("each_file", self._first()),
            self._files("each_last_file", self._last()),
            *(f"{function}() {{\n{_printed(text)}\n}}" for text, function in self._texts.items()),
            *(functions for functions, _ in steps),
            f"all_steps() {{\n{calls}}}",
        )
        return "\n".join(parts)

    def _packages(self) -> str:
        manager = self._host.packages.manager
        versions = self._before["packages"]
        assert isinstance(versions, dict)
        watched = "\n".join(f"{package} {version or '-'}" for package, version in versions.items())
        begin = _line("run-begin", schema=1, before=self._before)
        listing = backend(manager).list_script if manager and versions else "return 1\n"
        names = backend(manager).names_script if manager and versions else ""
        return (
            f"WATCHED={shlex.quote(watched)}\nNAMES={shlex.quote(names)}\n"
            # The probe's find_tool is careful with a root of another system; this one is the host's own.
            'find_tool() { TOOL=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$1"); }\n'
            f"{_asked_about()}\nlist_all() {{\n{listing}}}\n"
            'list_packages() { list_all >"$T/all" && { grep -E "$PACKAGES" "$T/all" || :; }; }\n'
            f"run_begin() {{ printf '%s\\n' {_word(begin)}; }}"
        )

    def _changes(self) -> Iterator[PutFile | RemoveFile]:
        actions = (action for step in self._plan.steps for action in step.actions)
        return (action for action in actions if isinstance(action, (PutFile, RemoveFile)))

    def _first(self) -> Iterator[str]:
        """A later write of the same file expects the earlier one's text."""
        first: dict[str, PutFile | RemoveFile] = {}
        for action in self._changes():
            first.setdefault(action.path, action)
        for path, action in first.items():
            free = action.any_before if isinstance(action, PutFile) else action.expect_sha256 is None
            words = (path, action.owner, action.expect_sha256 or "absent", _after(action), "1" if free else "0")
            yield f"first_of {shlex.join(words)}"

    def _last(self) -> Iterator[str]:
        for path, action in {action.path: action for action in self._changes()}.items():
            yield f"last_of {shlex.join((path, action.owner, _after(action)))}"

    def _files(self, function: str, calls: Iterable[str]) -> str:
        return f"{function}() {{\n  :\n" + "".join(f"  {call}\n" for call in calls) + "}"

    def _step(self, number: int, step: Step) -> tuple[str, str]:
        """Its functions, and the call of plan.sh's `step`."""
        journal = Journal(_RUN)
        do, undo = f"step_{number}", f"undo_{number}"
        functions = "\n".join(
            f"{function}() {{\n{self._actions(step, journal, actions)}}}"
            for function, actions in ((do, step.actions), (undo, step.undo))
        )
        begin = _line("step-begin", step=step.id, title=step.title, for_undo=to_entry(step.for_undo))
        others = enumerate(self._plan.steps, 1)
        served = " ".join(str(place) for place, other in others if other.installs in step.serves)
        words = (step.id, begin, step.title, do, undo, served)
        return functions, f"step {' '.join(map(_word, words))}"

    def _actions(self, step: Step, journal: Journal, actions: Sequence[Action]) -> str:
        calls = [call for action in actions for call in self._action(step, journal, action)]
        return "  " + " &&\n  ".join(calls or [":"]) + "\n"

    def _action(self, step: Step, journal: Journal, action: Action) -> Iterator[str]:
        code = action.ok_codes[0] if isinstance(action, Run) else 0
        listener = _Listener(_Nowhere(self._plan.target), "", code)
        StepRun(listener, journal, step, lambda line: None, lambda pause_s: None).perform(action)
        journal.delivered()  # what the listener printed is no answer for the journal
        for asked in listener.asked:
            yield " ".join((*self._call(step, action, asked), *map(_word, asked.words)))

    def _call(self, step: Step, action: Action, asked: Asked) -> tuple[str, ...]:
        """plan.sh's function for it, and the words that come before those of the script."""
        text = self._text(asked.stdin)
        if not isinstance(action, Run):
            return "write_file", text
        pauses = " ".join(f"{pause_s:g}" for pause_s in action.retry)
        how = (" ".join(map(str, action.ok_codes)), pauses, "" if action.read_only else "1")
        about = ("1" if action.record_output else "", name(action), step.id, asked.journal)
        limit = () if asked.script == "commands/run" else (str(round(action.timeout_s)),)
        function = "run_command" if asked.script == "commands/run" else "run_unit"
        return function, text, *map(_word, (*how, *about, *limit))

    def _text(self, text: bytes) -> str:
        """The function that prints it."""
        if not text:
            return "nothing"
        return self._texts.setdefault(text, f"text_{len(self._texts) + 1}")


def _asked_about() -> str:
    """The line of the probe that says which packages facts have: of others the plan saw nothing."""
    lines = resources.script("probe/packages").splitlines()
    return next(line for line in lines if line.startswith("PACKAGES="))


def _after(action: PutFile | RemoveFile) -> str:
    return sha256(action.text.encode("utf-8", "surrogateescape")) if isinstance(action, PutFile) else "absent"


def _line(kind: str, **fields: object) -> str:
    return json.dumps({"kind": kind, "run": _RUN, **fields})


def _printed(text: bytes) -> str:
    """What prints it: as it is, where it can stand between two lines of this script."""
    read = text.decode("utf-8", "surrogateescape")
    if read.endswith("\n") and f"\n{_MARK}\n" not in f"\n{read}":
        return f"cat <<'{_MARK}'\n{read}{_MARK}"
    return f"printf %s {shlex.quote(read)}"


def _word(word: str) -> str:
    """A word for the shell, with the run's id, and the runner's script, by the names that they have there."""
    runner = resources.script(_RUNNER)
    pieces = [shlex.quote(piece) if piece else "" for piece in word.split(_RUN)]
    if word.startswith(runner):
        return '"$RUNNER"' + shlex.quote(word.removeprefix(runner))
    return '"$RUN"'.join(pieces) or "''"
