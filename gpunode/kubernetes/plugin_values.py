"""One value of an option, checked: from a word of the command line, or from YAML by what its tag says it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gpunode.advice import meant
from gpunode.catalog.plugin_options import Kind, PluginOption
from gpunode.errors import UsageError
from gpunode.foreign import whole_number
from gpunode.kubernetes.plugin_model import Value
from gpunode.regex import regex

MOST = 16  # of a list
# Plain words alone: they stand in a manifest, in a unit and on a command line, and are the same everywhere.
# A server takes no volume whose path has a part `..`, and no mount at one with a colon.
_PATH = regex(r"(?!.*/\.\.(?:/|$))/[\w./+@-]{0,254}", re.ASCII)
_PREFIX = regex(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?(?:[A-Za-z0-9][\w.-]*)?", re.ASCII)
_WORD = regex(r"[a-z][a-z0-9.-]{0,62}")
_DURATION = regex(r"infinite|(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|ms|s|m|h)){1,6}")


def from_word(option: PluginOption, text: str) -> Value:
    """What was typed: lists have commas. Raises UsageError that says what is wanted."""
    if option.kind in ("words", "numbers"):
        return _list(option, [part for part in text.split(",") if part])
    return _scalar(option, text)


def from_list(option: PluginOption, texts: Sequence[str]) -> Value:
    """Raises UsageError for an option that has one value."""
    if option.kind not in ("words", "numbers"):
        raise UsageError("a list is not wanted here")
    return _list(option, texts)


def _list(option: PluginOption, texts: Sequence[str]) -> Value:
    if len(texts) > MOST or len(set(texts)) != len(texts):
        raise UsageError(f"more than {MOST} values, or one that stands twice")
    if option.kind == "numbers":
        numbers = [whole_number(text) for text in texts]
        if any(number is None or number < 0 for number in numbers):
            raise UsageError("whole numbers are wanted")
        return tuple(number for number in numbers if number is not None)
    return tuple(_one_of(option, text) for text in texts)


def _scalar(option: PluginOption, text: str) -> Value:
    if option.kind == "flag":
        if text not in ("true", "false"):
            raise UsageError(f"{text!r:.60} is neither true nor false")
        return text == "true"
    return _SCALARS[option.kind](option, text)


def _one_of(option: PluginOption, text: str) -> str:
    if option.values and text not in option.values:
        raise UsageError(
            f"{text!r:.60} is not one of {', '.join(option.values)}; {meant(text[:60], option.values)}".rstrip("; ")
        )
    return _like(_WORD, "a word", text)


def _like(form: re.Pattern[str], what: str, text: str) -> str:
    if not form.fullmatch(text):
        raise UsageError(f"{text!r:.60} is not {what}")
    return text


_SCALARS: dict[Kind, Callable[[PluginOption, str], str]] = {
    "word": _one_of,
    "path": lambda _, text: _like(_PATH, "an absolute path of plain characters, without ..", text),
    "text": lambda _, text: _like(_PREFIX, "the beginning of an annotation's key, such as cdi.k8s.io/", text),
    "duration": lambda _, text: _like(_DURATION, "a duration such as 60s or 1m30s", text),
}


def spelled(value: Value) -> str:
    """As flags and variables have it: true, one,two."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple) else value
