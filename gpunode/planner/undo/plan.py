"""What gpunode did to this host, reverted: newest first, by the same kinds of steps as setup's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from gpunode.advice import typed
from gpunode.catalog.load import Catalog
from gpunode.engines.daemon import commands
from gpunode.model.action import Action, RemoveFile, Run
from gpunode.model.containers import Container
from gpunode.model.facts import RUNS, HostFacts, ServiceFacts
from gpunode.model.past import Past, PastFile
from gpunode.model.plan import (
    ForGood,
    Kept,
    Plan,
    Step,
    Undoing,
)
from gpunode.model.spec import Spec
from gpunode.packages.registry import goes_with_packages
from gpunode.planner.kernel.initramfs import rebuild
from gpunode.planner.kernel.setup import NOUVEAU_FILE
from gpunode.planner.resume import PATH as RESUME_PATH
from gpunode.planner.resume import leftover_step
from gpunode.planner.summary import host_summary
from gpunode.planner.undo import containers as containers_found
from gpunode.planner.undo.engine import engine_outcome, is_engine
from gpunode.planner.undo.files import Back, diffs, only_backs, only_left, rollback
from gpunode.planner.undo.packages import (
    added_packages,
    kept_packages,
    needed_packages,
    package_steps,
    replaced_packages,
)
from gpunode.planner.undo.program import still_named
from gpunode.values import dataclass

SYSTEMD = "/etc/systemd/system/"
FOR_GOOD: dict[ForGood, str] = {
    "prerequisites": "EPEL, or what else the driver's packages draw on, remains enabled, with its key",
    "mig-layout": "the MIG layout is not changed (gpunode setup --mig all=off removes it)",
    "signing-key": "the signing key remains in the firmware (mokutil --delete removes it)",
}


@dataclass
class Draft:
    """What is to be done, collected part by part."""

    steps: list[Step] = field(default_factory=list)
    left: list[Kept] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    pending: bool = False

    def add(self, steps: Iterable[Step | None], left: Iterable[Kept] = ()) -> None:
        self.steps += filter(None, steps)
        self.left += left


def undo_plan(
    host: HostFacts,
    past: Past,
    catalog: Catalog,
    *,
    packages: bool = False,
    containers: Sequence[Container] = (),
    allow_loss: bool = False,
) -> Plan:
    """The rollback of what the journal records (`past`) on this host as it is.

    First the engines, so that none of them needs what goes after it; packages last, and only where asked for. What
    others wrote to since and cannot be separated is not changed, with the commands to run (Plan.undo.left). While
    `containers` need what setup added, only the default runtimes are restored, unless `allow_loss`.
    """
    draft = _everything(host, past, catalog, packages=packages)
    lost = containers_found.lost(containers, past) if allow_loss and draft.steps else ()
    if containers and not allow_loss and draft.steps:
        draft = _for_now(host, past, containers, packages=packages)
    steps, left = tuple(draft.steps), tuple(draft.left)
    return Plan(
        target=host.target,
        spec=Spec(),
        facts_sha256=host.stream_sha256,
        hostname=host.hostname,
        about=host_summary(host, catalog),
        steps=steps or _note(past, left),
        kept=(*draft.kept, *_for_good(past), *_unread(past), *(() if steps or left or draft.kept else _nothing(past))),
        undo=Undoing(past.runs, packages, left, lost, draft.pending),
    )


def _everything(host: HostFacts, past: Past, catalog: Catalog, *, packages: bool) -> Draft:
    draft = Draft()
    draft.add((leftover_step(host) if past.runs else None,))
    engines = {name: engine_outcome(host, past, name) for name in reversed(past.engines) if is_engine(name)}
    for outcome in engines.values():
        draft.add((outcome.step,), outcome.left)
    draft.add((_services_step(host, past), _unmasked_step(host, past)))
    draft.add(*_file_steps(host, past))
    needed = [outcome.still_used for outcome in engines.values() if outcome.still_used]
    # A file that is broken keeps its daemon down, which then uses no handler: the file is to be restored all the same.
    draft.pending = bool(needed) or any(outcome.left for outcome in engines.values())
    if not packages:
        draft.kept += kept_packages(host, past)
        return draft
    toolkit = catalog.toolkit.packages
    if set(added_packages(host, past)) & set(toolkit):
        needed += still_named(host, past, [label for label, outcome in engines.items() if not outcome.left])
    kept = needed_packages(host, past, tuple(dict.fromkeys(needed)))
    if kept:
        draft.kept.append(kept)
        draft.pending = True
    else:
        draft.add(*package_steps(host, past, toolkit))
    draft.kept += replaced_packages(host, past)
    return draft


def _for_now(host: HostFacts, past: Past, containers: Sequence[Container], *, packages: bool) -> Draft:
    """What goes while containers need the rest."""
    draft = Draft(pending=True)
    draft.add((leftover_step(host),))
    for label in filter(is_engine, reversed(past.engines)):
        keep = containers_found.needs_handler(containers, label)
        outcome = engine_outcome(host, past, label, keep_handler=keep)
        draft.add((outcome.step,), outcome.left)
    draft.kept += containers_found.waiting(containers, past, packages=packages)
    return draft


def _note(past: Past, left: Sequence[Kept]) -> tuple[Step, ...]:
    """With nothing to do but something left: written down, so that it is reported once and not at every undo."""
    if not left:
        return ()
    why = "what is left is no longer gpunode's alone"
    return (Step("undo.note", f"note in gpunode's journal that {past.runs[0]} is undone", why, ()),)


def _nothing(past: Past) -> tuple[Kept, ...]:
    """Why there is nothing to undo."""
    if not past.journal:
        why = "gpunode has no journal on this host (/var/lib/gpunode/journal.jsonl): it changed nothing here"
    elif past.last_undo and not past.runs:
        why = f"run {past.last_undo.rpartition('.')[0] or past.last_undo} has undone everything before it"
    else:
        why = "what gpunode changed is restored already"
    return (Kept("undo", why),)


def _for_good(past: Past) -> tuple[Kept, ...]:
    """What is in no file and in no package."""
    return tuple(Kept(past.for_good[what], text) for what, text in FOR_GOOD.items() if what in past.for_good)


def _unread(past: Past) -> tuple[Kept, ...]:
    text = f"{past.unread} lines of gpunode's journal are truncated: what they announce was not begun"
    return (Kept("journal", text),) if past.unread else ()


def _services_step(host: HostFacts, past: Past) -> Step | None:
    """Units that setup enabled, disabled again, and stopped where it had started them."""
    off: list[Action] = []
    on: list[Action] = []
    units = []
    for unit, (enabled, active) in past.services.items():
        now = _service(host, unit)
        if now.load == "not-found" or now.enabled != "enabled" or enabled == "enabled":
            continue
        switch = ("--now",) if now.active == "active" and active != "active" else ()
        off.append(Run(("systemctl", "disable", *switch, unit), timeout_s=120))
        on.append(Run(("systemctl", "enable", *switch, unit), timeout_s=120))
        units.append(unit)
    if not off:
        return None
    return Step("undo.driver.services", f"disable {' and '.join(units)}", "setup enabled them", tuple(off), tuple(on))


def _unmasked_step(host: HostFacts, past: Past) -> Step | None:
    """Units that setup masked, unmasked; enabled and started again where they were."""
    on: list[Action] = []
    off: list[Action] = []
    units = []
    for unit, masked in past.masked.items():
        enabled, active = past.services.get(unit, masked)
        now = _service(host, unit)
        if not now.enabled.startswith("masked") or enabled.startswith("masked"):
            continue
        starts = active in RUNS and now.active not in RUNS
        on.append(Run(("systemctl", "unmask", unit), timeout_s=60))
        if enabled == "enabled":
            on.append(Run(("systemctl", "enable", *(("--now",) if starts else ()), unit), timeout_s=120))
        elif starts:
            on.append(Run(("systemctl", "start", unit), timeout_s=120))
        off.append(Run(("systemctl", "disable", *(("--now",) if starts else ()), unit), timeout_s=120))
        off.append(Run(("systemctl", "mask", unit), timeout_s=60))
        units.append(unit)
    if not on:
        return None
    return Step("undo.services.masked", f"unmask {' and '.join(units)}", "setup masked them", tuple(on), tuple(off))


def _service(host: HostFacts, unit: str) -> ServiceFacts:
    return host.services.get(unit) or host.services.get(unit.removesuffix(".service")) or ServiceFacts()


def _file_steps(host: HostFacts, past: Past) -> tuple[list[Step], list[Kept]]:
    """Everything that is no engine's and no repository's, one step for each of setup's, the last one first."""
    engines = {name for name in past.engines if is_engine(name)}
    gone = {RESUME_PATH} if leftover_step(host) else set()  # with all that belongs to it
    files = [
        f
        for f in past.files
        if f.for_undo.engine not in engines and not goes_with_packages(f.path) and f.path not in gone
    ]
    steps = [step for step in (_written_step(host, past),) if step]
    left: list[Kept] = []
    for name in dict.fromkeys(file.step for file in reversed(files)):
        mine = [file for file in files if file.step == name]
        found = [rollback(file) for file in mine]
        after = _afterwards(host, mine)
        commands = "".join(f", then {typed(*run.argv)}" for run in after)
        left += [Kept(kept.id, kept.text + commands) for kept in only_left(found)]
        if backs := only_backs(found):
            steps.append(_file_step(name, backs, after))
    return steps, left


def _file_step(name: str, backs: tuple[Back, ...], after: tuple[Run, ...]) -> Step:
    actions = [action for back in reversed(backs) for action in (*back.actions(), *back.tidy())]
    words = [back.words for back in backs]
    known = backs[0].file.for_undo
    if known.initramfs:
        rebuilt = "rebuild the initramfs" if after else "no initramfs tool is here, so none is rebuilt"
        freed = any(back.text is None and back.file.path == NOUVEAU_FILE for back in backs)
        words.append(f"{rebuilt}; a reboot loads nouveau again" if freed else rebuilt)
    title = "; ".join(words)
    return Step(f"undo.{name}", title, "setup wrote it", (*actions, *after), after, diffs(backs), for_undo=known)


def _afterwards(host: HostFacts, files: Sequence[PastFile]) -> tuple[Run, ...]:
    """What reads these files only when it is run."""
    runs = list(rebuild(host)) if any(file.for_undo.initramfs for file in files) else []
    if host.init == "systemd" and any(file.path.startswith(SYSTEMD) for file in files):
        runs.append(Run(("systemctl", "daemon-reload")))
    if host.init == "systemd":
        runs += [commands.restart(unit) for unit in sorted({f.for_undo.restarts for f in files} - {""})]
    return tuple(runs)


def _written_step(host: HostFacts, past: Past) -> Step | None:
    """What setup let other tools write: CDI specifications. Whoever wrote them anew since wrote the same."""
    paths = [path for path in past.wrote if not goes_with_packages(path) and host.file(path).exists]
    if not paths:
        return None
    actions = tuple(RemoveFile(path) for path in paths)
    return Step("undo.written", f"remove {', '.join(paths)}", "setup let a tool write it", actions)
