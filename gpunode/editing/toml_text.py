"""Edits TOML inside its own text with tomlkit, and believes the result only after a second reader agrees.

tomlkit writes valid TOML in the wrong place for some inputs (dotted keys inside a table), and refuses others
(inline tables). So the wanted values are worked out first, as plain data; the edited text must read back as
exactly those, through a parser that shares no code with tomlkit.

Who only reads loads no editor: check does, and start-up counts.
"""

from __future__ import annotations

from gpunode import foreign
from gpunode.advice import named, typed
from gpunode.editing.plain import Plain, same
from gpunode.errors import ConfigFileError
from gpunode.foreign import BOM, NotRead

# Characters. From LARGE on only the tables in question are given to tomlkit, and above LARGEST never the whole file: it
# needs half a minute for 20,000 lines.
LARGE, LARGEST = 32 << 10, 512 << 10


def load(path: str, text: str) -> Plain:
    """The file as plain values. Raises ConfigFileError with line and column."""
    try:
        return foreign.read_toml(_body(text))
    except NotRead as found:
        what = found.what
        if what == "nested too deeply":
            what = f"{what} to be a daemon's configuration"
        raise _fault(path, f"{found.line}:{found.column}", what) from None


def rewrite(path: str, text: str, want: Plain, subtree: tuple[str, ...]) -> str:
    """`text` changed to hold `want`; comments, order and line ends of everything else are unchanged.

    What cannot be edited in place (inline tables, dotted keys) is written anew as ordinary tables: the smallest
    of `subtree`'s ends that makes it right. Raises ConfigFileError when none does.
    """
    have, body = load(path, text), _body(text)
    if same(have, want):
        return text
    from gpunode.editing.toml_pieces import is_in_too_many_pieces

    body += "" if not body or body.endswith("\n") else "\n"
    edited = _by_part(body, have, want, subtree) if len(body) > LARGE or is_in_too_many_pieces(body) else None
    if edited is None and len(body) <= LARGEST:
        edited = _edited(body, have, want, subtree)
    if edited is not None:
        return edited.replace("\n", "\r\n") if "\r\n" in text else edited
    raise ConfigFileError(
        f"{path} is written in a way that cannot be edited safely",
        evidence="every edit tried read back as something else than what was wanted; the file was not touched",
        remedy=f"write the tables below [{named('.'.join(subtree[:2]))}] as ordinary [tables], "
        "or add the runtime manually",
    )


def _by_part(body: str, have: Plain, want: Plain, subtree: tuple[str, ...]) -> str | None:
    """The edit made where it belongs, with the rest of the file out of sight; None when that does not do."""
    from gpunode.editing.toml_parts import part_of

    part = part_of(body, have, want)
    if part is None:
        return None
    edited = _edited(part.text, foreign.read_toml(part.text), part.want, subtree)
    whole = part.whole(edited) if edited is not None else None
    return whole if whole is not None and reads_as(whole, want) else None


def _edited(body: str, have: Plain, want: Plain, subtree: tuple[str, ...]) -> str | None:
    """The gentlest edit that reads as `want`; None when there is none. A byte order mark is dropped: containerd 2 exits
    on it."""
    from gpunode.editing.toml_pieces import is_in_too_many_pieces

    if is_in_too_many_pieces(body):
        return None
    from gpunode.editing.toml_edit import attempts, with_root_keys  # loads tomlkit
    from gpunode.editing.toml_layout import tidied

    start = with_root_keys(body, have, want)
    ends = [None, *(subtree[:count] for count in range(len(subtree), 0, -1))]
    tried = (tidied(body, edited) for edited in attempts(start, foreign.read_toml(start), want, ends))
    return next((edited for edited in tried if reads_as(edited, want)), None)


def reads_as(text: str, want: Plain) -> bool:
    try:
        return same(foreign.read_toml(text), want)
    except NotRead:
        return False


def _body(text: str) -> str:
    return text.removeprefix(BOM).replace("\r\n", "\n")


def _fault(path: str, where: str, what: str) -> ConfigFileError:
    return ConfigFileError(
        f"{path}:{where}: {what}",
        evidence="the file was not touched",
        remedy=f"correct {named(path)} at that place "
        f"({typed('containerd', '--config', path, 'config', 'dump')} names it too)",
    )
