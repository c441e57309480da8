"""containerd's CRI configuration as plain values: where it is in each schema, and what it should be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpunode.catalog.cdi_versions import lacks_cdi
from gpunode.catalog.versions import first_with
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain, copied, copied_at
from gpunode.engines.containerd.cgroup_driver import kubelet_asks_containerd
from gpunode.engines.handler import about_program
from gpunode.engines.handler import program as program_of
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction
from gpunode.resources import render

V1, V2, V3 = "cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
RUNC_TYPE = "io.containerd.runc.v2"
# Names in disabled_plugins that switch CRI off (2.x splits it in three).
CRI_PLUGINS = frozenset({V1, V2, V3, "io.containerd.cri.v1.images"})
# Written into an entry of runc.v2, either of these keeps CRI of 1.x from loading: they belong to the old shim.
OLD_SHIM_KEYS = ("runtime_engine", "runtime_root")


class Wanted(NamedTuple):
    """The whole file as it should read, and what was done to get there."""

    plain: Plain
    plugin: str  # the table below [plugins] that holds it
    added: tuple[str, ...]
    notes: tuple[str, ...]
    program: str  # that the handler runs


class Around(NamedTuple):
    """What the file's own text does not tell."""

    merged: Plain  # what the daemon makes of all its files (live.effective); {} when that is not known
    keep_runc: bool  # 1.x: a file that lists any runtime loses the built-in runc
    kubelet_driver: str | None
    cdi_by_default: bool
    missing: tuple[str, ...]  # programs that the files name and the disk does not have


def refuse_no_cdi(engine: RuntimeFacts, want: RuntimeSpec) -> None:
    """Raises UnsupportedHost where CDI is wanted of a containerd that has none."""
    if want.cdi and lacks_cdi(engine):
        of = "" if engine.name == "containerd" else f" of {engine.name}"
        raise UnsupportedHost(
            f"containerd {engine.version}{of} has no CDI",
            evidence="enable_cdi came with containerd 1.7",
            remedy=Remedy(RepairAction.UPGRADE, f"upgrade {engine.name}, or leave out --cdi or kubernetes.mode dra"),
        )


def around(host: HostFacts, engine: RuntimeFacts, merged: Plain, *, keep_runc: bool) -> Around:
    """What a file's own text does not say; `merged`: what the daemon makes of all its files."""
    # A kubelet that asks containerd has no driver of its own for a handler to disagree with.
    own = host.kubernetes.kubelet and not kubelet_asks_containerd(host, engine)
    return Around(
        merged=merged,
        keep_runc=keep_runc,
        kubelet_driver=host.kubernetes.kubelet_cgroup_driver if own else None,
        cdi_by_default=at_least(engine.version, first_with("containerd", "cdi-by-default")),
        missing=engine.missing_binaries,
    )


def plugin_of(version: int) -> str:
    """The table below [plugins] that holds runtimes; version 4 moved other tables only."""
    return {1: V1, 2: V2}.get(version, V3)


def section(plain: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The table at `keys`; {} when it, or one above it, is absent or no table."""
    value: Any = plain
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def normal(dump: Mapping[str, Any]) -> Plain:
    """The CRI table of a dump, by the name it has in version 3. A dump may still hold tables that are not in force."""
    known = {2: (V2,), 3: (V3,), 4: (V3,)}.get(dump.get("version", 0), (V3, V2, V1))
    found = next((table for name in known if (table := section(dump, "plugins", name))), {})
    return {"plugins": {V3: found}}


def containerd_section(merged: Mapping[str, Any]) -> dict[str, Any]:
    """The runtimes' section of what `normal` or live.py made."""
    return section(merged, "plugins", V3, "containerd")


def cri_disabled(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """The entries of disabled_plugins that switch CRI off."""
    disabled = plain.get("disabled_plugins")
    return tuple(name for name in disabled if name in CRI_PLUGINS) if isinstance(disabled, list) else ()


def wanted(plain: Plain, version: int, want: RuntimeSpec, around: Around, plugin: str = "") -> Wanted:
    """`plain` with the handler added to the others, its options copied from the present default.

    `plugin`: under which name it is in force, where that is not `version`'s own.
    """
    plugin = plugin or plugin_of(version)
    result = copied_at(plain, "plugins", plugin)
    added = [*enable_cri(result)]
    notes: list[str] = []
    fragment = _fragment(plugin, version, want, want.cdi and not _cdi_is_on(result, plugin, around))
    if "version" in fragment:
        result["version"] = version
    cri = result.setdefault("plugins", {}).setdefault(plugin, {})
    if "enable_cdi" in fragment["plugins"][plugin]:
        cri["enable_cdi"] = True
        added.append("+ enable_cdi")
    engine = cri.setdefault("containerd", {})
    now, base_name, base = _present_default(engine, around.merged, want.handler)
    runtimes = engine.setdefault("runtimes", {})
    if around.keep_runc and "runc" not in runtimes:
        runtimes["runc"] = _runc(base if base_name == "runc" else _handler("runc", engine, around.merged))
        notes.append("runtimes.runc is written out, since containerd 1.x forgets it once a file lists any runtime")
    new = fragment["plugins"][plugin]["containerd"]["runtimes"][want.handler]
    named = section(runtimes, want.handler, "options").get("BinaryName")
    program = program_of(want, named, around.missing)
    notes += about_program(want, f"runtimes.{want.handler}", named, around.missing)
    runc = _handler("runc", engine, around.merged)
    added += _add_handler(runtimes, want, new, (base_name, base), now=now, runc=runc, program=program)
    notes += _about_cgroups(runtimes[want.handler], base_name, around)
    if want.default:
        added += make_default(engine, want.handler, now)
    return Wanted(result, plugin, tuple(added), tuple(notes), program)


def _fragment(plugin: str, version: int, want: RuntimeSpec, cdi: bool) -> Plain:
    name = f"engines/containerd.v{(V1, V2, V3).index(plugin) + 1}.j2"
    text = render(name, handler=want.handler, path=want.program, default=want.default, cdi=cdi, version=version)
    return toml_text.load(name, text)


def enable_cri(plain: Plain) -> tuple[str, ...]:
    """Take CRI out of disabled_plugins, in either spelling; what was done, for the plan's line."""
    off = cri_disabled(plain)
    if not off:
        return ()
    plain["disabled_plugins"] = [name for name in plain["disabled_plugins"] if name not in off]
    return (f"CRI switched on (disabled_plugins − {', '.join(off)})",)


def _cdi_is_on(plain: Plain, plugin: str, around: Around) -> bool:
    enabled = section(plain, "plugins", plugin).get("enable_cdi")
    if enabled is None:
        # Another file may set it; a dump always has it.
        enabled = section(around.merged, "plugins", V3).get("enable_cdi", around.cdi_by_default)
    return enabled is True


def _present_default(engine: Plain, merged: Plain, handler: str) -> tuple[str, str, Plain]:
    """(the default, name, entry): the last two are whose settings are copied.

    They are the default's if it is runc-like, else runc's: kata and gvisor have shims of their own, whose options
    nvidia-container-runtime does not understand. The legacy table `default_runtime` is the default where it has a
    runtime_type (1.6 and 1.7).
    """
    legacy = section(engine, "default_runtime")
    if legacy.get("runtime_type") == RUNC_TYPE:
        return "default_runtime", "default_runtime", legacy
    name = str(engine.get("default_runtime_name") or containerd_section(merged).get("default_runtime_name") or "runc")
    entry = _handler(name, engine, merged)
    if name == handler or entry.get("runtime_type") != RUNC_TYPE:
        return name, "runc", _handler("runc", engine, merged)
    return name, name, entry


def _handler(name: str, engine: Plain, merged: Plain) -> Plain:
    """The file's entry, else the running configuration's."""
    return section(engine, "runtimes", name) or section(containerd_section(merged), "runtimes", name)


def _runc(entry: Plain) -> Plain:
    return {**_settings(entry), "runtime_type": RUNC_TYPE}


def _settings(entry: Plain) -> Plain:
    """What an entry sets: zero values are containerd's defaults and mean nothing. SystemdCgroup is always written."""
    kept = {k: v for k, v in entry.items() if v and k not in (*OLD_SHIM_KEYS, "options")}
    options = {k: v for k, v in section(entry, "options").items() if v or k == "SystemdCgroup"}
    return copied({**kept, "options": options} if options else kept)


def _add_handler(
    runtimes: Plain, want: RuntimeSpec, new: Plain, base: tuple[str, Plain], *, now: str, runc: Plain, program: str
) -> tuple[str, ...]:
    """Put it into `runtimes`; what was done. `now`: the default; `runc`: that entry, in whichever file it is."""
    base_name, base_entry = base
    cgroup = section(base_entry, "options").get("SystemdCgroup")
    told = section(runtimes, "runc", "options"), section(runc, "options")
    # Written out, since it would not be known later whose settings these are: runc's are others.
    spelled = cgroup is None and ("SystemdCgroup" in told[0] or bool(told[1].get("SystemdCgroup")))
    entry = runtimes.get(want.handler)
    if not isinstance(entry, dict):
        settings = _settings(base_entry)
        options = {**section(settings, "options"), **new["options"], **({"SystemdCgroup": False} if spelled else {})}
        runtimes[want.handler] = {**settings, "runtime_type": new["runtime_type"], "options": options}
        note = "" if cgroup is None else f" (SystemdCgroup = {json.dumps(cgroup)}, copied from {base_name})"
        return (f"+ handler {want.handler}{note}",)
    # An entry that is there keeps what was set manually; only what would not work is corrected.
    old = [key for key in OLD_SHIM_KEYS if entry.get(key)]
    for key in old:
        del entry[key]
    done = [f"{want.handler}: − {key} (belongs to the old shim)" for key in old]
    done += _set(entry, "runtime_type", new["runtime_type"], want.handler)
    options = entry.setdefault("options", {})
    done += _set(options, "BinaryName", program, want.handler)
    guessed = now == want.handler  # it is the default itself, and whose settings it once got is not known
    # Unset is false: to say so of a default that left it out would change nothing.
    if cgroup is not None and not (guessed and ("SystemdCgroup" in options or not cgroup)):
        done += _set(options, "SystemdCgroup", cgroup, want.handler)
    if spelled and want.default and "SystemdCgroup" not in options:
        done += _set(options, "SystemdCgroup", False, want.handler)
    return tuple(done)


def _set(table: Plain, key: str, value: object, handler: str) -> tuple[str, ...]:
    old = table.get(key)
    if old == value:
        return ()
    table[key] = value
    change = json.dumps(value) if old is None else f"{json.dumps(old, default=str)} → {json.dumps(value)}"
    return (f"{handler}: {key} {change}",)


def make_default(engine: Plain, handler: str, now: str) -> tuple[str, ...]:
    """Name `handler` as the default in a file's containerd section, in place of `now`; what was done."""
    done = []
    if section(engine, "default_runtime").get("runtime_type"):
        # On 1.6 and 1.7 this table wins over default_runtime_name.
        del engine["default_runtime"]
        done.append("− default_runtime (legacy table, it would win)")
    if engine.get("default_runtime_name") != handler:
        done.append(f"default {engine.get('default_runtime_name') or now} → {handler}")
        engine["default_runtime_name"] = handler
    return tuple(done)


def _about_cgroups(entry: Plain, base_name: str, around: Around) -> tuple[str, ...]:
    systemd = bool(section(entry, "options").get("SystemdCgroup"))
    if around.kubelet_driver in (None, "systemd" if systemd else "cgroupfs"):
        return ()
    setting = "true" if systemd else "false or unset"
    return (
        f"kubelet's cgroup driver is {around.kubelet_driver}, but SystemdCgroup of {base_name} is {setting}: they "
        "should agree, and gpunode copies it rather than change it for every pod",
    )
