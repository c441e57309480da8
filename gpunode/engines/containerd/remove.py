"""Takes out of a containerd configuration what gpunode put in, when the file is no longer the one gpunode wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpunode.editing import toml_text
from gpunode.editing.plain import Plain, copied, same
from gpunode.editing.toml_scan import Statement, statements
from gpunode.engines.base import Removal
from gpunode.engines.containerd.cri_section import RUNC_TYPE, V1, V2, V3, containerd_section, normal, section
from gpunode.engines.containerd.imports import covers, patterns

Path = tuple[str, ...]
DEFAULT = "default_runtime_name"


def without(path: str, text: str, removal: Removal) -> str:
    """`text` without what gpunode put into this file, by what is known of its text before; "" when nothing is left."""
    old = None if removal.before is None else toml_text.load(path, removal.before)
    previous = removal.default if old is None else containerd_section(normal(old)).get(DEFAULT)
    if removal.keep_handler:
        return without_default(text, removal.handler, previous, path=path)
    left = removed(text, removal.handler, previous, path=path, before=removal.before)
    for pattern in patterns(toml_text.load(path, left)):
        # A pattern with a star may name nothing; without one, a file that is gone keeps containerd from starting.
        own = "*" not in pattern if old is None else pattern not in patterns(old)
        if own and any(covers(pattern, gone) for gone in removal.gone):
            left = unimported(left, pattern, path=path)
    return left if removal.before or toml_text.load(path, left).keys() - {"version"} else ""


def removed(
    text: str, handler: str, previous_default: str | None, *, path: str = "config.toml", before: str | None = None
) -> str:
    """`text` without the handler's table, and the default restored to `previous_default` (None: the key goes).

    For a file whose handler gpunode added: a table that was there before cannot be distinguished. A default that is no
    longer `handler` belongs to whoever changed it since, and is kept. So are `version`, `enable_cdi`, and the
    `runtimes.runc` that containerd 1.x needs written out. Where `before`, the text before gpunode, is given, the last
    two go if they were not in it, runc only while it has nothing but its type. Tables that are empty afterwards go;
    whole-line comments are kept, each where it was. A text without the handler is unchanged, byte for byte.
    Raises ConfigFileError (`path` is the name in it) for text that is not TOML or cannot be edited safely.
    """
    have = toml_text.load(path, text)
    want, gone = _without(have, handler, previous_default, None if before is None else toml_text.load(path, before))
    return _edited(path, text, have, want, gone)


def without_default(text: str, handler: str, previous_default: str | None, *, path: str = "config.toml") -> str:
    """`text` with the default restored as by `removed`, and the handler still among the runtimes."""
    have = toml_text.load(path, text)
    want = copied(have)
    gone: list[Path] = []
    for plugin in (V1, V2, V3):
        above: Path = ("plugins", plugin, "containerd")
        engine = section(want, *above)
        if engine.get(DEFAULT) == handler:
            gone += _default_restored(engine, above, previous_default)
    return _edited(path, text, have, want, gone)


def _default_restored(engine: Plain, above: Path, previous: str | None) -> list[Path]:
    """The key that goes, where nothing named a default before."""
    if previous is not None:
        engine[DEFAULT] = previous
        return []
    del engine[DEFAULT]
    return [(*above, DEFAULT)]


def unimported(text: str, pattern: str, *, path: str = "config.toml") -> str:
    """`text` without `pattern` among its imports; without the key when it was the only one.

    For the root file, once the drop-in that gpunode wrote is gone and no other file matches the pattern.
    """
    have = toml_text.load(path, text)
    imports = have.get("imports")
    if not isinstance(imports, list) or pattern not in imports:
        return text
    want = copied(have)
    want["imports"] = [name for name in imports if name != pattern]
    if want["imports"]:
        return toml_text.rewrite(path, text, want, ("imports",))
    del want["imports"]
    return _edited(path, text, have, want, [("imports",)])


def _without(have: Plain, handler: str, previous: str | None, before: Plain | None) -> tuple[Plain, list[Path]]:
    """The values as they should read, and the paths that go."""
    want = copied(have)
    gone: list[Path] = []
    for plugin in (V1, V2, V3):
        above: Path = ("plugins", plugin, "containerd")
        engine, taken = section(want, *above), len(gone)
        if section(engine, "runtimes").pop(handler, None) is not None:
            gone.append((*above, "runtimes", handler))
        if engine.get(DEFAULT) == handler:
            gone += _default_restored(engine, above, previous)
        if before is not None and len(gone) > taken:
            gone += _written_out(want, before, plugin)
        for path in gone[taken:]:
            section(want, *path[:-1]).pop(path[-1], None)
        if len(gone) > taken:
            gone += _emptied(want, (*above, "runtimes"))
    return want, gone


def _written_out(have: Plain, before: Plain, plugin: str) -> list[Path]:
    """What came with the handler: runc, which containerd 1.x forgets otherwise, and CDI."""
    above = ("plugins", plugin)
    found: list[Path] = []
    runtimes, old = (
        section(have, *above, "containerd", "runtimes"),
        section(containerd_section(normal(before)), "runtimes"),
    )
    # With a handler that somebody added since, runc must remain written out.
    if (
        runtimes.get("runc") == {"runtime_type": RUNC_TYPE}
        and "runc" not in old
        and runtimes.keys() - {"runc"} <= set(old)
    ):
        found.append((*above, "containerd", "runtimes", "runc"))
    if section(have, *above).get("enable_cdi") is True and "enable_cdi" not in section(before, *above):
        found.append((*above, "enable_cdi"))
    return found


def _emptied(want: Plain, path: Path) -> list[Path]:
    """Take out the tables on the way to `path` that are empty now, innermost first."""
    gone = []
    for end in range(len(path), 0, -1):
        above = section(want, *path[: end - 1]) if end > 1 else want
        if above.get(path[end - 1]) == {}:
            del above[path[end - 1]]
            gone.append(path[:end])
    return gone


def _edited(path: str, text: str, have: Plain, want: Plain, gone: list[Path]) -> str:
    if same(have, want):
        return text
    cut = _cut(statements(text), gone, want)
    if toml_text.reads_as(cut, want):
        return cut
    return toml_text.rewrite(path, text, want, ("plugins", *_plugin(gone), "containerd"))


def _plugin(gone: Sequence[Path]) -> Path:
    return next((path[1:2] for path in gone if len(path) > 1), (V2,))


def _cut(found: Sequence[Statement], gone: Sequence[Path], want: Plain) -> str:
    """The text with whole statements left out, and a default that is another now spelled in its place."""
    kept: list[Statement] = []
    lonely = False  # the last one kept is an empty line, and what stood below it went
    for statement in found:
        if any(_goes(statement, path) for path in gone):
            lonely = bool(kept) and kept[-1].kind == "blank"
            continue
        if lonely and statement.kind == "blank":
            kept.pop()  # that line came with the table below it
        lonely = False
        kept.append(statement)
    if lonely:
        kept.pop()
    return "".join(_spelled(statement, want) for statement in kept)


def _goes(statement: Statement, path: Path) -> bool:
    """Whether the statement is `path` or below it. A header above a path that goes is in `gone` itself."""
    return bool(statement.path) and statement.path[: len(path)] == path


def _spelled(statement: Statement, want: Plain) -> str:
    """The statement, with the default it should now name."""
    if statement.kind != "key" or statement.path[-1] != DEFAULT:
        return statement.text
    start, end = statement.value
    old, new = statement.text[start:end], section(want, *statement.path[:-1]).get(DEFAULT)
    if not isinstance(new, str) or toml_text.load("value", f"x = {old}\n")["x"] == new:
        return statement.text
    quoted = f"'{new}'" if old.startswith("'") and "'" not in new else json.dumps(new, ensure_ascii=False)
    return statement.text[:start] + quoted + statement.text[end:]
