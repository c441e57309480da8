"""Container engines: which get the nvidia runtime, and the steps that make their running daemons use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpunode.advice import named as quoted
from gpunode.editing.diff import unified
from gpunode.engines.base import Edit, Engine, Rewrite
from gpunode.engines.daemon.commands import is_there
from gpunode.engines.handler import refuse_own
from gpunode.engines.kubernetes.for_pods import by_dra, runtime_wanted
from gpunode.engines.registry import engine
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import Action, PutFile
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import ForUndo, Kept, Step, engine_step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.planner.engines import daemon
from gpunode.planner.engines.kubelet.daemon import asked_after
from gpunode.planner.engines.low_level import refuse_shared, waits_for_toolkit
from gpunode.planner.engines.no_default import no_default
from gpunode.planner.engines.restart import Restart, restart_of
from gpunode.planner.engines.rootless import named, restart_words
from gpunode.planner.engines.taken_down import all_healthy
from gpunode.remedy import Remedy, RepairAction

Outcome = Step | Kept
Refusal = UnsupportedHost | ConfigFileError


def runtime_steps(host: HostFacts, spec: Spec, *, coming: bool = False) -> tuple[tuple[Step, ...], tuple[Kept, ...]]:
    """What each chosen engine needs, and what is unchanged: refused where gpunode cannot change it.

    `coming`: the plan installs the toolkit.

    Raises UnsupportedHost for an engine that was named and is not there; where engines are all that is wanted and
    each is refused, what the first one is refused for.
    """
    found = _chosen(host, spec)
    if not found and spec.runtimes is None:
        return (), (Kept("runtime", "no container engine was found"),)
    outcomes = _outcomes(host, spec, found, coming=coming)
    return tuple(o for o in outcomes if isinstance(o, Step)), tuple(o for o in outcomes if isinstance(o, Kept))


def _chosen(host: HostFacts, spec: Spec) -> tuple[RuntimeFacts, ...]:
    if spec.runtimes is None:
        return host.runtimes
    there = ", ".join(r.label for r in host.runtimes) or "none"
    found: list[RuntimeFacts] = []
    for name in spec.runtimes:
        # One host may run several containerds, each with its own config and socket.
        meant = named(host, name)
        if not meant:
            raise UnsupportedHost(
                f"{name} is not {'running' if '@' in name else 'installed'} on {host.target}",
                evidence=f"container engines found: {there}",
                remedy=Remedy(
                    RepairAction.UPGRADE, f"{_first(name)}, or name one that is there with --runtime, or --runtime auto"
                ),
            )
        found += meant
    return tuple(found)


def _first(name: str) -> str:
    kind, _, user = name.partition("@")
    if user and (unit := engine(kind).users_unit):
        seen = f"since rootless {kind} is detected only while it runs"
        return f"let {quoted(user)} start it (systemctl --user start {unit}), {seen}"
    return f"install {quoted(name)}"


def _outcomes(host: HostFacts, spec: Spec, found: Sequence[RuntimeFacts], *, coming: bool) -> list[Outcome]:
    """One for each engine. An engine without CDI is not changed, unless it was named or no other one has it."""
    outcomes: dict[str, tuple[Outcome, ...]] = {}
    refused: dict[str, Refusal] = {}
    for facts in found:
        of_it = replace(spec, runtime=runtime_wanted(spec, facts))
        try:
            outcome = _outcome(host, of_it, facts, coming=coming)
            outcomes[facts.label] = _with_no_default(host, spec, facts, outcome)
        except (UnsupportedHost, ConfigFileError) as error:
            refused[facts.label] = error
    others = any(spec.runtimes is not None or _wants(host, one) for one in found if one.label in outcomes)
    if refused and not others and spec.only == ("runtime",):
        raise next(iter(refused.values()))
    left_out = spec.runtimes is None and others
    for facts in found:
        if facts.label in refused:
            by_cdi = left_out and _only_cdi(host, spec, facts)
            outcomes[facts.label] = (_refused(engine_step(facts.label), refused[facts.label], by_cdi=by_cdi),)
    return [outcome for facts in found for outcome in outcomes[facts.label]]


def _wants(host: HostFacts, facts: RuntimeFacts) -> bool:
    return engine(facts.name).idle(host, facts) is None


def _refused(step_id: str, error: Refusal, *, by_cdi: bool) -> Kept:
    """The others are done without it."""
    if by_cdi:
        return Kept(step_id, f"{error.problem}, so --cdi does not change it")
    return Kept(step_id, error.problem, refused=True, evidence=error.evidence, remedy=error.remedy)


def _with_no_default(host: HostFacts, spec: Spec, facts: RuntimeFacts, outcome: Outcome) -> tuple[Outcome, ...]:
    idle = spec.runtimes is None and engine(facts.name).idle(host, facts) is not None
    return (outcome,) if idle else (outcome, *no_default(host, spec, facts, outcome))


def _only_cdi(host: HostFacts, spec: Spec, facts: RuntimeFacts) -> bool:
    """Whether a refused engine would be configured if CDI were not asked for."""
    if not spec.runtime.cdi:
        return False
    try:
        _outcome(host, replace(spec, runtime=replace(spec.runtime, cdi=False)), facts, coming=False)
    except (UnsupportedHost, ConfigFileError):
        return False
    return True


def _outcome(host: HostFacts, spec: Spec, facts: RuntimeFacts, *, coming: bool) -> Outcome:
    runtime, want, step_id = engine(facts.name), spec.runtime, engine_step(facts.label)
    reason = runtime.idle(host, facts) if spec.runtimes is None else None
    if reason is not None:
        return Kept(step_id, reason)
    refuse_own(runtime, want)
    refuse_shared(host, spec, facts)
    restarts = daemon.restarts(host, facts)
    if coming and (why := waits_for_toolkit(host, spec, facts, restarts=restarts)):
        return Kept(step_id, why, later=True, restarts=facts.unit if restarts else "")
    rewrite = runtime.rewrite(host, facts, want)
    if not rewrite.edits:
        return Kept(step_id, "; ".join(rewrite.notes))
    runs = daemon.runs(host, facts)
    if not rewrite.changed and not runs:
        return Kept(step_id, f"{rewrite.main.path} matches the spec; {_not_running(facts)}")
    right = not rewrite.changed and _default_in_force(facts, want)
    restart = restart_of(host, spec, facts, rewrite, coming=coming, right=right)
    if right and not restart.planned:
        text = _right(facts, want) if _in_force(facts, want) else f"{rewrite.main.path} has CDI on"
        return Kept(step_id, text, restart_words(facts) or restart.by_hand)
    if not rewrite.changed and (restart.held or not daemon.reachable(host, facts, restart=restart.planned)):
        words = restart.by_hand if restart.held else _words(host, facts)
        return Kept(
            step_id, f"{rewrite.main.path} matches the spec, but the running {facts.name} {_runs_with(facts)}", words
        )
    return _step(host, spec, facts, rewrite, restart)


def _step(host: HostFacts, spec: Spec, facts: RuntimeFacts, rewrite: Rewrite, needed: Restart) -> Step:
    runtime = engine(facts.name)
    failed = daemon.has_failed(host, facts)
    runs = daemon.runs(host, facts)
    restart = failed or needed.planned
    reached = failed or (runs and not needed.held and daemon.reachable(host, facts, restart=restart))
    after = (*all_healthy(host, facts), *asked_after(host, facts))
    edits = [edit for edit in rewrite.edits if edit.changed]
    # A running daemon would give the new runtime to each new container, there or not.
    actions: tuple[Action, ...] = tuple(map(is_there, rewrite.binaries)) if reached and edits else ()
    actions += tuple(_put(host, facts, edit, runtime) for edit in edits)
    undo: tuple[Action, ...] = ()
    if reached:
        actions += (*runtime.apply(facts, restart=restart), runtime.verify(facts, spec.runtime))
        actions += runtime.start_found(facts) if needed.missed and restart else ()
        actions += after
        # With its old file back, an engine that was down before is down again.
        undo = () if failed else (*runtime.undo(facts, rewrite, restart=restart), *after)
    unreached = runs and not reached and not needed.held
    how = _how(host, facts, runtime, needed, runs=runs or failed, reached=reached)
    what = ", ".join(rewrite.added) or f"matches the spec{_but(facts, spec.runtime)}"
    return Step(
        engine_step(facts.label),
        f"{' and '.join(edit.path for edit in edits) or rewrite.main.path}: {what}; {how}",
        "; ".join(dict.fromkeys(_why(facts, spec, rewrite, needed))),
        actions,
        undo,
        "\n".join(unified(edit.path, edit.before, edit.after) for edit in edits),
        by_hand=_words(host, facts) if unreached else restart_words(facts) or needed.by_hand,
        for_undo=ForUndo(engine=facts.label),
        safe=not (needed.planned and needed.lost),
    )


def _words(host: HostFacts, facts: RuntimeFacts) -> str:
    return f"{daemon.by_hand(host, facts)}   then gpunode setup again, which asks it"


def _how(host: HostFacts, facts: RuntimeFacts, runtime: Engine, needed: Restart, *, runs: bool, reached: bool) -> str:
    if not runs:
        return f"written only: {'an image is being built' if host.init == 'chroot' else _not_running(facts)}"
    if needed.held:
        return f"written only: a restart of {facts.name} would stop {needed.lost}"
    if not reached:
        return f"written only: nothing here restarts {facts.name}"
    if daemon.has_failed(host, facts):
        return f"start, since {facts.unit} has failed"
    if not needed.planned:
        return runtime.title
    return f"restart, which stops {needed.lost}" if needed.lost else "restart, no container stops"


def _not_running(facts: RuntimeFacts) -> str:
    return f"{facts.label} did not answer on {facts.socket}" if facts.user else f"{facts.unit} is not running"


def _put(host: HostFacts, facts: RuntimeFacts, edit: Edit, runtime: Engine) -> PutFile:
    return PutFile(
        edit.path,
        edit.after,
        mode=edit.mode,
        expect_sha256=host.file(edit.path).sha256 if edit.before is not None else None,
        validate=runtime.validate(facts, edit.path),
        owner=facts.owner,
    )


def _in_force(facts: RuntimeFacts, want: RuntimeSpec) -> bool:
    return _default_in_force(facts, want) and not (want.cdi and facts.cdi is False)


def _default_in_force(facts: RuntimeFacts, want: RuntimeSpec) -> bool:
    return facts.effective_default == want.handler if want.default else want.handler in facts.handlers


def _right(facts: RuntimeFacts, want: RuntimeSpec) -> str:
    cdi = " and has CDI on" if want.cdi else ""
    if want.default:
        return f"{facts.name} runs with {want.handler} as its default runtime{cdi} ({facts.effective_source})"
    return f"{facts.name} has the runtime {want.handler}{cdi} ({facts.effective_source})"


def _runs_with(facts: RuntimeFacts) -> str:
    return (
        f"still runs with {facts.effective_default}"
        if facts.effective_default
        else "does not report its default runtime"
    )


def _but(facts: RuntimeFacts, want: RuntimeSpec) -> str:
    return "" if _default_in_force(facts, want) else f", but the running daemon {_runs_with(facts)}"


def _why(facts: RuntimeFacts, spec: Spec, rewrite: Rewrite, needed: Restart) -> Iterator[str]:
    yield from (_offer(spec.runtime, by_dra=by_dra(spec, facts)), *rewrite.notes, *needed.reasons)
    if facts.cri_error:
        yield f"before this step its CRI did not answer: {facts.cri_error}"


def _offer(want: RuntimeSpec, *, by_dra: bool) -> str:
    """Who gets GPUs, and how they ask."""
    if want.default:
        return (
            "every new container and pod gets its GPUs without naming a runtime; those that run keep the one they have"
        )
    if by_dra:
        return "pods get their GPUs by CDI from the DRA driver; the default runtime is left as it is"
    if want.cdi:
        return (
            f"the default is unchanged: GPUs go to containers that ask for a CDI device (nvidia.com/gpu=0), and "
            f"to those that name the runtime {want.handler} (a RuntimeClass with that handler)"
        )
    return f"containers and pods that name the runtime {want.handler} get GPUs; the default is unchanged"
