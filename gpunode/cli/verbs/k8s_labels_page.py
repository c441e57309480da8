"""What `k8s labels --kubeconfig` shows: the difference before the question, and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpunode.cli.results import LabelsSet
    from gpunode.cli.verbs.k8s_labels_set import Difference
    from gpunode.kubernetes.label_changes import LabelChanges
    from gpunode.model.report import HostOutcome
    from gpunode.render.style import Style

SCHEMA = "gpunode.k8s-labels-set/1"


def difference_text(target: str, one: Difference, style: Style) -> str:
    from gpunode.render.style import hang, paint

    names = [change.name for change in one.changes.changes] + list(one.changes.left)
    width = max(map(len, names), default=0)
    lines = [*hang(style, "", f"{target}   node {one.node.name}: {_count(one.changes)}")]
    for name, before, after in one.changes.changes:
        sign, colour = ("-", "bad") if after is None else ("+", "good")
        value = f"{before} → {after}" if before is not None and after is not None else str(after or before or "")
        lines.append(f"{paint(style, colour, sign)} {name:<{width}}  {value}".rstrip())
    for name, why in one.changes.left.items():
        lines += hang(style, f"  {name:<{width}}  ", f"unchanged: {why}", lead_width=width + 4)
    return "\n".join(lines)


def _count(changes: LabelChanges) -> str:
    from gpunode.render.wording import count

    if not changes.changes:
        return f"no changes: {count(changes.same, 'label')} as the facts say"
    return f"{count(len(changes.changes), 'label')} to change, {changes.same} as the facts say"


def page(result: LabelsSet, style: Style) -> str:
    from gpunode.render.wording import count

    lines = []
    for host in result.report.hosts:
        one = result.differences.get(host.target)
        if one is None or host.problem:
            continue
        done = len(one.changes.changes)
        if done:
            lines.append(f"{host.target}   node {one.node.name}: {count(done, 'label')} changed")
        else:
            lines.append(difference_text(host.target, one, style))
    return "\n".join(lines)


def json_whole(result: LabelsSet, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": SCHEMA, "hosts": [_data(h, result) for h in result.report.hosts]})


def json_lines(result: LabelsSet, style: Style) -> str:
    from gpunode.render.encode import dumps

    each = ({"schema": SCHEMA, **_data(h, result)} for h in result.report.hosts)
    return "".join(dumps(one, indent=None) + "\n" for one in each)


def _data(host: HostOutcome, result: LabelsSet) -> dict[str, Any]:
    data: dict[str, Any] = {"target": host.target, "code": int(host.code)}
    one = result.differences.get(host.target)
    if one is not None:
        data |= {
            "node": one.node.name,
            "changed": not host.problem and bool(one.changes.changes),
            "changes": [change._asdict() for change in one.changes.changes],
            "unchanged": dict(one.changes.left),
        }
    if host.problem:
        data |= {"problem": host.problem, "evidence": host.evidence, "remedy": host.remedy}
    return data
