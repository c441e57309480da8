"""What `runtime show` prints: each engine's effective default and where its settings come from."""

from __future__ import annotations

from typing import Any

from gpunode.advice import meant
from gpunode.cli.hosts import look_at, open_hosts
from gpunode.cli.options.groups import HostOptions, QuietOptions
from gpunode.cli.results import Runtimes, choose, over_ssh, say_problems, show_result
from gpunode.cli.verbs.detect import observed
from gpunode.engines.provenance import Origin
from gpunode.engines.registry import ENGINES, engine
from gpunode.errors import UsageError, worst
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.report import HostOutcome
from gpunode.render.encode import dumps
from gpunode.render.style import Style, hang
from gpunode.values import dataclass


@dataclass(frozen=True)
class Shown:
    """One engine of one host."""

    engine: RuntimeFacts
    origins: tuple[Origin, ...]

    @property
    def requested(self) -> str | None:
        """The default that the files or flags ask for; None where they ask for none."""
        found = next((o for o in self.origins if o.setting == "default runtime"), None)
        return found.value if found and found.source != "built in" else None

    @property
    def differs(self) -> bool:
        """The daemon runs with another default than its files ask for: it was not restarted since."""
        effective = self.engine.effective_default
        return None not in (effective, self.requested) and effective != self.requested


def show_runtimes(name: str | None, hosts: HostOptions, output: QuietOptions) -> int:
    """Raises UsageError for a name that is no engine's."""
    choose(output, Runtimes)
    if name is not None and name.partition("@")[0] not in ENGINES:
        raise UsageError(
            f"{name!r} is not a runtime gpunode knows",
            evidence=f"{meant(name.partition('@')[0], tuple(ENGINES))}it knows {', '.join(ENGINES)}",
            remedy="name one",
        )
    with open_hosts(hosts) as named:
        report = look_at(named, hosts, output, observed)
    show_result(Runtimes(report, {h.target: _shown(h.facts, name) for h in report.hosts if h.facts}), output)
    say_problems(report, ssh=over_ssh(named))
    return int(worst(h.code for h in report.hosts))


def _shown(host: HostFacts, name: str | None) -> tuple[Shown, ...]:
    return tuple(Shown(e, engine(e.name).origins(host, e)) for e in host.runtimes if name in (None, e.name, e.label))


def page(result: Runtimes, style: Style) -> str:
    shown = result.shown
    return "\n\n".join(_text(h, shown[h.target], style) for h in result.report.hosts if h.target in shown)


def _text(host: HostOutcome, shown: tuple[Shown, ...], style: Style) -> str:
    lines = hang(style, "", f"{host.target}" + ("" if shown else "   no container engine was found"))
    for one in shown:
        lines += ["", *_engine(one, style)]
    return "\n".join(lines)


def _engine(shown: Shown, style: Style) -> list[str]:
    engine = shown.engine
    asked = f"default {engine.effective_default}, by {engine.effective_source}" if engine.effective_default else ""
    state = asked or ("it did not report what it runs with" if engine.active else f"{engine.unit} is not running")
    lines = hang(style, f"{engine.label}   ", f"{engine.version or 'version unknown'} · {state}")
    if shown.differs:
        differs = f"its files ask for {shown.requested}: it was not reloaded since they changed"
        lines += hang(style, "  differs   ", differs)
    rows = [(o.setting, o.value or "-", o.where) for o in shown.origins]
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)] if rows else [0, 0]
    return lines + [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]


def json_whole(result: Runtimes, style: Style) -> str:
    return dumps({"schema": SCHEMA, "hosts": _hosts(result)})


def json_lines(result: Runtimes, style: Style) -> str:
    return "".join(dumps({"schema": SCHEMA, **host}, indent=None) + "\n" for host in _hosts(result))


def _hosts(result: Runtimes) -> list[dict[str, Any]]:
    return [_data(h, result.shown.get(h.target, ())) for h in result.report.hosts]


SCHEMA = "gpunode.runtime-show/2"


def _data(host: HostOutcome, shown: tuple[Shown, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {"target": host.target, "code": int(host.code)}
    if host.problem:
        return {**data, "problem": host.problem, "evidence": host.evidence, "remedy": host.remedy}
    if host.left_out:
        return {**data, "left_out_why": host.left_out}
    return {**data, "runtimes": [_engine_data(one) for one in shown]}


def _engine_data(shown: Shown) -> dict[str, Any]:
    engine = shown.engine
    return {
        "name": engine.name,
        "version": engine.version,
        "unit": engine.unit,
        "active": engine.active,
        "config_path": engine.config_path,
        "imports": engine.imports,
        "effective_default": engine.effective_default,
        "effective_source": engine.effective_source,
        "differs_from_files": shown.differs,
        "handlers": engine.handlers,
        "settings": shown.origins,
    }
