"""Where containerd's settings come from: the file and line that takes precedence, read as setup reads it."""

from __future__ import annotations

from gpunode.engines.containerd.cri_section import V1, V2, V3, section
from gpunode.engines.containerd.imports import Files, gathered
from gpunode.engines.containerd.live import tables
from gpunode.engines.containerd.schema import merges
from gpunode.engines.provenance import Origin, Parsed, Root, at, of_toml, readable, there
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts

ROOTS = tuple(
    Root(("plugins", plugin, "containerd"), "default_runtime_name", cdi=("plugins", plugin, "enable_cdi"))
    for plugin in (V3, V2, V1)
)


def origins(host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
    """A file that was not read, or that does not parse, counts for nothing: the daemon reports what it runs with."""
    files = _in_force(engine, readable(_files(host, engine)))
    if engine.version and not merges(engine.version):
        files = _from_last_section(files, ROOTS)  # 1.x: a drop-in's section replaces that of the files before it
    return tuple(of_toml(files, engine, ROOTS))


def _in_force(engine: RuntimeFacts, files: list[Parsed]) -> list[Parsed]:
    """Each file without the tables that this daemon passes over."""
    all_of_them = Files(engine.config_path, engine.version, {file.path: file.text or "" for file, _ in files})
    found: list[Parsed] = []
    for file, plain in files:
        read = tables(all_of_them, file.path)
        plugins = {name: table for name, table in section(plain, "plugins").items() if name in read}
        found.append((file, {**plain, "plugins": plugins}))
    return found


def _files(host: HostFacts, engine: RuntimeFacts) -> list[FileFacts]:
    try:
        return [file for path in gathered(host, engine).order() if (file := host.file(path)).text is not None]
    except ConfigFileError:  # one of them keeps setup from editing any; the others still count
        return there(host, engine)


def _from_last_section(files: list[Parsed], roots: tuple[Root, ...]) -> list[Parsed]:
    with_section = [n for n, (_, plain) in enumerate(files) if any(at(plain, r.table[:2]) for r in roots)]
    return files[with_section[-1] :] if with_section else files
