"""containerd's config schemas: which one a file is in, what a daemon makes of it, and version 1 as version 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpunode.catalog.versions import first_with
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.engines.containerd.cri_section import V1, V2, V3, section
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.versions import at_least, release

if TYPE_CHECKING:
    from gpunode.editing.toml_scan import Statement

# Short names of version 1, where a plugin was named by its id alone (containerd's own v1 migration).
FULL_NAMES = {
    "cri": V2,
    "cgroups": "io.containerd.monitor.v1.cgroups",
    "linux": "io.containerd.runtime.v1.linux",
    "scheduler": "io.containerd.gc.v1.scheduler",
    "bolt": "io.containerd.metadata.v1.bolt",
    "task": "io.containerd.runtime.v2.task",
    "opt": "io.containerd.internal.v1.opt",
    "restart": "io.containerd.internal.v1.restart",
    "tracing": "io.containerd.internal.v1.tracing",
    "otlp": "io.containerd.tracing.processor.v1.otlp",
    **{f: f"io.containerd.snapshotter.v1.{f}" for f in ("aufs", "btrfs", "devmapper", "native", "overlayfs", "zfs")},
}


def merges(daemon: str | None) -> bool:
    """Whether this containerd merges imported files key by key; 1.x takes the last file's CRI section alone."""
    return at_least(daemon, first_with("containerd", "merged-imports"))


def migrates_each(daemon: str | None) -> bool:
    """Whether this containerd brings each file to its newest schema before it merges them; version 1 too."""
    return at_least(daemon, first_with("containerd", "migrates-each-file"))


def new_version(daemon: str | None) -> int:
    """The schema of a new file. Version 2 is read by every containerd from 1.3 on; an unknown one gets it too."""
    return 3 if at_least(daemon, first_with("containerd", "config-version-3")) else 2


def version_of(path: str, plain: Plain, daemon: str | None) -> int:
    """The schema the file is in, or for an empty file the one this daemon wants.

    Raises ConfigFileError for what is no version, UnsupportedHost where file and daemon do not fit.
    """
    if not plain:
        return new_version(daemon)
    version = plain.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigFileError(
            f"{path}: version = {version!r} is not a whole number",
            evidence="containerd exits on it; the file was not touched",
            remedy="write version = 2 (containerd 1.3 and later) or version = 3 (2.0 and later)",
        )
    newest = _newest(daemon)
    if version > newest:
        raise misfit(
            daemon,
            f"{path} has version = {version}",
            "containerd 1.6 ignores the settings of a newer schema silently, others exit",
            f"write it as version {newest}, or upgrade containerd",
        )
    return max(version, 1)


def _newest(daemon: str | None) -> int:
    """The newest schema that this daemon reads; an unknown one is taken for the newest."""
    have = release(daemon)
    if have is None or have >= first_with("containerd", "config-version-4"):
        return 4
    return 3 if have >= first_with("containerd", "config-version-3") else 2


def misfit(daemon: str | None, problem: str, why: str, remedy: str) -> UnsupportedHost:
    return UnsupportedHost(
        f"{problem}, and the daemon is containerd {daemon or 'of an unknown version'}", evidence=why, remedy=remedy
    )


def as_version_2(path: str, text: str, daemon: str | None) -> str:
    """A version 1 file in version 2: its plugins by their full names. Comments and order are unchanged.

    containerd 2.0 to 2.2 ignore every plugin setting of a version 1 file silently. Raises UnsupportedHost when
    the file names a plugin whose full name is not known.
    """
    from gpunode.editing.toml_scan import statements

    plain = toml_text.load(path, text)
    want: Plain = {**plain, "version": 2}
    if isinstance(plain.get("plugins"), dict):
        want["plugins"] = {_full(path, name, daemon): value for name, value in plain["plugins"].items()}
    for key in ("disabled_plugins", "required_plugins"):
        if isinstance(plain.get(key), list):
            want[key] = [_full(path, str(name), daemon) for name in plain[key]]
    renamed = "".join(_renamed(path, statement, daemon) for statement in statements(text))
    return toml_text.rewrite(path, renamed, want, ("plugins",))


def _full(path: str, name: str, daemon: str | None) -> str:
    if "." in name:
        return name
    if name.endswith("-service"):
        return f"io.containerd.service.v1.{name}"
    if name in FULL_NAMES:
        return FULL_NAMES[name]
    raise misfit(
        daemon,
        f"{path} is in schema version 1 and names a plugin {name}, whose full name is not known",
        "containerd 2.0 to 2.2 ignore every plugin setting of such a file silently",
        f"convert it manually: version = 2, plugins.{V1} becomes plugins.{V2!r} (or, in version 3, {V3!r})",
    )


def _renamed(path: str, statement: Statement, daemon: str | None) -> str:
    """The statement with the plugin's name, where it is written in it, spelled out."""
    inherited = len(statement.path) - len(statement.keys)
    if statement.path[:1] != ("plugins",) or len(statement.path) < 2 or inherited > 1:
        return statement.text
    start, end = statement.keys[1 - inherited]
    name = statement.path[1]
    return (
        statement.text
        if "." in name
        else f'{statement.text[:start]}"{_full(path, name, daemon)}"{statement.text[end:]}'
    )


def refuse_wrong_types(path: str, plain: Plain) -> None:
    """A table that is something else would be replaced by a merge; containerd does not start on it, or without CRI."""
    for keys, kind in _kinds(plain):
        value: Any = plain
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and type(value) is not kind:
            raise ConfigFileError(
                f"{path}: {'.'.join(keys)} is {value!r:.80}, and containerd wants {_NAMES[kind]}",
                evidence="the file was not touched",
                remedy="correct it; containerd config dump reports when it is right",
            )
    _refuse_no_list(path, plain, "imports")


_NAMES: dict[type, str] = {dict: "a table", str: "a text", bool: "true or false"}
# What gpunode reads or writes of a runtime (containerd's Runtime and runc options structs).
_RUNTIME: tuple[tuple[tuple[str, ...], type], ...] = (
    ((), dict),
    (("runtime_type",), str),
    (("options",), dict),
    (("options", "SystemdCgroup"), bool),
    (("options", "BinaryName"), str),
)


def _kinds(plain: Plain) -> Iterator[tuple[tuple[str, ...], type]]:
    """(keys, type) of what must be of that type where it is there; outer tables first."""
    yield ("plugins",), dict
    for plugin in (V1, V2, V3):
        cri = ("plugins", plugin)
        engine = (*cri, "containerd")
        yield from ((cri, dict), ((*cri, "enable_cdi"), bool), (engine, dict), ((*engine, "runtimes"), dict))
        yield (*engine, "default_runtime_name"), str
        tables = [(*engine, "runtimes", name) for name in section(plain, *engine, "runtimes")]
        for table in (*tables, (*engine, "default_runtime")):
            yield from (((*table, *keys), kind) for keys, kind in _RUNTIME)


def _refuse_no_list(path: str, plain: Plain, key: str) -> None:
    value = plain.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigFileError(
            f"{path}: {key} is {value!r}, and containerd wants a list of texts",
            evidence="the file was not touched",
            remedy="correct it; containerd config dump reports when it is right",
        )
