"""Options of NVIDIA's Kubernetes device plugin in each of their spellings, as catalog/device_plugin.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass

Kind = Literal["word", "words", "flag", "numbers", "path", "text", "duration"]
Numbers = tuple[int, ...]
KINDS: tuple[Kind, ...] = get_args(Kind)
ALWAYS: Numbers = (0,)


@dataclass(frozen=True)
class PluginOption:
    flag: str  # "driver-root"; its newest name, and the name of the option
    env: str
    kind: Kind
    since: Numbers  # (0, 16)
    config: str | None  # "flags.nvidiaDriverRoot"; None: the config file has no key for it
    helm: str | None  # "mps.root"; None: the chart has no value for it
    helm_since: Numbers
    values: tuple[str, ...]  # () for any
    later: Mapping[str, Numbers]  # a value -> its first release, where that is not the option's
    default: str | None
    true_in: tuple[Numbers, ...]  # () | (from,) | (from, to): releases in which the default is true
    gfd: bool  # gpu-feature-discovery reads it, the plugin does not
    note: str | None
    renamed: Numbers  # (0,) where it never was
    old_flag: str
    old_env: str
    aliases: tuple[str, ...]
    source: str
    checked: str
    grade: str

    def flag_of(self, release: Numbers) -> str:
        """Its name on the command line of this release."""
        return self.flag if release >= self.renamed else self.old_flag

    def env_of(self, release: Numbers) -> str:
        return self.env if release >= self.renamed else self.old_env

    def helm_of(self, release: Numbers) -> str | None:
        return self.helm if release >= self.helm_since else None

    def default_of(self, release: Numbers) -> str | None:
        on = self.true_in and self.true_in[0] <= release and not (self.true_in[1:] and release >= self.true_in[1])
        return "true" if on else self.default

    @property
    def names(self) -> tuple[str, ...]:
        """Whatever a person may call it."""
        known = (self.flag, self.old_flag, self.env, self.old_env, *self.aliases, self.config, self.helm)
        return tuple(dict.fromkeys(name for name in known if name))


@cache
def plugin_options() -> tuple[PluginOption, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(_option(row) for row in rows("device_plugin.yaml", "options", "flag"))


def _option(row: Row) -> PluginOption:
    flag, env, since = row.text("flag"), row.text("env"), _numbers(row, "since", row.text("since"))
    later = row.maybe_row("later")
    values = row.maybe_texts("values")
    found = PluginOption(
        flag=flag,
        env=env,
        kind=row.one_of("kind", KINDS),
        since=since,
        config=row.maybe_text("config"),
        helm=row.maybe_text("helm"),
        helm_since=_maybe_numbers(row, "helm_since"),
        values=values,
        later={
            value: _numbers(later, value, later.text(value)) for value in values if later and later.maybe_text(value)
        },
        default=row.maybe_text("default"),
        true_in=tuple(_numbers(row, "true_in", one) for one in row.maybe_texts("true_in")),
        gfd=row.maybe_flag("gfd"),
        note=row.maybe_text("note"),
        renamed=_maybe_numbers(row, "renamed"),
        old_flag=row.maybe_text("old") or flag,
        old_env=row.maybe_text("old_env") or env,
        aliases=row.maybe_texts("aliases"),
        **dict(zip(("source", "checked", "grade"), row.provenance(), strict=True)),
    )
    row.done()
    return found


def _maybe_numbers(row: Row, key: str) -> Numbers:
    text = row.maybe_text(key)
    return ALWAYS if text is None else _numbers(row, key, text)


def _numbers(row: Row, key: str, text: str) -> Numbers:
    parts = text.split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() and part.isascii() for part in parts):
        raise row.fault(key, f"{text!r} is not a release such as 0.16")
    return tuple(map(int, parts))
