"""containerd: the CRI section of its config, applied by a restart (pods keep running), proven by CRI Status."""

from __future__ import annotations

from gpunode import resources
from gpunode.editing import toml_text
from gpunode.engines.base import Alone, Disk, Edit, Removal, Rewrite
from gpunode.engines.containerd import alone, live, provenance
from gpunode.engines.containerd.cri_section import Around, around, cri_disabled, refuse_no_cdi, section
from gpunode.engines.containerd.dockers_own import kubelet_has_another
from gpunode.engines.containerd.edit import Changes, changes, drop_in_path
from gpunode.engines.containerd.imports import Files, gathered
from gpunode.engines.containerd.mixed import in_read_schema
from gpunode.engines.containerd.schema import merges
from gpunode.engines.containerd.trial import trial
from gpunode.engines.cri_daemon import CriDaemon
from gpunode.engines.provenance import Origin
from gpunode.errors import UnsupportedHost
from gpunode.model.action import Run
from gpunode.model.active import Trial
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec

# Distributions of Kubernetes that write containerd's config anew at every start.
GENERATED = {
    "/var/lib/rancher/k3s/": "k3s",
    "/var/lib/rancher/rke2/": "rke2",
    "/run/k0s/": "k0s",
    "/var/snap/microk8s/": "microk8s",
}


class Containerd(CriDaemon):
    """containerd as distributions, Docker's packages and its own releases install it."""

    name = "containerd"
    title = "restart, pods keep running"
    default_key = "default_runtime_name"
    config = "/etc/containerd/config.toml"
    labels = ""  # its unit, where a host runs several
    restart_keeps = "its containers keep running"
    movable = True
    takes_drop_in = True
    schemas = tuple(alone.SUITS)

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        from gpunode.engines.containerd import validate

        _refuse_generated(engine)
        refuse_no_cdi(engine, want)
        files = gathered(host, engine, drop_in_path(engine.config_path, want))
        known = _around(host, engine, files)
        found = changes(files, want, known)
        validate.refuse(files, want, known.merged)
        texts = found.texts or {found.main: files.text(found.main)}
        edits = tuple(Edit(path, files.texts.get(path), text) for path, text in texts.items())
        return Rewrite(edits, found.added, found.notes, binaries=_programs(files, found, want))

    def late(self, engine: RuntimeFacts, want: RuntimeSpec) -> bool:
        return want.cdi and engine.cdi is False

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        """Docker's packages ship containerd with CRI switched off: no kubelet can use it, and docker does not care."""
        file = host.file(engine.config_path)
        if file.text is None or engine.embedded_in or not kubelet_has_another(host, engine):
            return None
        off = cri_disabled(toml_text.read(file.path, file.text))
        if not off:
            return None
        return f"{file.path} switches CRI off, so containerd serves docker only; --runtime containerd switches it on"

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        # Does not report an unknown default runtime or a CRI plugin that does not load; verify() does.
        argv = ("sh", "-s", "--", engine.binary or "containerd", engine.config_path, path, "{candidate}")
        return Run(
            argv,
            timeout_s=30,
            stdin=resources.script("daemon/dump"),
            description="containerd config dump, on the new file",
        )

    def without(self, path: str, text: str, removal: Removal) -> str:
        from gpunode.engines.containerd import remove

        return remove.without(path, text, removal)

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return provenance.origins(host, engine)

    def trials(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[Trial, ...]:
        return (trial(host, engine, handler),)

    def alone(self, disk: Disk, asked: Alone, schema: int | None) -> Alone:
        return alone.read(disk, asked, schema, is_default=asked.main.path == self.config)


def _programs(files: Files, found: Changes, want: RuntimeSpec) -> tuple[str, ...]:
    """What the handler runs once the changes are made."""
    for path, text in found.texts.items():
        files = files.having(path, text)
    options = section(live.engine(files, found.main), "runtimes", want.handler, "options")
    return (str(options["BinaryName"]),) if options.get("BinaryName") else ()


def _refuse_generated(engine: RuntimeFacts) -> None:
    owner = next((name for directory, name in GENERATED.items() if engine.config_path.startswith(directory)), None)
    if owner or engine.snap:
        raise UnsupportedHost(
            f"this containerd belongs to {owner or 'a snap'}",
            evidence=f"{engine.config_path} is written anew at every start",
            remedy=f"--runtime {owner} configures it using {owner}'s native mechanism"
            if owner
            else "leave it out: --runtime docker, or --runtime none",
        )


def _around(host: HostFacts, engine: RuntimeFacts, files: Files) -> Around:
    return around(host, engine, live.effective(engine, in_read_schema(files)), keep_runc=not merges(engine.version))
