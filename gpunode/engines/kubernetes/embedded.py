"""Kubernetes distributions with a containerd of their own: the catalog's rows, and what is the same for all of them."""

from __future__ import annotations

from posixpath import dirname

from gpunode.catalog.runtimes import kubernetes_distribution
from gpunode.editing import toml_text
from gpunode.engines import drop_ins
from gpunode.engines.base import Edit, Rewrite
from gpunode.engines.containerd.cri_section import around, normal, refuse_no_cdi, wanted
from gpunode.engines.containerd.schema import refuse_wrong_types
from gpunode.engines.cri_daemon import CriDaemon
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.remedy import Remedy, RepairAction


class Distribution(CriDaemon):
    """A distribution that writes its containerd's configuration itself, from files of its own."""

    embedded = True

    @property
    def config(self) -> str:
        return kubernetes_distribution(self.name).config

    def around(self, main: str) -> tuple[str, ...]:
        directory, reads = dirname(main), kubernetes_distribution(self.name).reads
        return (
            *(f"{reads}/config.yaml", f"{reads}/config.yaml.d/*.[yY]*", f"{reads}/*.toml"),
            *(f"{directory}/*.tmpl", f"{directory}/*.toml"),
        )


def refuse_too_old(engine: RuntimeFacts) -> None:
    """Raises UnsupportedHost for a release that does not read what gpunode would write."""
    row = kubernetes_distribution(engine.name)
    if row.understands(engine.embedded_in):
        return
    listed = ", ".join(".".join(map(str, release)) for release in row.since)
    raise UnsupportedHost(
        f"{engine.name} {engine.embedded_in} is too old: its default runtime cannot be configured",
        evidence=f"{row.why}; first releases: {listed} ({row.grade}: {row.source})",
        remedy=Remedy(RepairAction.UPGRADE, f"upgrade {engine.name}, or leave it out with --runtime"),
    )


def with_handler(
    host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec, file: FileFacts, version: int, *, keep_runc: bool
) -> Rewrite:
    """The CRI section of one file of containerd's with the handler in it.

    Raises ConfigFileError for a file that cannot be edited safely, UnsupportedHost for a containerd without CDI.
    """
    refuse_no_cdi(engine, want)
    plain = drop_ins.load(file, "containerd")
    refuse_wrong_types(file.path, plain)
    dump = toml_text.load("containerd config dump", engine.merged_config or "")
    known = around(host, engine, normal(dump), keep_runc=keep_runc)
    result = wanted(plain, version, want, known)
    after = toml_text.rewrite(file.path, file.text or "", result.plain, ("plugins", result.plugin, "containerd"))
    if after == (file.text or ""):
        return Rewrite((Edit(file.path, file.text, after),), ())
    again = wanted(toml_text.load(file.path, after), version, want, known).added
    if again:
        raise ConfigFileError(
            f"{file.path} cannot be edited safely: the edit is not idempotent",
            evidence=f"a second pass would still change {', '.join(again)}; the file was not touched",
            remedy="add the runtime manually",
        )
    return Rewrite((Edit(file.path, file.text, after),), result.added, result.notes, binaries=(result.program,))
