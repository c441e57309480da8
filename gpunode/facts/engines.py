"""Engines other than docker and containerd: CRI-O, podman, and Kubernetes distributions that do not run."""

from __future__ import annotations

import re

from gpunode.catalog.runtimes import kubernetes_distributions, merged_by_rancher
from gpunode.facts.processes import Process, unit_of
from gpunode.facts.readers import Units
from gpunode.facts.release import key_values
from gpunode.facts.services import exec_words
from gpunode.facts.wire import Sections
from gpunode.model.facts import RuntimeFacts
from gpunode.model.files import is_candidate


def distribution_of(unit: str, config_path: str) -> str | None:
    """The distribution of Kubernetes whose unit or whose generated config this is; None: containerd by itself."""
    names = (
        c.name
        for c in kubernetes_distributions()
        if unit.startswith((c.name, f"snap.{c.name}")) or config_path == c.config
    )
    return next(names, None)


def distribution_version(sections: Sections, name: str) -> str | None:
    """ "k3s version v1.31.4+k3s1 (a562d090)", "v1.31.4+k0s.0" -> "1.31.4+k3s1" """
    return _version(sections.text(f"{name}:version"))


def own_files(sections: Sections, name: str) -> tuple[str, ...]:
    """k3s and rke2: their files that people write, in the order in which they are read."""
    directory = next(c.reads for c in kubernetes_distributions() if c.name == name)
    here = (path for path, file in sections.files.items() if file.exists and merged_by_rancher(directory, path))
    return tuple(sorted(here, key=lambda path: path.split("/")))


def stopped_distributions(
    units: Units, running: tuple[RuntimeFacts, ...], sections: Sections
) -> tuple[RuntimeFacts, ...]:
    """Installed, and its containerd does not run: what it would use is known from where it always keeps it."""
    found = []
    for one in kubernetes_distributions():
        unit = next((u for u in one.units if units.get(u, {}).get("LoadState") == "loaded"), None)
        if unit is None or any(r.name == one.name for r in running):
            continue
        version = distribution_version(sections, one.name)
        flags = exec_words(units[unit])[1:]
        found.append(
            RuntimeFacts(one.name, None, one.config, unit, one.socket, embedded_in=version, distribution_flags=flags)
        )
    return tuple(found)


def crio(sections: Sections, units: Units, running: tuple[Process, ...]) -> tuple[RuntimeFacts, ...]:
    """`crio:config` is what the running daemon reports, as TOML:

    [crio.runtime]
    default_runtime = "crun"
    [crio.runtime.runtimes.crun]
    """
    value = key_values(sections.text("crio"))
    if not value:
        return ()
    process = next((p for p in running if p.comm == "crio"), None)
    unit = (unit_of(process, units) if process else None) or "crio.service"
    config = sections.text("crio:config") or None
    default = re.search(r'^[ \t]*default_runtime[ \t]*=[ \t]*"([^"\n]+)"', config or "", re.MULTILINE)
    names = re.findall(r'^[ \t]*\[crio\.runtime\.runtimes\."?([^"\].\n]+)"?\][ \t]*$', config or "", re.MULTILINE)
    active = process is not None and units.get(unit, {}).get("ActiveState", "active") == "active"
    return (
        RuntimeFacts(
            name="crio",
            version=_version(sections.text("crio:version"), release_only=True),
            config_path=value.get("config", "/etc/crio/crio.conf"),
            unit=unit,
            socket=value.get("socket", "/var/run/crio/crio.sock"),
            binary=value.get("binary"),
            pid=process.pid if process else None,
            active=active,
            effective_default=default[1] if default else None,
            effective_source="crio status config" if default else "",
            handlers=tuple(sorted(set(names))),
            cdi=True if process else None,  # there is no switch for it
            imports=_below(sections, value.get("folder", "/etc/crio/crio.conf.d")),
            merged_config=config,
            cri_error="CRI-O runs, and its socket does not answer" if active and config is None else None,
            flags=(process.argv if process else exec_words(units.get(unit, {})))[1:],
            missing_binaries=missing_binaries(sections),
        ),
    )


def missing_binaries(sections: Sections) -> tuple[str, ...]:
    """Programs that files of engines and of the toolkit name, and that are not there or cannot be run."""
    lines = sections.text("handler_paths").splitlines()
    return tuple(line.removesuffix(" 0") for line in lines if line.endswith(" 0"))


def podman(sections: Sections) -> tuple[RuntimeFacts, ...]:
    """A podman for root, which has no daemon. Before its first use nothing is run, for that would set it up:

    podman version 5.4.2
    default=crun
    known=nvidia
    """
    answer = sections.commands.get("podman")
    if answer is None or answer.rc == 127:
        return ()
    value = key_values(answer.text)
    binary = next((t for t in sections.text("tools").split() if t.endswith("/podman")), "podman")
    broken = None if answer.rc == 0 else (answer.text.strip().splitlines() or ["podman info fails"])[-1]
    default = value.get("default") or None
    return (
        RuntimeFacts(
            name="podman",
            version=_version(answer.text, release_only=True),
            config_path="/etc/containers/containers.conf",
            unit="",
            socket="",
            binary=binary,
            active=True,
            effective_default=default,
            effective_source="podman info" if default else "",
            handlers=tuple(sorted({name for name in (default, value.get("known")) if name})),
            imports=_below(sections, "/etc/containers/containers.conf.d"),
            cdi=True,  # from 4.1 on, without a switch
            cri_error=broken,
        ),
    )


def _below(sections: Sections, directory: str) -> tuple[str, ...]:
    """The files of a directory and of those in it, in the order of their names, as CRI-O reads them."""
    below = (path for path, file in sections.files.items() if path.startswith(f"{directory}/") and file.exists)
    here = (path for path in below if not is_candidate(path))
    return tuple(sorted(here, key=lambda path: path.split("/")))


def _version(text: str, *, release_only: bool = False) -> str | None:
    found = re.search(r"\bv?(\d+\.\d+\.\d+)(\S*)", text)
    if found is None:
        return None
    return found[1] if release_only else found[1] + found[2]
