"""k0s: a drop-in that k0s merges into the CRI configuration it writes, or the admin's own containerd.toml.

The first line of /etc/k0s/containerd.toml decides: `# k0s_managed=true` is k0s' own file, written anew at every
start; without that line the file is the admin's, and it is edited as any containerd's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from posixpath import dirname

from gpunode.advice import named
from gpunode.catalog.runtimes import kubernetes_distribution
from gpunode.catalog.versions import first_with
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.engines import drop_ins
from gpunode.engines.base import Removal, Rewrite
from gpunode.engines.containerd import provenance
from gpunode.engines.containerd.cri_section import V2, V3, containerd_section, normal, section
from gpunode.engines.containerd.engine import Containerd
from gpunode.engines.kubernetes import embedded
from gpunode.engines.provenance import Origin
from gpunode.errors import ConfigFileError
from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least

MANAGED = "# k0s_managed=true"
DEFAULT = "default_runtime_name"


class K0s(embedded.Distribution):
    """k0s from 1.27.1 on."""

    name = "k0s"
    title = "restart of k0s, pods keep running"
    default_key = "default_runtime_name"

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        main = host.file(engine.config_path)
        refuse_unread(main.path, main.unread)
        if main.text is not None and not is_managed(main.text):
            own = Containerd().rewrite(host, engine, want)
            note = f"{main.path} is not managed by k0s (its first line is not {MANAGED!r})"
            return own._replace(notes=(note, *own.notes))
        embedded.refuse_too_old(engine)
        return _drop_in(host, engine, want, main)

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        if dirname(path) != kubernetes_distribution(self.name).reads:
            return Containerd().validate(engine, path)
        # Not the whole configuration, but every fault of form and type in it is reported.
        argv = (engine.binary or "/var/lib/k0s/bin/containerd", "--config", "{candidate}", "config", "dump")
        return Run(argv, timeout_s=30, description="containerd config dump, on the new drop-in")

    def without(self, path: str, text: str, removal: Removal) -> str:
        from gpunode.engines.containerd import remove

        return remove.without(path, text, removal)

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return provenance.origins(host, engine)


def is_managed(text: str) -> bool:
    """Whether k0s writes this containerd.toml itself."""
    return text.partition("\n")[0].strip() == MANAGED


def needs_version_3(engine: RuntimeFacts) -> bool:
    """Whether this k0s exits on a drop-in of version 2."""
    return at_least(engine.embedded_in, first_with("k0s", "config-version-3"))


def old_drop_ins(host: HostFacts) -> tuple[str, ...]:
    """The drop-ins of k0s that are in version 2; what cannot be parsed is not among them."""
    found = []
    for file in drop_ins.files_in(host, kubernetes_distribution("k0s").reads, ".toml"):
        try:
            version = drop_ins.load(file, "k0s").get("version")
        except ConfigFileError:
            continue
        if version == 2:
            found.append(file.path)
    return tuple(found)


def _drop_in(host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec, main: FileFacts) -> Rewrite:
    directory = kubernetes_distribution("k0s").reads
    files = drop_ins.files_in(host, directory, ".toml")
    # Others may sort after it as they like: these decide.
    deciding = tuple(f for f in files if DEFAULT in _engine(f) or _knows(f, want.handler))
    path = drop_ins.path_to_write(deciding, f"{directory}/nvidia.toml", lambda f: _knows(f, want.handler))
    version, file = _version(engine, main), host.file(path)
    old = file.text
    file = _of_today(file, version, want.handler)
    found = drop_ins.load(file, "k0s").get("version", version)
    if found != version:
        raise ConfigFileError(
            f"{path} is in version {found}, and k0s writes version {version}",
            evidence="k0s merges files of one version; the file was not touched",
            remedy=f"write {named(path)} as version {named(str(version))}, or remove it, and run gpunode again",
        )
    # k0s merges into containerd's own defaults, where runc is.
    rewrite = embedded.with_handler(host, engine, want, file, version, keep_runc=False)
    if file.text != old:
        edits = (rewrite.main._replace(before=old),)
        rewrite = rewrite._replace(edits=edits, added=(f"version 2 → {version}", *rewrite.added))
    if not rewrite.changed:
        return rewrite
    note = f"k0s merges {directory} into the CRI configuration that it writes at every start"
    return rewrite._replace(notes=(note, *rewrite.notes))


def _of_today(file: FileFacts, version: int, handler: str) -> FileFacts:
    """A version 2 drop-in that has nothing but the handler, as an earlier gpunode wrote it, in the version of today's.

    k0s 1.36 exits on it (documented: its release notes, as read by somebody else). Any other is its owner's to convert.
    """
    plain = drop_ins.load(file, "k0s")
    table = section(plain, "plugins", V2)
    engine = section(table, "containerd")
    others = (
        plain.keys() - {"version", "plugins"}
        or section(plain, "plugins").keys() - {V2}
        or table.keys() - {"containerd", "enable_cdi"}
        or engine.keys() - {DEFAULT, "runtimes"}
        or section(engine, "runtimes").keys() - {handler}
    )
    if plain.get("version") != 2 or version < 3 or others:
        return file
    text = re.sub(r"(?m)^(\s*version\s*=\s*)2\b", rf"\g<1>{version}", (file.text or "").replace(V2, V3), count=1)
    same = toml_text.reads_as(text, {"version": version, "plugins": {V3: table}})
    return replace(file, text=text) if same else file


def _engine(file: FileFacts) -> Plain:
    return containerd_section(normal(drop_ins.load(file, "k0s")))


def _knows(file: FileFacts, handler: str) -> bool:
    return handler in section(_engine(file), "runtimes")


def _version(engine: RuntimeFacts, main: FileFacts) -> int:
    """The schema k0s writes; a drop-in must be in the same.

    One that does not run may be an upgraded one that exits on its drop-ins: its file is then from before the upgrade.
    """
    if not engine.active and needs_version_3(engine):
        return 3
    found = toml_text.load(main.path, main.text or "").get("version")
    if isinstance(found, int) and not isinstance(found, bool) and found > 1:
        return found
    return 3 if at_least(engine.version, first_with("containerd", "config-version-3")) else 2
