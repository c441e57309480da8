"""Settings with which containerd starts, and its CRI plugin does not load: `config dump` accepts them silently.

A daemon that was not restarted since runs well with such a file, and the restart that a new runtime needs would end
that. The rules are CRI's own (ValidatePluginConfig in its pkg/config, "invalid plugin config" in the log), each seen
with containerd 1.6, 1.7 and 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpunode.advice import named
from gpunode.catalog.versions import first_with
from gpunode.editing.plain import Plain
from gpunode.editing.toml_scan import Statement, statements
from gpunode.engines.containerd.cri_section import CRI_PLUGINS, OLD_SHIM_KEYS, RUNC_TYPE, containerd_section, section
from gpunode.engines.containerd.imports import Files, merged
from gpunode.engines.containerd.schema import merges
from gpunode.errors import ConfigFileError
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.regex import regex

Keys = tuple[str, ...]
# Go's time.ParseDuration.
_DURATION = regex(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
DURATIONS = ("stream_idle_timeout", "drain_exec_sync_io_timeout", "image_pull_progress_timeout")


def refuse(files: Files, want: RuntimeSpec, running: Plain) -> None:
    """Raises ConfigFileError with file and line where CRI would not load after a restart, whatever gpunode writes.

    `running`: what the daemon makes of its files ({} when it was not asked).
    """
    if not merges(files.daemon):
        _refuse_escapes(files)
    for keys, problem in _faults(files, want, running):
        path, line = _place(files, keys)
        raise ConfigFileError(
            f"{path}:{line}: {problem}",
            evidence="containerd runs with it and its CRI plugin does not load, so a restart would take the kubelet's "
            "pods away; the file was not touched",
            remedy=f"correct {named(path)} at that place, and run gpunode again",
        )


def _refuse_escapes(files: Files) -> None:
    """containerd 1.x does not resolve the escapes in a key, as other readers of TOML do: "r\\u0075nc" is no runc."""
    for path in files.order():
        for statement in statements(files.text(path)):
            odd = next((name for name in _handler_path(statement) if name.startswith('"') and "\\" in name), None)
            if odd:
                raise ConfigFileError(
                    f"{path}:{statement.line}: {odd} is a name with an escape in it",
                    evidence="containerd 1.x takes it letter by letter, and so for another; the file was not touched",
                    remedy="write the name out, in single quotes where it needs any, and run gpunode again",
                )


def _handler_path(statement: Statement) -> list[str]:
    """How the statement spells what leads to a handler: plugins, CRI, containerd, runtimes, the handler's name."""
    path, inherited = statement.path, len(statement.path) - len(statement.keys)
    if len(path) < 2 or path[0] != "plugins" or path[1] not in CRI_PLUGINS:
        return []
    if path[2:4] != ("containerd", "runtimes")[: len(path) - 2]:
        return []
    return [statement.text[start:end] for start, end in statement.keys[: max(0, 5 - inherited)]]


def _faults(files: Files, want: RuntimeSpec, running: Plain) -> Iterator[tuple[Keys, str]]:
    """(keys of the value, what is wrong)."""
    whole = merged(files)
    for plugin in sorted(CRI_PLUGINS):
        table = section(whole, "plugins", plugin)
        for key in DURATIONS:
            value = table.get(key)
            parsed = at_least(files.daemon, first_with("containerd", key))
            if parsed and isinstance(value, str) and value and not _DURATION.fullmatch(value):
                yield ("plugins", plugin, key), f"{key} = {value!r} is no duration, such as '4h0m0s'"
        registry = section(table, "registry")
        if registry.get("config_path") and registry.get("mirrors"):
            problem = "registry.mirrors cannot be set together with registry.config_path"
            yield ("plugins", plugin, "registry", "mirrors"), problem
        if not merges(files.daemon):
            yield from _certificates(("plugins", plugin, "registry", "configs"), registry)
            yield from _old_shim(("plugins", plugin), table, want)
    known = containerd_section(running)
    default = known.get("default_runtime_name")
    # runc is there by default, or is written out.
    if default and not want.default and default not in (*section(known, "runtimes"), want.handler, "runc"):
        yield ("default_runtime_name",), f"default_runtime_name {default!r} is not among the runtimes"


def _certificates(keys: Keys, registry: Plain) -> Iterator[tuple[Keys, str]]:
    for name in section(registry, "configs") if registry.get("config_path") else ():
        if section(registry, "configs", name, "tls"):
            yield (*keys, name, "tls"), "registry.configs.*.tls cannot be set together with registry.config_path"


def _old_shim(keys: Keys, table: Plain, want: RuntimeSpec) -> Iterator[tuple[Keys, str]]:
    """What belongs to the shim of containerd 1.0; gpunode takes it out of its own handler."""
    if table.get("systemd_cgroup") is True:
        problem = "systemd_cgroup belongs to a shim that is gone: SystemdCgroup in the runtime's options is meant"
        yield (*keys, "systemd_cgroup"), problem
    runtimes: dict[str, Any] = section(table, "containerd", "runtimes")
    for name, entry in runtimes.items():
        for key in OLD_SHIM_KEYS:
            if name != want.handler and isinstance(entry, dict) and entry.get(key) and _is_runc(entry):
                problem = f"runtimes.{name}: {key} belongs to a shim that is gone: BinaryName or Root in its options"
                yield (*keys, "containerd", "runtimes", name, key), f"{problem} is meant"


def _is_runc(entry: Plain) -> bool:
    return entry.get("runtime_type") == RUNC_TYPE


def _place(files: Files, keys: Keys) -> tuple[str, int]:
    """The last file that sets it, and the line; the file's first where it is spelled in another way."""
    for path in reversed(files.order()):
        for statement in statements(files.text(path)):
            if keys in (statement.path[: len(keys)], statement.path[-1:]):
                return path, statement.line
    return files.root, 1
