"""A plan as a person reads it once: the host, the choice and why, the steps in order, what is unchanged, what then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import Answer, Kept, Plan, Step
from gpunode.model.spec import RebootPolicy
from gpunode.model.summary import EngineVersion, HostSummary
from gpunode.render.action_text import action_lines
from gpunode.render.clean import clean
from gpunode.render.driver_text import choice_words, explanation, why_words
from gpunode.render.remedy_text import remedy_text
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, fold_hosts, size

LABEL = 11  # columns of "Unchanged  "
REASON = 23  # columns of "Alternatives rejected  "


def plan_text(plan: Plan, style: Style = PLAIN, *, target: str | None = None) -> str:
    """The plan in lines, no newline at the end; `target` stands for several hosts with the same plan."""
    lines = _summary(plan, target, style)
    if style.verbose > 0 and plan.driver:
        lines += ["", *_explanation(plan, plan.driver, style)]
    if plan.steps:
        lines += ["", *_steps(plan, style)]
    lines += ["", *_ending(plan, style)]
    return "\n".join(lines)


def explanation_text(plan: Plan, style: Style = PLAIN) -> str:
    """The host, the driver's choice, and why it is this one; no steps."""
    lines = _explanation(plan, plan.driver, style) if plan.driver else ["No driver is chosen here."]
    return "\n".join([*_summary(plan, None, style), "", *lines])


def _explanation(plan: Plan, choice: DriverChoice, style: Style) -> list[str]:
    """Each line as wide as the terminal; the label stands once."""
    lines, before = [], ""
    for label, text in explanation(plan, choice):
        lines += hang(style, f"{'' if label == before else label:<{REASON}}", text)
        before = label
    return lines


def plans_text(plans: Sequence[Plan], style: Style = PLAIN) -> str:
    """Plans of several hosts; the same plan is shown once, under all its hosts' names."""
    groups: dict[str, list[Plan]] = {}
    for plan in plans:
        groups.setdefault(plan_text(plan, style, target="?"), []).append(plan)
    return "\n\n".join(
        plan_text(same[0], style, target=fold_hosts(p.target for p in same) if len(same) > 1 else None)
        for same in groups.values()
    )


def _summary(plan: Plan, several: str | None, style: Style) -> list[str]:
    # The host's own name follows the target; several hosts have several, and a person knows them as they typed them.
    name = clean(several or plan.target)
    own = "" if several or _same_name(plan.hostname, plan.target) else clean(plan.hostname)
    lead = paint(style, "head", name) + (f" ({own})" if own else "") + "   "
    width = len(name) + (len(own) + 3 if own else 0) + 3
    lines = hang(style, lead, _host_words(plan.about), lead_width=width)
    if plan.driver:
        lines += ["", *hang(style, f"{'Driver':<{LABEL}}", choice_words(plan.driver))]
        lines += hang(style, " " * LABEL, f"why: {why_words(plan, plan.driver)}")
    if plan.undo and plan.undo.runs:
        runs = dict.fromkeys(run.rpartition(".")[0] or run for run in plan.undo.runs)
        lines += ["", *hang(style, f"{'Undo':<{LABEL}}", ", ".join(runs))]
    return lines


def _host_words(host: HostSummary) -> str:
    """ "Ubuntu 24.04 · Linux 6.8.0-51-generic · 8 × H100 SXM5 80GB, 4 × NVSwitch · docker 28.5.2" """
    hardware = [f"{gpu.count} × {gpu.model}" for gpu in host.gpus]
    hardware += [f"{host.nvswitches} × NVSwitch"] if host.nvswitches else []
    engines = [_engine_words(engine) for engine in host.engines]
    words = [host.system, f"Linux {host.kernel}"]
    return " · ".join([*words, ", ".join(hardware) or "no NVIDIA GPU", ", ".join(engines) or "no container engine"])


def _engine_words(engine: EngineVersion) -> str:
    if engine.kubernetes:
        return f"{engine.name} {engine.kubernetes}" + (f" with containerd {engine.version}" if engine.version else "")
    return f"{engine.name} {engine.version}" if engine.version else engine.name


def _same_name(hostname: str, target: str) -> bool:
    """Whether `root@gpu07.example:22` needs no "gpu07" next to it."""
    dialled = target.rpartition("@")[2].partition(":")[0]
    return not hostname or hostname.partition(".")[0].lower() == dialled.partition(".")[0].lower()


def _steps(plan: Plan, style: Style) -> list[str]:
    steps, answers = plan.steps, {answer.step: answer for answer in plan.answers}
    names = min(max(len(s.id) for s in steps), 24) + 2
    lines = []
    for number, step in enumerate(steps, 1):
        lead = f"{number:>3}  {step.id:<{names}}"
        lines += hang(style, lead, step.title)
        lines += _answer(answers.get(step.id), len(lead), style)
        if style.verbose > 0:
            lines += _details(step, style)
    return lines


def _answer(answer: Answer | None, indent: int, style: Style) -> list[str]:
    """ "the resolver: install 14, upgrade 1 (libc6 2.36-9)": what is more than an install is named."""
    if answer is None or not (answer.changes or answer.refused):
        return []
    if answer.refused:
        return hang(style, " " * indent, f"setup would stop here and change nothing: {answer.refused}")
    words = [change.split(" ", 1) for change in answer.changes]
    counts = Counter(word[0] for word in words)
    more = [f"{verb} {rest[0]}" for verb, *rest in words if verb != "install" and rest][:8]
    changes = ", ".join(f"{verb} {count}" for verb, count in counts.items()) + (f" ({'; '.join(more)})" if more else "")
    lines = hang(style, " " * indent, f"the resolver would {changes}")
    if answer.mixed:
        lines += hang(
            style, " " * indent, f"the driver's packages would have several versions: {', '.join(answer.mixed)}"
        )
    return lines


def _details(step: Step, style: Style) -> list[str]:
    lines = hang(style, " " * 5 + "why: ", step.why) if step.why else []
    for action in step.actions:
        for word, text in action_lines(action):
            lines += hang(style, f"     {word}: ", text)
        if style.verbose > 1 and isinstance(action, Run):
            lines += [" " * 7 + clean(line) for line in action.stdin.splitlines()]
    if style.verbose > 1:
        for word, text in (pair for action in step.undo for pair in action_lines(action)):
            lines += hang(style, f"     if it fails, {word}: ", text)
    lines += [_diff_line(line, style) for line in step.diff.splitlines()]
    return [*lines, ""]


def _diff_line(line: str, style: Style) -> str:
    meaning = {"+": "good", "-": "bad", "@": "dim"}.get(line[:1])
    shown = clean(line)
    return " " * 7 + (paint(style, meaning, shown) if meaning else shown)


def _ending(plan: Plan, style: Style) -> list[str]:
    unchanged = [kept.text for kept in plan.kept if not kept.refused]
    lines = [("Unchanged", " · ".join(unchanged))] if unchanged else []
    lines += [pair for kept in plan.refused for pair in refusal_words(kept)]
    lines += [("Left", left.text) for left in (plan.undo.left if plan.undo else ())]
    lines += [("Lost", lost.text) for lost in (plan.undo.lost if plan.undo else ())]
    lines += _then(plan)
    if plan.steps and style.verbose == 0:
        lines.append(("Details", f"-v shows why, commands and diffs of {_all(len(plan.steps))}"))
    if plan.steps:
        lines.append(("Total", _total(plan)))
    return [line for label, text in lines for line in hang(style, f"{label:<{LABEL - 2}}  ", text)]


def refusal_words(kept: Kept, hosts: Sequence[str] = ()) -> list[tuple[str, str]]:
    """A part that is refused, with its labels. `hosts`: those of its remedy, () where gpunode runs on the host."""
    found = [("Refused", f"{kept.id}: {kept.text}"), ("Evidence", kept.evidence)]
    return [pair for pair in (*found, ("Remedy", remedy_text(kept.remedy, hosts))) if pair[1]]


def _then(plan: Plan) -> list[tuple[str, str]]:
    """What comes after the steps, with its label."""
    if plan.empty:
        rest = "the rest of this host matches the spec" if plan.refused else "this host matches the spec"
        nothing = "there is nothing to undo" if plan.undo else rest
        return [("Then", f"no changes: {nothing}")]
    if plan.reboot and plan.console:
        return [("Then", f"reboot once: {plan.reboot}"), ("Console", plan.console)]
    if plan.reboot:
        again = plan.spec.reboot is RebootPolicy.IF_NEEDED
        how = "setup does it and continues" if again else "--reboot if-needed does it and continues"
        return [("Then", f"reboot once: {plan.reboot} ({how})")]
    if plan.by_hand:
        return [("Manual step", words) for words in plan.by_hand]
    if plan.replan_after:
        return [("Then", "re-probe and re-plan: packages may change configuration")]
    return []


def _total(plan: Plan) -> str:
    """ "11 steps · 2 engine restarts (docker, containerd) · no reboot expected" """
    units = [unit.removesuffix(".service") for unit in plan.restarts]
    restarts = f"{count(len(units), 'engine restart')} ({', '.join(units)})" if units else "no engine restart"
    reboot = "1 reboot" if plan.reboot else "no reboot expected"
    return " · ".join((count(len(plan.steps), "step"), *_download(plan), restarts, reboot))


def _download(plan: Plan) -> list[str]:
    """What the resolver would fetch, where it was asked and says so."""
    sizes = [answer.download_bytes for answer in plan.answers if answer.download_bytes is not None]
    return [f"download {size(sum(sizes))}"] if sizes else []


def _all(steps: int) -> str:
    return "the step" if steps == 1 else f"all {count(steps, 'step')}"
