"""podman: no daemon and no config needed, since CDI serves it; on request nvidia becomes its default runtime.

containers.conf is read anew by every podman command, so there is nothing to restart, and a wrong file breaks each of
them at once: the candidate is put to podman itself (as an override) before it takes its place.
"""

from __future__ import annotations

import copy
from typing import Any

from gpunode import resources
from gpunode.catalog import cdi_versions
from gpunode.catalog.versions import first_with
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.engines import drop_ins
from gpunode.engines.base import Edit, Engine, Removal, Rewrite
from gpunode.engines.containerd.cri_section import section
from gpunode.engines.daemon import commands
from gpunode.engines.provenance import Origin, Root, of_toml, readable, there
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.action import Action, Run
from gpunode.model.active import Trial
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction
from gpunode.resources import render

# What podman reads as root, in this order (containers.conf(5)); later values win, for each runtime by itself. That of
# root's own directory from 5.0 on. What 6 reads otherwise (the first main file alone, and containers.rootful.conf.d) is
# not followed: verify() asks podman.
VENDOR = "/usr/share/containers/containers.conf"
MAIN, DIRECTORY = "/etc/containers/containers.conf", "/etc/containers/containers.conf.d"
ROOTS, ROOTS_DIRECTORY = "/root/.config/containers/containers.conf", "/root/.config/containers/containers.conf.d"
DROP_IN = f"{DIRECTORY}/99-nvidia.conf"
CDI = "podman run --device nvidia.com/gpu=all"
BY_NAME = "--runtime podman makes nvidia its default"
ROOT_TABLE = (Root(("engine",), "runtime"),)

Tables = dict[str, Plain]  # path -> its [engine], in the order in which the files are read


class Podman(Engine):
    """podman as root runs it. Rootless users have files of their own, which gpunode does not manage, after those of
    /etc, which theirs reads, too."""

    name = "podman"
    title = "no daemon to restart, new containers use it"
    default_key = "runtime"
    config = MAIN
    # [engine.runtimes] of containers-common's containers.conf.
    own_handlers = ("crun", "crun-vm", "crun-wasm", "kata", "krun", "ocijail", "runc", "runj", "runsc", "youki")

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        if want.cdi:
            _refuse_no_cdi(engine)
            return Rewrite((), (), (f"podman needs no configuration for CDI: {_advice(host, engine)}",))
        tables = {file.path: _engine_table(file) for file in _files(host, engine)}
        places, paths = _places(tables, want), _last(tables, "runtimes", want.handler)[1] or []
        present = engine.effective_default or _last(tables, "runtime")[1] or "podman's own"
        edits: list[Edit] = []
        added: list[str] = []
        for path in dict.fromkeys(places.values()):
            keys = [key for key in places if places[key] == path]
            table, done = _merge(copy.deepcopy(tables.get(path, {})), keys, want, present, paths)
            edits.append(_edit(host.file(path), table, want))
            added += done
        if not edits:
            file = host.file(_last(tables, "runtime")[0] or DROP_IN)
            return Rewrite((Edit(file.path, file.text, file.text or ""),), ())
        return Rewrite(tuple(edits), tuple(added), _notes(host, engine, edits), binaries=(want.program,))

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        if cdi_versions.lacks_cdi(engine):
            return f"podman {engine.version} has no CDI: {BY_NAME}"
        return f"podman is served by CDI and needs no runtime: {_advice(host, engine)}; {BY_NAME}"

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        if not at_least(engine.version, first_with("podman", "conf-override")):
            return None  # verify() finds out
        argv = (engine.binary or "podman", "info", "--format", "{{.Host.OCIRuntime.Name}}")
        override = (("CONTAINERS_CONF_OVERRIDE", "{candidate}"),)
        return Run(argv, env=override, timeout_s=30, description="podman info, with the new file")

    def containers(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> Run | None:
        return commands.containers(engine, handler, api="podman")

    def trials(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[Trial, ...]:
        device = ("--device", "nvidia.com/gpu=all")
        unfit = f"podman {engine.version} has no CDI" if cdi_versions.lacks_cdi(engine) else ""
        # A host without the controller of pids would refuse podman's default limit for a reason that is no GPU's.
        return (Trial(engine.label, "", CDI, program="podman", options=("--pids-limit", "-1", *device), unfit=unfit),)

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        return ()

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return _ask(engine, want.handler if want.default else f"+{want.handler}")

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        # The old bytes are all there is to it; a podman that was broken before has no healthy state to restore.
        return () if engine.cri_error else (_ask(engine, engine.effective_default or "-"),)

    def without(self, path: str, text: str, removal: Removal) -> str:
        old = None if removal.before is None else toml_text.load(path, removal.before)
        previous = removal.default if old is None else section(old, "engine").get("runtime")
        left = removed(text, removal.handler, previous, path=path, keep_handler=removal.keep_handler)
        return left if old or toml_text.load(path, left) else ""

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        return tuple(of_toml(readable(there(host, engine)), engine, ROOT_TABLE, own="crun"))

    def around(self, main: str) -> tuple[str, ...]:
        return (VENDOR, MAIN, f"{DIRECTORY}/*.conf", ROOTS, f"{ROOTS_DIRECTORY}/*.conf")

    def next_words(self, path: str, *, restart: bool) -> tuple[str, ...]:
        return ("it is read by every podman command: nothing needs a restart",)


def removed(
    text: str,
    handler: str,
    previous_default: str | None,
    *,
    path: str = "containers.conf",
    keep_handler: bool = False,
) -> str:
    """`text` without the handler, and the default restored to `previous_default` (None: the key goes).

    For a file that others wrote to since. A default that is not `handler` now is unchanged. Raises ConfigFileError.
    """
    want = copy.deepcopy(toml_text.load(path, text))
    engine = want.get("engine")
    if not isinstance(engine, dict):
        return text
    runtimes = engine.get("runtimes")
    if isinstance(runtimes, dict) and not keep_handler:
        runtimes.pop(handler, None)
        if not runtimes:
            del engine["runtimes"]
    if engine.get("runtime") == handler:
        del engine["runtime"]
        if previous_default is not None:
            engine["runtime"] = previous_default
    if not engine:
        del want["engine"]
    return toml_text.rewrite(path, text, want, ("engine", "runtimes"))


def _files(host: HostFacts, engine: RuntimeFacts) -> tuple[FileFacts, ...]:
    found: tuple[FileFacts, ...] = (host.file(VENDOR), host.file(MAIN), *drop_ins.files_in(host, DIRECTORY, ".conf"))
    if engine.version is None or at_least(engine.version, first_with("podman", "conf-of-root")):
        found += (host.file(ROOTS), *drop_ins.files_in(host, ROOTS_DIRECTORY, ".conf"))
    for file in found:
        refuse_unread(file.path, file.unread)
    return tuple(file for file in found if file.text is not None)


def _places(tables: Tables, want: RuntimeSpec) -> dict[str, str]:
    """What is missing ("runtimes": the handler, "runtime": the default) -> the file where it will be in force."""
    handler_in, paths = _last(tables, "runtimes", want.handler)
    default_in, default = _last(tables, "runtime")
    places = {}
    if want.program not in (paths or ()):
        # A handler that nobody names goes where the default stands.
        places["runtimes"] = _in_force(handler_in if paths else default_in if want.default else None)
    if want.default and default != want.handler:
        places["runtime"] = _in_force(default_in)
    return places


def _last(tables: Tables, *keys: str) -> tuple[str | None, Any]:
    """(path, value) of the file that takes precedence for a key; (None, None) when none sets it."""
    for path in reversed(tables):
        value: Any = tables[path]
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value:
            return path, value
    return None, None


def _in_force(last: str | None) -> str:
    """The drop-in, unless the file that takes precedence now is the admin's main one or is read after it.

    The distribution's own file is never edited, nor is a drop-in that is read before gpunode's.
    """
    if last is None or last == VENDOR or (last.startswith(f"{DIRECTORY}/") and last < DROP_IN):
        return DROP_IN
    return last


def _merge(table: Plain, keys: list[str], want: RuntimeSpec, present: str, paths: list[str]) -> tuple[Plain, list[str]]:
    """(the [engine] as it should read, what was done for the plan's line). `paths`: the handler's, as in force now."""
    added = []
    if "runtimes" in keys:
        # podman takes the first of them that exists.
        table.setdefault("runtimes", {})[want.handler] = [want.program, *paths]
        added.append(f"{want.handler}: + {want.program}" if paths else f"+ engine.runtimes.{want.handler}")
    if "runtime" in keys:
        added.append(f"default {table.get('runtime') or present} → {want.handler}")
        table["runtime"] = want.handler
    return table, added


def _edit(file: FileFacts, table: Plain, want: RuntimeSpec) -> Edit:
    if file.text is None:
        shown = {"runtime": table.get("runtime"), "runtimes": table.get("runtimes", {}), "handler": want.handler}
        return Edit(file.path, None, render("engines/podman.conf.j2", **shown))
    plain = {**drop_ins.load(file, "podman"), "engine": table}
    return Edit(file.path, file.text, toml_text.rewrite(file.path, file.text, plain, ("engine", "runtimes")))


def _notes(host: HostFacts, engine: RuntimeFacts, edits: list[Edit]) -> tuple[str, ...]:
    inside = [edit.path for edit in edits if edit.path != DROP_IN]
    notes = [f"{path} takes precedence, so it is edited in place" for path in inside]
    notes += _about_users(edits)
    without = f"CDI serves podman without this: {_advice(host, engine)}"
    return tuple(notes) if cdi_versions.lacks_cdi(engine) else (*notes, without)


def _about_users(edits: list[Edit]) -> list[str]:
    read_by_all = [edit.path for edit in edits if edit.path.startswith("/etc/")]
    return [f"rootless podman reads {path} as well: it applies to every user who sets no other" for path in read_by_all]


def _refuse_no_cdi(engine: RuntimeFacts) -> None:
    if cdi_versions.lacks_cdi(engine):
        raise UnsupportedHost(
            f"podman {engine.version} has no CDI",
            evidence="podman takes CDI devices from 4.1 on",
            remedy=Remedy(RepairAction.UPGRADE, "leave out --cdi, or upgrade podman"),
        )


def _advice(host: HostFacts, engine: RuntimeFacts) -> str:
    """The command that works, and what must be there first where it does not work yet."""
    specifications = [host.file(path).text or "" for path in host.toolkit.cdi_specs]
    readable = bool(specifications) and not any(map(cdi_versions.is_new, specifications))
    if readable or not cdi_versions.reads_old_only(engine):
        return CDI
    return f"{CDI}, once the toolkit's CDI specification is one that podman {engine.version} can read (before 0.7)"


def _engine_table(file: FileFacts) -> Plain:
    """[engine] of a file. Raises for what podman itself does not start on, and a merge would silently replace."""
    engine = drop_ins.load(file, "podman").get("engine", {})
    if not isinstance(engine, dict):
        raise _wrong(file, "engine", engine, "a table")
    if not isinstance(engine.get("runtime", ""), str):
        raise _wrong(file, "engine.runtime", engine["runtime"], "a text")
    runtimes = engine.get("runtimes", {})
    if not isinstance(runtimes, dict):
        raise _wrong(file, "engine.runtimes", runtimes, "a table")
    for name, paths in runtimes.items():
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise _wrong(file, f"engine.runtimes.{name}", paths, "a list of paths")
    return engine


def _wrong(file: FileFacts, key: str, value: object, wanted: str) -> ConfigFileError:
    return ConfigFileError(
        f"{file.path}: {key} is {value!r}, and podman wants {wanted}",
        evidence="podman does not start on it; no file was touched",
        remedy="correct it; podman info reports when it is right",
    )


def _ask(engine: RuntimeFacts, expected: str) -> Run:
    argv = ("sh", "-s", "--", engine.binary or "podman", expected)
    return Run(
        argv, timeout_s=60, stdin=resources.script("daemon/podman"), description="podman info: the default runtime"
    )
