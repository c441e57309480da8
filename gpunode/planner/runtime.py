"""Container engines: which get the nvidia runtime, and the steps that make their running daemons use it."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Action, Kept, PutFile, Step
from gpunode.model.spec import RuntimeSpec, Spec
from gpunode.runtimes.base import Edit, Rewrite, Runtime
from gpunode.runtimes.diffs import unified
from gpunode.runtimes.registry import engine

Outcome = Step | Kept


def runtime_steps(host: HostFacts, spec: Spec) -> tuple[tuple[Step, ...], tuple[Kept, ...]]:
    """What each chosen engine needs, and what is right already.

    Raises UnsupportedHost for an engine that was named and is not there, ConfigFileError for a file that cannot be
    edited safely.
    """
    found = _chosen(host, spec)
    if not found and spec.runtimes is None:
        return (), (Kept("runtime", "no container engine was found"),)
    outcomes = [_outcome(host, spec, facts) for facts in found]
    return tuple(o for o in outcomes if isinstance(o, Step)), tuple(o for o in outcomes if isinstance(o, Kept))


def _chosen(host: HostFacts, spec: Spec) -> tuple[RuntimeFacts, ...]:
    if spec.runtimes is None:
        return host.runtimes
    there = ", ".join(r.name for r in host.runtimes) or "none"
    found = []
    for name in spec.runtimes:
        facts = host.runtime(name)
        if facts is None:
            raise UnsupportedHost(
                f"{name} is not installed on {host.target}",
                evidence=f"container engines found: {there}",
                remedy=f"install {name}, or name one that is there with --runtime, or --runtime auto",
            )
        found.append(facts)
    return tuple(found)


def _outcome(host: HostFacts, spec: Spec, facts: RuntimeFacts) -> Outcome:
    runtime, want, step_id = engine(facts.name), spec.runtime, f"{facts.name}.default"
    reason = runtime.idle(host, facts) if spec.runtimes is None else None
    if reason is not None:
        return Kept(step_id, reason)
    rewrite = runtime.rewrite(host, facts, want)
    runs = facts.active and host.init == "systemd"
    if not rewrite.changed and not runs:
        return Kept(step_id, f"{rewrite.main.path} is right; {facts.unit} is not running")
    if not rewrite.changed and _in_force(facts, want):
        return Kept(step_id, _right(facts, want))
    return _step(host, spec, facts, rewrite, runs=runs)


def _step(host: HostFacts, spec: Spec, facts: RuntimeFacts, rewrite: Rewrite, *, runs: bool) -> Step:
    runtime = engine(facts.name)
    restart = rewrite.needs_restart and _may_restart(facts, spec)
    edits = [edit for edit in rewrite.edits if edit.changed]
    actions: tuple[Action, ...] = tuple(_put(host, facts, edit, runtime) for edit in edits)
    undo: tuple[Action, ...] = ()
    if runs:
        actions += (*runtime.apply(facts, restart=restart), runtime.verify(facts, spec.runtime))
        undo = runtime.undo(facts, rewrite, restart=restart)
    how = ("restart" if restart else runtime.title) if runs else f"written only: {facts.unit} is not running"
    what = ", ".join(rewrite.added) or f"is right, but the running daemon {_runs_with(facts)}"
    return Step(
        f"{facts.name}.default",
        f"{' and '.join(edit.path for edit in edits) or rewrite.main.path}: {what}; {how}",
        _why(facts, spec, rewrite, restart=restart, runs=runs),
        actions,
        undo,
        "".join(unified(edit.path, edit.before, edit.after) for edit in edits),
    )


def _put(host: HostFacts, facts: RuntimeFacts, edit: Edit, runtime: Runtime) -> PutFile:
    return PutFile(
        edit.path,
        edit.after,
        mode=edit.mode,
        expect_sha256=host.file(edit.path).sha256 if edit.before is not None else None,
        validate=runtime.validate(facts, edit.path),
    )


def _may_restart(facts: RuntimeFacts, spec: Spec) -> bool:
    """A restart of dockerd ends its containers, unless live-restore is on."""
    return bool(facts.live_restore) or facts.containers_running == 0 or spec.allow_container_restart


def _in_force(facts: RuntimeFacts, want: RuntimeSpec) -> bool:
    return facts.effective_default == want.handler if want.default else want.handler in facts.handlers


def _right(facts: RuntimeFacts, want: RuntimeSpec) -> str:
    if want.default:
        return f"{facts.name} runs with {want.handler} as its default runtime ({facts.effective_source})"
    return f"{facts.name} knows the runtime {want.handler} ({facts.effective_source})"


def _runs_with(facts: RuntimeFacts) -> str:
    return f"still runs with {facts.effective_default}" if facts.effective_default else "does not say what it runs with"


def _why(facts: RuntimeFacts, spec: Spec, rewrite: Rewrite, *, restart: bool, runs: bool) -> str:
    default = spec.runtime.default
    reasons = [
        "every new container and pod gets its GPUs without naming a runtime; those that run keep the one they have"
        if default
        else f"containers and pods that name the runtime {spec.runtime.handler} get GPUs; the default stays"
    ]
    reasons += rewrite.notes
    if runs and rewrite.needs_restart and not restart:
        running = facts.containers_running
        count = "containers may run" if running is None else f"{running} containers run"
        reasons.append(
            f"{count} without live-restore, so {facts.name} is not restarted now (--allow-container-restart does it)"
        )
    if facts.cri_error:
        reasons.append(f"before this step its CRI did not answer: {facts.cri_error}")
    return "; ".join(reasons)
