"""Edits TOML inside its own text, and believes the result only after a second reader agrees.

The wanted values are worked out first, as plain data; the edited text must read back as exactly those, through a parser
that shares no code with the editor. Who only reads loads no editor: check does, and start-up counts.
"""

from __future__ import annotations

from functools import lru_cache

from gpunode import foreign
from gpunode.advice import named, typed
from gpunode.editing.plain import Plain, copied, same
from gpunode.errors import ConfigFileError
from gpunode.foreign import BOM, NotRead


def load(path: str, text: str) -> Plain:
    """The file as plain values, the caller's own. Raises ConfigFileError with line and column."""
    return copied(read(path, text))


def read(path: str, text: str) -> Plain:
    """The same for who only reads, shared between callers: not to be changed."""
    try:
        return parsed(text.removeprefix(BOM))
    except NotRead as found:
        what = found.what
        if what == "nested too deeply":
            what = f"{what} to be a daemon's configuration"
        raise _fault(path, f"{found.line}:{found.column}", what) from None


@lru_cache(maxsize=16)  # an engine's files, before and after their edit, are asked for a dozen times, at 8 µs a line
def parsed(body: str) -> Plain:
    return foreign.read_toml(body)


def rewrite(path: str, text: str, want: Plain, subtree: tuple[str, ...]) -> str:
    """`text` changed to hold `want`, and otherwise the same bytes, without a byte order mark: containerd 2 exits on it.

    Raises ConfigFileError when the edited text does not read as `want`; `subtree` is what its remedy names.
    """
    have, body = read(path, text), text.removeprefix(BOM)
    if same(have, want):
        return text
    from gpunode.editing.toml_edit import edited
    from gpunode.editing.toml_scan import line_end

    body += "" if not body or body.endswith("\n") else line_end(body.partition("\n")[0] + "\n")
    after = edited(body, have, want)
    if reads_as(after, want):
        return after
    raise ConfigFileError(
        f"{path} is written in a way that cannot be edited safely",
        evidence="the edit read back as something else than what was wanted; the file was not touched",
        remedy=f"write the tables below [{named('.'.join(subtree[:2]))}] as ordinary [tables], "
        "or add the runtime manually",
    )


def reads_as(text: str, want: Plain) -> bool:
    try:
        return same(parsed(text), want)
    except NotRead:
        return False


def _fault(path: str, where: str, what: str) -> ConfigFileError:
    return ConfigFileError(
        f"{path}:{where}: {what}",
        evidence="the file was not touched",
        remedy=f"correct {named(path)} at that place "
        f"({typed('containerd', '--config', path, 'config', 'dump')} names it too)",
    )
