"""containerd: the CRI section of its config, applied by a restart that pods survive, proven by CRI Status."""

from __future__ import annotations

from typing import Any

from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import FileFacts, HostFacts, RuntimeFacts
from gpunode.model.plan import Action, Run
from gpunode.model.spec import RuntimeSpec
from gpunode.runtimes import scripts, tomltext
from gpunode.runtimes.base import Edit, Rewrite, refuse_unread
from gpunode.runtimes.criconfig import V1, V2, V3, Around, containerd_section, cri_disabled, section, wanted
from gpunode.runtimes.tomltext import Plain
from gpunode.runtimes.versions import at_least, release

# Distributions of Kubernetes that write containerd's config anew at every start.
GENERATED = {
    "/var/lib/rancher/": "k3s or rke2",
    "/run/k0s/": "k0s",
    "/etc/k0s/": "k0s",
    "/var/snap/microk8s/": "microk8s",
}
# enable_cdi: unknown to 1.6, off by default in 1.7, on by default from 2.0.
HAS_CDI, CDI_BY_DEFAULT = (1, 7), (2, 0)


class Containerd:
    """containerd as distributions, Docker's packages and its own releases install it."""

    name = "containerd"
    title = "restart, pods keep running"

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        _refuse_generated(engine)
        if want.cdi and engine.version and not at_least(engine.version, HAS_CDI):
            raise UnsupportedHost(
                f"containerd {engine.version} has no CDI",
                evidence="enable_cdi came with containerd 1.7",
                remedy="leave out --cdi, or upgrade containerd",
            )
        main = _read(host, engine.config_path)
        version = _version(engine, main)
        file, imported = _deciding_file(host, engine, main, version)
        around = Around(
            merged=_dump(engine),
            keep_runc=not at_least(engine.version, (2, 0)),
            kubelet_driver=host.kubernetes.kubelet_cgroup_driver if host.kubernetes.kubelet else None,
            cdi_by_default=at_least(engine.version, CDI_BY_DEFAULT),
        )
        plain = tomltext.load(file.path, file.text or "")
        _refuse_wrong_types(file.path, plain)
        result = wanted(plain, version, want, around)
        if imported and "version" not in plain:
            # A drop-in without a version takes the main file's.
            result.plain.pop("version", None)
        after = tomltext.rewrite(file.path, file.text or "", result.plain, ("plugins", result.plugin, "containerd"))
        _refuse_unsettled(file.path, after, version, want, around)
        changed = after != (file.text or "")
        notes = (f"{file.path} is imported by {main.path} and has the last word",) if imported else ()
        return Rewrite(
            (Edit(file.path, file.text, after if changed else file.text or ""),),
            result.added if changed else (),
            notes + (result.notes if changed else ()),
        )

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        """Docker's packages ship containerd with CRI switched off: no kubelet can use it, and docker does not care."""
        file = host.file(engine.config_path)
        if file.text is None or host.kubernetes.kubelet:
            return None
        off = cri_disabled(tomltext.load(file.path, file.text))
        if not off:
            return None
        return f"{file.path} switches CRI off, so containerd serves docker only; --runtime containerd switches it on"

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        if path != engine.config_path:
            return None  # an imported file is not a whole configuration: the binary cannot judge it alone
        # Says nothing about an unknown default runtime or a missing binary; verify() does.
        argv = (engine.binary or "containerd", "--config", "{candidate}", "config", "dump")
        return Run(argv, timeout_s=30, says="containerd config dump, on the new file")

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        # There is no reload: SIGHUP kills containerd. Pods live on in their shims.
        return (scripts.restart(engine.unit),)

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return scripts.verify(engine, want.handler if want.default else f"+{want.handler}")

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        if not rewrite.changed:
            # The file was right before this step, so there is no older one to run again.
            return (scripts.revive(engine.unit),)
        if engine.cri_error:
            # CRI was broken before this step, so there is no health to come back to.
            return (scripts.restart(engine.unit),)
        return (scripts.restart(engine.unit), scripts.verify(engine, engine.effective_default or "-"))


def _refuse_generated(engine: RuntimeFacts) -> None:
    owner = next((name for folder, name in GENERATED.items() if engine.config_path.startswith(folder)), None)
    if owner or engine.snap:
        raise UnsupportedHost(
            f"this containerd belongs to {owner or 'a snap'}",
            evidence=f"{engine.config_path} is written anew at every start",
            remedy=f"configure {owner or 'it'} by its own means; --runtime docker or --runtime none leaves it out",
        )


def _read(host: HostFacts, path: str) -> FileFacts:
    file = host.file(path)
    refuse_unread(file)
    return file


def _version(engine: RuntimeFacts, main: FileFacts) -> int:
    """The schema the file is in, or for an empty file the one this daemon wants. Raises where the two do not fit."""
    plain = tomltext.load(main.path, main.text or "")
    two = at_least(engine.version, (2, 0))
    if not plain:
        # Version 2 is read by every containerd from 1.3 on; an unknown one gets it too.
        return 3 if two else 2
    version = plain.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigFileError(
            f"{main.path}: version = {version!r} is not a whole number",
            evidence="containerd exits on it; the file was not touched",
            remedy="write version = 2 (containerd 1.3 and later) or version = 3 (2.0 and later)",
        )
    version = max(version, 1)
    if version == 1 and two:
        raise _misfit(
            engine,
            f"{main.path} is in schema version 1 (it has no top-level version line)",
            "containerd 2.0 to 2.2 silently ignores every CRI setting in such a file",
            f"convert it to version 3: plugins.{V1} becomes plugins.{V3!r}, and cri in disabled_plugins {V2!r}",
        )
    if version > _newest_schema(engine):
        raise _misfit(
            engine,
            f"{main.path} says version = {version}",
            "containerd 1.6 ignores the settings of a newer schema without a word, others exit",
            f"write it as version {_newest_schema(engine)}, or upgrade containerd",
        )
    return version


def _newest_schema(engine: RuntimeFacts) -> int:
    """By daemon: 1.x version 2, 2.0 to 2.2 version 3, 2.3 version 4 (containerd's RELEASES.md)."""
    have = release(engine.version)
    if have is None or have >= (2, 3):
        return 4
    return 3 if have >= (2, 0) else 2


def _misfit(engine: RuntimeFacts, problem: str, why: str, remedy: str) -> UnsupportedHost:
    return UnsupportedHost(f"{problem}, and the daemon is containerd {engine.version}", evidence=why, remedy=remedy)


def _deciding_file(host: HostFacts, engine: RuntimeFacts, main: FileFacts, version: int) -> tuple[FileFacts, bool]:
    """(file, it is an import) whose CRI settings are in force: the last that has any.

    On 1.x an imported file's CRI section replaces the main file's whole; on 2.x they are merged, and only a file
    that sets the default runtime, or legacy tables beside it, has the last word.
    """
    for path in reversed([p for p in engine.imports if p != main.path]):
        file = _read(host, path)
        if file.text is None:
            continue
        plain = tomltext.load(path, file.text)
        if not _overrides(plain, merges=at_least(engine.version, (2, 0))):
            continue
        other = plain.get("version", version)
        if other != version:
            raise _misfit(
                engine,
                f"{path} is in version {other} and {main.path}, which imports it, in version {version}",
                "containerd then ignores the CRI settings of one of the two without a word",
                "write both in the same version, or remove the import",
            )
        return file, True
    return main, False


def _overrides(plain: Plain, *, merges: bool) -> bool:
    if merges:
        return "default_runtime_name" in containerd_section(plain)
    return any(section(plain, "plugins", plugin) for plugin in (V1, V2))


def _dump(engine: RuntimeFacts) -> Plain:
    """What the daemon makes of all its files; {} when it was not read."""
    return tomltext.load("containerd config dump", engine.merged_config) if engine.merged_config else {}


def _refuse_wrong_types(path: str, plain: Plain) -> None:
    """A table that is something else would be replaced by a merge; containerd does not start on it."""
    for plugin in (V1, V2, V3):
        for keys in (
            ("plugins",),
            ("plugins", plugin),
            ("plugins", plugin, "containerd"),
            ("plugins", plugin, "containerd", "runtimes"),
        ):
            value: Any = plain
            for key in keys:
                value = value.get(key, {}) if isinstance(value, dict) else value
            if not isinstance(value, dict):
                raise ConfigFileError(
                    f"{path}: {'.'.join(keys)} is {value!r}, and containerd wants a table",
                    evidence="the file was not touched",
                    remedy="correct it; containerd config dump says when it is right",
                )


def _refuse_unsettled(path: str, after: str, version: int, want: RuntimeSpec, around: Around) -> None:
    """A second rewrite must find nothing to do: otherwise the first did not say what it meant."""
    plain = tomltext.load(path, after)
    again = wanted(plain, version, want, around)
    if again.added:
        raise ConfigFileError(
            f"{path} cannot be edited so that the edit settles",
            evidence=f"a second pass would still change: {', '.join(again.added)}; the file was not touched",
            remedy="add the runtime by hand",
        )
