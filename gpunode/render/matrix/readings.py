"""What a column of the fleet's page says of one host, read from its facts and its checks. None: not known."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import NamedTuple

from gpunode.masking import form_of, masked
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.report import CheckReport, Severity

FABRIC_MANAGER = "nvidia-fabricmanager.service"
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
DAY_S = 86400


class Seen(NamedTuple):
    """One host that answered."""

    facts: HostFacts
    models: tuple[str, ...]  # of its GPUs, in bus order
    system: str  # "Ubuntu 24.04"; "" where it is not known


class Cell(NamedTuple):
    text: str
    order: tuple[float, ...] = ()  # sorts before the text does
    since_s: int | None = None  # in place of a text: the days since then, which are counted when all hosts have ended

    def at(self, at_s: float) -> Cell:
        """With its text. `at_s`: when the checks ended, in seconds since the epoch."""
        if self.since_s is None:
            return self
        days = max(0, int(at_s - self.since_s) // DAY_S)
        return Cell(f"{days} d", (days,))


def failing(report: CheckReport) -> Cell | None:
    """The causes of what is worst: a warning that explains an error is one."""
    worst = Severity.ERROR if report.failures else Severity.WARNING
    causes = [cause.id for cause in report.causes if report.weight(cause) is worst]
    ids = causes or [result.id for result in report.failures or report.warnings]  # of what explains each other
    return Cell(", ".join(ids), (-len(report.failures), -len(report.warnings))) if ids else None


def gpus(seen: Seen) -> Cell:
    models = Counter(seen.models)
    return Cell(" + ".join(f"{number} × {name}" for name, number in sorted(models.items())) or "none")


def gpu_models(seen: Seen) -> str | None:
    """Without their number: a host that has lost a GPU differs from the others of its group."""
    return " + ".join(sorted(set(seen.models))) or None


def system(seen: Seen) -> Cell | None:
    return Cell(seen.system) if seen.system else None


def kernel(seen: Seen) -> Cell | None:
    runs, boots = seen.facts.kernel.release, seen.facts.kernel.next_boot
    if not runs:
        return None
    return Cell(runs if boots in (None, runs) else f"{runs}, next {boots}")


def driver(seen: Seen) -> Cell:
    loaded, installed = seen.facts.driver.loaded, seen.facts.driver.installed
    if loaded is None:
        return Cell(f"{installed}, not loaded" if installed else "none")
    return Cell(loaded if installed in (None, loaded) else f"{loaded}, {installed} installed")


def module(seen: Seen) -> Cell | None:
    flavour = seen.facts.driver.loaded_flavour or seen.facts.driver.installed_flavour
    return Cell(flavour) if flavour else None


def libraries(seen: Seen) -> Cell | None:
    """By the names of the files behind the loader's names: /usr/lib/.../libcuda.so.595.91.07."""
    paths = [path for name in DRIVER_LIBRARIES for path in seen.facts.driver.libraries.get(name, ())]
    versions = {path.rpartition(".so.")[2] or path for path in paths}
    return Cell(", ".join(sorted(versions))) if versions else None


def fabric_manager(seen: Seen) -> Cell | None:
    unit = seen.facts.services.get(FABRIC_MANAGER)
    if unit is None:
        return None
    return Cell("not installed" if unit.load == "not-found" else unit.active)


def toolkit(seen: Seen) -> Cell:
    return Cell(seen.facts.toolkit.version or "none")


def _of_root(seen: Seen) -> list[RuntimeFacts]:
    return [engine for engine in seen.facts.runtimes if not engine.user]


def engines(seen: Seen) -> Cell:
    return Cell(", ".join(map(_called, _of_root(seen))) or "none")


def _called(engine: RuntimeFacts) -> str:
    version = engine.embedded_in or engine.version
    return f"{engine.label} {version}" if version else engine.label


def handlers(seen: Seen) -> Cell | None:
    """The handler alone where there is one engine, or all have the same."""
    return _each({engine.label: engine.effective_default for engine in _of_root(seen)})


def cgroup_driver(seen: Seen) -> Cell | None:
    found = {
        engine.label: _cgroup(engine.systemd_cgroup.get(engine.effective_default or "")) for engine in _of_root(seen)
    }
    return _each({**found, "kubelet": seen.facts.kubernetes.kubelet_cgroup_driver})


def _cgroup(systemd: bool | None) -> str | None:
    return None if systemd is None else "systemd" if systemd else "cgroupfs"


def _each(found: dict[str, str | None]) -> Cell | None:
    known = {who: what for who, what in found.items() if what}
    if not known:
        return None
    alike, *others = dict.fromkeys(known.values())
    return Cell(", ".join(f"{who} {what}" for who, what in known.items()) if others else alike)


def cdi_age(seen: Seen) -> Cell | None:
    written = [at for path in seen.facts.toolkit.cdi_specs if (at := seen.facts.file(path).written_at) is not None]
    return Cell("", since_s=max(written)) if written else None


def config_hash(seen: Seen) -> Cell | None:
    """Of what the engines read, as it is without its secrets: by the hash of the true text, short ones could be
    guessed. Files that could not be read leave it unknown.
    """
    paths = dict.fromkeys(path for engine in _of_root(seen) for path in (engine.config_path, *engine.imports) if path)
    files = [file for path in paths if (file := seen.facts.file(path)).exists]
    if any(file.text is None for file in files):
        return None
    if not files:
        return Cell("no files") if paths else None
    whole = hashlib.sha256()
    for file in files:
        text = masked(file.text or "", form_of(file.path))
        for part in (file.path, text):
            whole.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return Cell(whole.hexdigest()[:8])


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """gpu2 before gpu10: numbers by their value. Bounded, as a host may have a number of any length."""
    pieces = re.findall(r"\d{1,18}|\D+", text[:200].casefold())
    return tuple((0, int(piece), "") if piece[0].isdecimal() else (1, 0, piece) for piece in pieces)
