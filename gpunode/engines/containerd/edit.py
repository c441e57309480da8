"""Which of containerd's files change so that it runs the handler, and the text of each afterwards."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gpunode.advice import named
from gpunode.editing import toml_text
from gpunode.editing.plain import copied
from gpunode.engines.containerd import live, mixed
from gpunode.engines.containerd.cri_section import (
    Around,
    enable_cri,
    make_default,
    section,
    wanted,
)
from gpunode.engines.containerd.imports import Files, covers
from gpunode.engines.containerd.schema import merges
from gpunode.errors import ConfigFileError, UnsupportedHost, UsageError
from gpunode.model.spec import RuntimeSpec
from gpunode.values import dataclass

# Next to the root file. For /etc/containerd it is where nvidia-ctk puts its own, and what containerd 2.2's
# `config default` imports.
DROP_IN = "conf.d/99-nvidia.toml"
HEADER = "# containerd's GPU runtime, added by gpunode and imported by {root}.\n"
DEFAULT = "default_runtime_name"


class Changes(NamedTuple):
    """Nothing to do: no texts."""

    main: str  # the file that decides
    texts: Mapping[str, str]  # in the order they are written: a drop-in before the file that imports it
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Report:
    """What was done, and what is to be known of it."""

    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: _Report) -> _Report:
        return _Report(self.added + other.added, self.notes + other.notes)


def changes(files: Files, want: RuntimeSpec, around: Around) -> Changes:
    """The edits that are needed, after which there are none.

    Raises ConfigFileError for a file that cannot be edited safely, UnsupportedHost for schemas that do not fit.
    """
    found = _changes(files, want, around)
    after = files
    for path, text in found.texts.items():
        after = after.having(path, text)
    if again := _changes(after, want, around).texts:
        raise ConfigFileError(
            f"{found.main} cannot be edited safely: the edit is not idempotent",
            evidence=f"a second pass would still change {', '.join(again)}; the file was not touched",
            remedy="add the runtime manually",
        )
    return found


def _changes(files: Files, want: RuntimeSpec, around: Around) -> Changes:
    overlooked = (
        f"{pattern} among the imports is relative, which containerd 1.6 looks for in / and not next to the file"
        for pattern in files.overlooked()
    )
    before, report = files, _Report(notes=tuple(overlooked))
    files = mixed.in_read_schema(files)
    mixed.refuse(files)
    target = _target(files, want)
    mixed.refuse(files.importing(target))
    version = live.version(files, files.root)
    texts, put = _with_handler(files, want, around, target)
    report += _Report(*mixed.about(before, files)) + put
    for path in files.order():
        plain = {**toml_text.read(path, texts.get(path, files.text(path)))}  # below, whole keys of it are put
        done = enable_cri(plain)
        if path == files.root and target not in files.having(target, files.text(target)).order():
            plain.setdefault("version", version)
            plain["imports"] = [*plain.get("imports", []), _pattern(files, target)]
            done = (*done, f"imports + {plain['imports'][-1]}")
        if done:
            texts[path] = toml_text.rewrite(path, texts.get(path, files.text(path)), plain, ("imports",))
            report += _Report(done)
    return _in_order(before, files, target, texts, report)


def _in_order(before: Files, files: Files, target: str, texts: Mapping[str, str], report: _Report) -> Changes:
    """The root last: what it imports is there by then, and its validation reads all of it."""
    texts = {files.root: files.text(files.root), **texts}
    changed = {path: text for path, text in texts.items() if text != before.text(path)}
    if files.root in changed:
        changed[files.root] = changed.pop(files.root)
    return Changes(target, changed, report.added, report.notes) if changed else Changes(target, {})


def _target(files: Files, want: RuntimeSpec) -> str:
    """The file that has the handler, or should have it."""
    order = files.order()
    if not merges(files.daemon):
        # The last import with a CRI section replaces the whole section of every file before it.
        target = next((p for p in reversed(order) if _has_cri(files, p)), files.root)
        if want.drop_in not in (None, "none", target):
            raise UnsupportedHost(
                f"containerd {files.daemon or 'of an unknown version'} gets no drop-in",
                evidence="1.x replaces the CRI section of its config.toml by that of an imported file, sandbox image, "
                "registries and all; 2.0 and later merge the two",
                remedy=f"leave --drop-in out: {named(target)} is edited in place",
            )
        return target
    engines = {path: live.engine(files, path) for path in order}
    holders = [path for path in order if want.handler in section(engines[path], "runtimes")]
    if holders:
        return holders[-1]
    defaults = [path for path in order if DEFAULT in engines[path]]
    drop_in = _drop_in(files, want)
    if drop_in is not None:
        last = files.importing(drop_in).order()
        if not defaults or not want.default or last.index(drop_in) >= last.index(defaults[-1]):
            return drop_in
    return defaults[-1] if defaults else files.root


def drop_in_path(root: str, want: RuntimeSpec) -> str:
    """The file that would be added: the wanted one, else the usual name."""
    asked = want.drop_in not in (None, "none")
    return want.drop_in if asked and want.drop_in else posixpath.join(posixpath.dirname(root), DROP_IN)


def _drop_in(files: Files, want: RuntimeSpec) -> str | None:
    """The file to add; None: none is added. A root without settings is simply written, one in version 1 edited."""
    simple = not files.plain(files.root) or live.version(files, files.root) == 1
    if want.drop_in == "none" or (want.drop_in is None and simple):
        return None
    path = drop_in_path(files.root, want)
    if not path.startswith("/") or not path.endswith(".toml") or path == files.root:
        raise UsageError(
            f"--drop-in {path!r} is not a file for a drop-in",
            evidence=f"it wants an absolute path that ends in .toml and is not {files.root} itself",
            remedy=f"leave it out for {DROP_IN} next to it, or say none to edit {named(files.root)} in place",
        )
    return path


def _with_handler(files: Files, want: RuntimeSpec, around: Around, target: str) -> tuple[dict[str, str], _Report]:
    """The texts that hold the handler and the default: one file, or two where another sets the default after it."""
    default_in = _default_file(files, want, target)
    here = replace(want, default=want.default and default_in == target)
    plain = files.plain(target)
    result = wanted(plain, live.version(files, target), here, around, live.plugin(files, target))
    if plain and target != files.root and "version" not in plain:
        # A drop-in without a version takes the main file's.
        result.plain.pop("version", None)
    before = files.text(target)
    if not before and target != files.root:
        before = HEADER.format(root=files.root)
    texts = {target: toml_text.rewrite(target, before, result.plain, ("plugins", result.plugin, "containerd"))}
    report = _Report()
    if texts[target] != files.text(target):
        report += _Report(result.added, (*_about(files, target), *result.notes))
    if want.default and default_in != target:
        texts[default_in], done = _only_default(files, default_in, want.handler)
        report += _Report(done)
    return texts, report


def _default_file(files: Files, want: RuntimeSpec, target: str) -> str:
    """The file that names the default, or should: the handler's, unless another file takes precedence."""
    if not merges(files.daemon):
        return target
    order = files.importing(target).order()
    decides = next((path for path in reversed(order) if DEFAULT in live.engine(files, path)), target)
    named = live.engine(files, decides).get(DEFAULT)
    return decides if named == want.handler or order.index(decides) > order.index(target) else target


def _only_default(files: Files, path: str, handler: str) -> tuple[str, tuple[str, ...]]:
    plain = copied(files.plain(path))
    plugin = live.plugin(files, path)
    done = make_default(section(plain, "plugins", plugin, "containerd"), handler, "runc")
    return toml_text.rewrite(path, files.text(path), plain, ("plugins", plugin, "containerd")), done


def _about(files: Files, target: str) -> list[str]:
    if target == files.root:
        return []
    if target in files.order():
        return [f"{target} is imported by {files.root} and takes precedence"]
    return [f"containerd {files.daemon} merges {target} with {files.root}, whose own settings are not changed"]


def _pattern(files: Files, drop_in: str) -> str:
    """What the root imports: the directory, unless that would load files that are there and not read now."""
    directory, name = posixpath.split(drop_in)
    read = files.order()
    for pattern in (f"{directory}/*.toml", f"{directory}/{name.removesuffix('.toml')}*.toml"):
        if not any(covers(pattern, path) for path in files.texts if path not in (*read, drop_in)):
            return pattern
    return drop_in


def _has_cri(files: Files, path: str) -> bool:
    """Also an empty one: before 2.0 it takes the place of the root's."""
    plugins = section(files.plain(path), "plugins")
    return any(plugin in plugins for plugin in live.tables(files, path))
