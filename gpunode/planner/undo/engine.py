"""A container engine rolled back to its old configuration and its old default, proven by the running daemon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode.engines.base import Edit, Engine, Rewrite
from gpunode.engines.registry import ENGINES
from gpunode.model.action import Action
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.past import Past
from gpunode.model.plan import ForUndo, Kept, Step
from gpunode.model.spec import RuntimeSpec
from gpunode.planner.engines import daemon
from gpunode.planner.engines.kubelet.daemon import asked_after
from gpunode.planner.engines.taken_down import all_healthy, left_to_the_user
from gpunode.planner.undo.engine_files import EngineFiles
from gpunode.planner.undo.files import Back, diffs, only_backs, only_left
from gpunode.values import dataclass


@dataclass(frozen=True)
class Outcome:
    step: Step | None
    left: tuple[Kept, ...] = ()
    still_used: str = ""  # why the engine still needs gpunode's handler afterwards; "" when it does not


def engine_outcome(host: HostFacts, past: Past, label: str, *, keep_handler: bool = False) -> Outcome:
    """`label`: RuntimeFacts.label. Either all of its files are restored, or none: they belong together.

    `keep_handler`: containers still use it, so only the default is restored.
    """
    facts = host.labelled(label)
    found = EngineFiles.of(host, past, label, kind(label)).rolled_back(keep_handler=keep_handler)
    backs, left = only_backs(found), only_left(found)
    stale = _stale(past, facts, label)
    if left:
        still_used = f"{label} still runs with {past.handler} as its default runtime" if stale else ""
        return Outcome(None, left, still_used)
    if not backs and not stale:
        return Outcome(None)
    apply = stale or any(back.changes for back in backs)
    applied = facts if apply else None
    held = left_to_the_user(host, applied) if applied is not None else ""
    still_used = f"{label} runs with its old file only after a restart" if held else ""
    return Outcome(_step(host, past, label, applied, backs, held), still_used=still_used)


def is_engine(label: str) -> bool:
    return label.partition("@")[0] in ENGINES


def kind(label: str) -> Engine:
    """The runtime of an engine's label (RuntimeFacts.label)."""
    return ENGINES[label.partition("@")[0]]


def _stale(past: Past, facts: RuntimeFacts | None, label: str) -> bool:
    """The running daemon may still have gpunode's default, though the files are restored: an undo was interrupted."""
    if facts is None or not facts.active:
        return False
    before = past.defaults.get(label)
    return label in past.cut_off or facts.effective_default == past.handler != (before or past.handler)


def _expected(past: Past, facts: RuntimeFacts) -> str | None:
    """The default that must be in force afterwards: one that was chosen since is not managed by gpunode."""
    now = facts.effective_default
    return past.defaults.get(facts.label) if now in (None, past.handler) else now


def _step(
    host: HostFacts, past: Past, label: str, facts: RuntimeFacts | None, backs: tuple[Back, ...], held: str
) -> Step:
    runtime = kind(label)
    # The file that imports is restored before the one that is imported.
    actions: list[Action] = []
    for back in reversed(backs):
        actions += back.actions(runtime.validate(facts, back.file.path) if facts else None)
    undo: tuple[Action, ...] = ()
    words = [back.words for back in backs]
    by_hand = ""
    if facts is not None and daemon.runs(host, facts):
        restart, default, rewrite = _restarts(facts, backs), _expected(past, facts), _rewrite(host, facts, backs)
        if default and default != facts.effective_default:
            words.append(f"default runtime {facts.effective_default} → {default}")
        if held:
            by_hand = held
            words.append(f"written only: {facts.name} is not restarted")
        elif daemon.reachable(host, facts, restart=restart):
            after = (*all_healthy(host, facts), *asked_after(host, facts))
            actions += (*runtime.undo(replace(facts, effective_default=default), rewrite, restart=restart), *after)
            undo = (*_forward(runtime, facts), *after)
            words.append("restart" if restart else runtime.title)
        else:
            by_hand = daemon.by_hand(host, facts)
            words.append(f"written only: nothing here restarts {facts.name}")
    elif facts is not None:
        words.append(f"written only: {facts.unit} is not running")
    for back in backs:
        actions += back.tidy()
    return Step(
        f"undo.{label}.default",
        "; ".join(words),
        "new containers and pods start with the runtime from before setup; those that run keep the runtime they have",
        tuple(actions),
        undo,
        diffs(backs),
        by_hand,
        for_undo=ForUndo(engine=label),
    )


def _rewrite(host: HostFacts, facts: RuntimeFacts, backs: tuple[Back, ...]) -> Rewrite:
    """The change that is being undone, as Engine.undo knows it: `before` is what is restored."""
    edits = tuple(Edit(back.file.path, back.text, back.file.now.text or "") for back in backs if back.changes)
    if not edits:
        text = host.file(facts.config_path).text
        edits = (Edit(facts.config_path, text, f"{text or ''}\n"),)  # any other text: the old one is in place already
    return Rewrite(edits, ())


def _restarts(facts: RuntimeFacts, backs: Sequence[Back]) -> bool:
    """Where a restart would end containers, what only a restart removes remains until then. A user's own: the same."""
    if facts.user:
        return False
    kind = ENGINES[facts.name]
    gone = any(kind.undone_by_restart(back.file.now.text or "", back.text or "") for back in backs)
    return gone and (bool(facts.live_restore) or facts.containers_running == 0)


def _forward(runtime: Engine, facts: RuntimeFacts) -> tuple[Action, ...]:
    """If this step fails: the files are as setup left them again, and the daemon must be, too."""
    if facts.effective_default is None:
        return runtime.apply(facts)
    return (*runtime.apply(facts), runtime.verify(facts, RuntimeSpec(handler=facts.effective_default)))
