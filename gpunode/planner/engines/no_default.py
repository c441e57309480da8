"""--no-default where nvidia is the default already: taken back where gpunode's journal set it, else said."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from gpunode.editing.diff import unified
from gpunode.engines.base import Edit, Engine, Removal, Rewrite
from gpunode.engines.provenance import BUILT_IN, DEFAULT, Origin
from gpunode.engines.registry import engine
from gpunode.model.action import Action, PutFile
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import ForUndo, Kept, Step
from gpunode.model.spec import Spec
from gpunode.planner.engines import daemon
from gpunode.planner.engines.kubelet.daemon import asked_after
from gpunode.planner.engines.taken_down import all_healthy, left_to_the_user

WHY = "setup made it the default, and --no-default asks for the one from before; containers that name it keep it"


def no_default(host: HostFacts, spec: Spec, facts: RuntimeFacts, before: Step | Kept) -> tuple[Step | Kept, ...]:
    """What follows `before`, the engine's own outcome, where the spec wants no default; () where there is none.

    Raises ConfigFileError for a file that cannot be edited safely.
    """
    kind, handler = engine(facts.name), spec.runtime.handler
    origin = next((o for o in kind.origins(host, facts) if o.setting == DEFAULT), None)
    written = origin if origin and origin.value == handler and origin.source != BUILT_IN else None
    if spec.runtime.default or (written is None and facts.effective_default != handler):
        return ()
    previous = host.journal.defaults.get(facts.label)
    if previous is None or written is None or written.path is None:
        return (Kept(f"{facts.label}.no-default", _said(facts, handler, written)),)
    edit = _edit(host, kind, written.path, _written(before), Removal(handler, previous, keep_handler=True))
    return (_step(host, spec, facts, edit, previous),)


def _said(facts: RuntimeFacts, handler: str, written: Origin | None) -> str:
    where = written.where if written else "the running daemon"
    return (
        f"{handler} remains the default runtime of {facts.label} ({where}): gpunode's journal does not have that "
        f"gpunode set it, so --no-default does not change it; name another one there, and restart {facts.label}"
    )


def _written(before: Step | Kept) -> Mapping[str, str]:
    """The texts of the files once the engine's own step is done."""
    actions = before.actions if isinstance(before, Step) else ()
    return {action.path: action.text for action in actions if isinstance(action, PutFile)}


def _edit(host: HostFacts, kind: Engine, path: str, written: Mapping[str, str], removal: Removal) -> Edit:
    now = written.get(path, host.file(path).text or "")
    return Edit(path, now, kind.without(path, now, removal))


def _step(host: HostFacts, spec: Spec, facts: RuntimeFacts, edit: Edit, previous: str) -> Step:
    kind, want = engine(facts.name), spec.runtime
    sha256 = hashlib.sha256((edit.before or "").encode("utf-8", "surrogateescape")).hexdigest()
    put = PutFile(
        edit.path, edit.after, expect_sha256=sha256, validate=kind.validate(facts, edit.path), owner=facts.owner
    )
    actions: tuple[Action, ...] = (put,)
    undo: tuple[Action, ...] = ()
    how, by_hand = f"written only: {facts.unit or facts.name} is not running", ""
    held = left_to_the_user(host, facts)
    if held and not spec.allow_container_restart:
        how, by_hand = f"written only: {facts.name} is not restarted", held
    elif daemon.runs(host, facts):
        how, by_hand = f"written only: nothing here restarts {facts.name}", daemon.by_hand(host, facts)
        if daemon.reachable(host, facts, restart=False):
            how, by_hand = kind.title, ""
            after = (*all_healthy(host, facts), *asked_after(host, facts))
            # As an undo does it: dockerd keeps a default that only leaves its file.
            back = Rewrite((Edit(edit.path, edit.after, edit.before or ""),), ())
            actions += (*kind.undo(replace(facts, effective_default=previous), back), *after)
            undo = (
                *kind.apply(facts),
                kind.verify(facts, replace(want, default=facts.effective_default == want.handler)),
                *after,
            )
    return Step(
        f"{facts.label}.no-default",
        f"{edit.path}: default runtime {want.handler} → {previous}; {how}",
        WHY,
        actions,
        undo,
        unified(edit.path, edit.before, edit.after),
        by_hand=by_hand,
        for_undo=ForUndo(engine=facts.label),
        safe=not (held and spec.allow_container_restart),
    )
