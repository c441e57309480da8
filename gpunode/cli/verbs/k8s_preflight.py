"""gpunode k8s preflight: what on this node stops or changes the kubelet at an upgrade of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from gpunode.cli.options.groups import HostOptions, QuietOptions, wanted
from gpunode.cli.options.verb import verb

if TYPE_CHECKING:
    import typer

    from gpunode.checks.upgrade.values import Effect, Note, Preflight
    from gpunode.cli.results import Preflighted
    from gpunode.errors import ExitCode
    from gpunode.fleet.host import Host
    from gpunode.model.report import HostOutcome
    from gpunode.model.versions import Release
    from gpunode.render.style import Style

SCHEMA = "gpunode.k8s-preflight/1"
COLOUR = {"stops": "bad", "changes": "warn", "unknown": "warn"}
LEAD = 14  # columns before a finding: its state and its release


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "preflight",
        help="Show what on a node stops or changes its kubelet at an upgrade to a release. Changes nothing.",
        examples=("gpunode k8s preflight --to 1.38", "gpunode k8s preflight --to 1.35 --ssh gpu[01-12]"),
    )(preflight)


def preflight(
    hosts: HostOptions,
    output: QuietOptions,
    to: Annotated[
        str | None, wanted("--to", metavar="VERSION", help="The release that the kubelet is to be: 1.38.")
    ] = None,
) -> int:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.results import Preflighted, choose, over_ssh, say_problems, show_result
    from gpunode.errors import worst

    release = _asked(to)
    choose(output, Preflighted)
    found: dict[str, Preflight] = {}
    with open_hosts(hosts) as named:
        ssh = over_ssh(named)
        report = look_at(named, hosts, output, lambda host: _looked_at(host, release, found))
    show_result(Preflighted(report, found, ssh), output)
    say_problems(report, ssh=ssh)
    return int(worst(h.code for h in report.hosts))


def _asked(to: str | None) -> Release:
    """Raises UsageError for what is no release, and for one of which nothing is known."""
    from gpunode.checks.upgrade.preflight import newest_release
    from gpunode.errors import UsageError
    from gpunode.kubernetes.release import kubernetes_release
    from gpunode.model.versions import written

    if to is None:
        raise UsageError("k8s preflight needs --to", remedy="name the release of the upgrade: --to 1.37")
    release, newest = kubernetes_release(to, "--to"), newest_release()
    if release > newest:
        raise UsageError(
            f"--to {written(release)} is a release of which gpunode knows nothing",
            evidence=f"the newest that is in its tables is {written(newest)}",
            remedy=f"name one up to {written(newest)}, or upgrade gpunode",
        )
    return release


def _looked_at(host: Host, release: Release, found: dict[str, Preflight]) -> HostOutcome:
    from gpunode.checks.upgrade.preflight import preflight as preflight_of
    from gpunode.cli.verbs.detect import observed
    from gpunode.model.report import HostOutcome

    facts = observed(host).facts
    assert facts is not None
    result = found[str(host)] = preflight_of(facts, release)
    return HostOutcome(str(host), _code(result), facts=facts)


def _code(result: Preflight) -> ExitCode:
    """What is not known is not shown to be fine."""
    from gpunode.errors import ExitCode

    return ExitCode.FAILED if result.count("stops") or result.count("unknown") else ExitCode.DONE


def page(result: Preflighted, style: Style) -> str:
    found = [(h.target, result.found[h.target]) for h in result.report.hosts if h.target in result.found]
    texts = [_text(target, one, style, ssh=result.ssh) for target, one in found]
    notes = dict.fromkeys(note for _, one in found for note in one.notes)  # once, however many hosts they are for
    return "\n\n".join([*texts, *(["\n".join(line for note in notes for line in _note(note, style))] if notes else [])])


def _text(target: str, found: Preflight, style: Style, *, ssh: bool) -> str:
    from gpunode.model.versions import written
    from gpunode.render.style import hang

    upgrade = found.upgrade
    today = f"{upgrade.name} {upgrade.version}" if upgrade.version else f"{upgrade.name}, its release not known,"
    lines = hang(style, "", f"{target}   {today} to {written(upgrade.to)}: {_summary(found)}")
    for effect in found.effects:
        lines += ["", *_effect(effect, (target,) if ssh else (), style)]
    return "\n".join(lines)


def _summary(found: Preflight) -> str:
    stops, changes, unknown = (found.count(state) for state in ("stops", "changes", "unknown"))
    if not (stops or changes or unknown):
        return "nothing on this node stops or changes it, as far as is known"
    parts = [f"{stops} {'thing stops' if stops == 1 else 'things stop'} it" if stops else "nothing known stops it"]
    parts += [f"{changes} {'thing changes' if changes == 1 else 'things change'} it"] if changes else []
    parts += [f"{unknown} not known"] if unknown else []
    return " · ".join(parts)


def _effect(effect: Effect, hosts: tuple[str, ...], style: Style) -> list[str]:
    from gpunode.model.versions import written
    from gpunode.render.check_text import detail
    from gpunode.render.remedy_text import remedy_text
    from gpunode.render.style import hang, paint

    since = written(effect.since) if effect.since else ""
    lead = f"{paint(style, COLOUR[effect.state], f'{effect.state:<8}')} {since:<4} "
    lines = hang(style, lead, effect.summary, lead_width=LEAD)
    lines += detail("evidence", effect.evidence, style)
    if effect.remedy:
        lines += detail("remedy", remedy_text(effect.remedy, hosts), style)
    return lines + (detail("source", effect.source, style) if effect.source else [])


def _note(note: Note, style: Style) -> list[str]:
    from gpunode.render.style import hang

    return hang(style, "note" + " " * (LEAD - 4), note.says + (f" ({note.source})" if note.source else ""))


def json_whole(result: Preflighted, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": SCHEMA, "hosts": [_data(h, result) for h in result.report.hosts]})


def json_lines(result: Preflighted, style: Style) -> str:
    from gpunode.render.encode import dumps

    each = ({"schema": SCHEMA, **_data(h, result)} for h in result.report.hosts)
    return "".join(dumps(one, indent=None) + "\n" for one in each)


def _data(host: HostOutcome, result: Preflighted) -> dict[str, Any]:
    from gpunode.model.versions import written

    data: dict[str, Any] = {"target": host.target, "code": int(host.code)}
    if host.problem:
        return {**data, "problem": host.problem, "evidence": host.evidence, "remedy": host.remedy}
    if host.left_out:
        return {**data, "left_out_why": host.left_out}
    found = result.found[host.target]
    upgrade = found.upgrade
    return {
        **data,
        "kubelet": {"name": upgrade.name, "version": upgrade.version},
        "to": written(upgrade.to),
        "effects": [_effect_data(one) for one in found.effects],
        "notes": [{"text": one.says, "source": one.source} for one in found.notes],
    }


def _effect_data(effect: Effect) -> dict[str, Any]:
    from gpunode.model.versions import written

    return {
        "state": effect.state,
        "kind": effect.kind,
        "since": written(effect.since) if effect.since else None,
        "summary": effect.summary,
        "evidence": effect.evidence,
        "action": effect.remedy.action.value,
        "remedy": effect.remedy.text,
        "source": effect.source,
    }
