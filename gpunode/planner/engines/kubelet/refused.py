"""Gates, flags and labels with which a kubelet does not start, taken out of the text of one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpunode.catalog.feature_gates import why_refused
from gpunode.catalog.kubelet_flags import gone_flag, is_switch
from gpunode.catalog.node_labels import kubelet_may_set
from gpunode.editing.flag_text import Flag, flags, refused, with_value, without_flag
from gpunode.editing.yaml_text import Document
from gpunode.engines.kubernetes.kubelet_places import Form
from gpunode.engines.kubernetes.kubelet_told import (
    GATES,
    LARGEST_YAML,
    LIST_KEYS,
    MOST_EDITS,
    MOST_FLAGS,
    PAIR,
    pairs_of,
)
from gpunode.model.kubernetes import is_on
from gpunode.regex import regex

Version = tuple[int, int]
LABELS = "node-labels"
NOT_ITS_OWN = "is no label that a kubelet may set"
_WORD = regex(r"[A-Za-z][A-Za-z0-9-]*", re.ASCII)
_LABEL = regex(r"([A-Za-z0-9./_-]{1,317})=([A-Za-z0-9._-]*)", re.ASCII)  # 253 of the domain, 63 of the name


class Taken(NamedTuple):
    """What was taken out, and why the kubelet does not start with it."""

    what: str  # "DevicePlugins", "--container-runtime", "alpha.kubernetes.io/nvidia-gpu-name"
    why: str  # "is not known from 1.28 on"


class Freed(NamedTuple):
    """A file's text without them; the same text where it had none."""

    text: str
    taken: tuple[Taken, ...] = ()


def freed(path: str, text: str, form: Form, version: Version) -> Freed:
    """Raises ConfigFileError, with the place, where one of them cannot be taken out safely."""
    words = set(_WORD.findall(text))
    if LABELS not in words and not any(_is_known_to_fail(word, version) for word in words):
        return Freed(text)
    if form == "flags":
        return _flags_freed(path, text, version)
    if len(text) > LARGEST_YAML:
        raise refused(path, text, 0, f"over {LARGEST_YAML} characters, which is no kubelet's configuration")
    return _configuration_freed(path, text, version) if form == "configuration" else _list_freed(path, text, version)


def _is_known_to_fail(word: str, version: Version) -> bool:
    return bool(why_refused(word, version, on=False) or _why_flag(word, version))


def _why_flag(name: str, version: Version) -> str | None:
    gone = gone_flag(name)
    return gone.why if gone and version >= gone.since else None


def _flags_freed(path: str, text: str, version: Version) -> Freed:
    taken: list[Taken] = []
    for flag in reversed(_bounded(path, text, flags(text))):  # from the end, so that the places before it hold
        edit, gone = _flag_freed(path, text, flag, version)
        text, taken = edit, [*gone, *taken]
        if len(taken) > MOST_EDITS:
            raise refused(path, text, 0, f"more than {MOST_EDITS} of them, which no person wrote")
    return Freed(text, tuple(taken))


def _bounded(path: str, text: str, found: tuple[Flag, ...]) -> tuple[Flag, ...]:
    if len(found) > MOST_FLAGS:
        raise refused(path, text, 0, f"{len(found)} flags, which no kubelet has")
    return found


def _flag_freed(path: str, text: str, flag: Flag, version: Version) -> Freed:
    if why := _why_flag(flag.name, version):
        _refuse_open(path, text, flag)
        if is_switch(flag.name) and flag.spaced:
            flag = flag._replace(
                value=None, value_at=flag.start + 2 + len(flag.name), end=flag.start + 2 + len(flag.name)
            )
        return Freed(without_flag(path, text, flag), (Taken(f"--{flag.name}", why),))
    if flag.name not in (GATES, LABELS):
        return Freed(text)
    value = flag.value or ""
    if flag.open:  # where it ends is not known, so its line is looked at
        pairs = pairs_of(text, flag) if flag.name == GATES else _LABEL.findall(text[flag.value_at :].partition("\n")[0])
        value = ",".join("=".join(pair) for pair in pairs)
    left, taken = _pairs_freed(flag.name, value, version)
    if not taken:
        return Freed(text)
    _refuse_open(path, text, flag)
    if not re.fullmatch(r"[A-Za-z0-9=,./_-]*", value):
        raise refused(path, text, flag.value_at, f"--{flag.name} is spelled in a way that gpunode does not edit")
    return Freed(with_value(path, text, flag, left) if left else without_flag(path, text, flag), taken)


def _refuse_open(path: str, text: str, flag: Flag) -> None:
    if flag.open:
        raise refused(
            path, text, flag.start, f"--{flag.name} has a value in quotes of its own, or goes on in the next line"
        )


def _pairs_freed(flag: str, value: str, version: Version) -> tuple[str, tuple[Taken, ...]]:
    """ "A=true,DevicePlugins=true" -> "A=true", and what was taken out."""
    left, taken = [], []
    for word in value.split(","):
        found = _gate_refused(word, version) if flag == GATES else _label_refused(word, version)
        if found:
            taken.append(found)
        else:
            left.append(word)
    return ",".join(left), tuple(taken)


def _gate_refused(word: str, version: Version) -> Taken | None:
    pair = PAIR.fullmatch(word)
    why = why_refused(pair[1], version, on=is_on(pair[2])) if pair else None
    return Taken(pair[1], why) if pair and why else None


def _label_refused(word: str, version: Version) -> Taken | None:
    pair = _LABEL.fullmatch(word)
    return Taken(pair[1], NOT_ITS_OWN) if pair and not kubelet_may_set(pair[1], version) else None


def _configuration_freed(path: str, text: str, version: Version) -> Freed:
    """Of a KubeletConfiguration."""
    gates = Document.read(path, text).get(("featureGates",))
    members = gates.members if gates and gates.members else ()
    dead = [(key.text, why) for key, value in members if (why := why_refused(key.text, version, on=is_on(value.text)))]
    return _edited(path, text, [(Taken(*one), _member_cut(path, one[0])) for one in dead])


def _member_cut(path: str, gate: str) -> Callable[[str], str]:
    return lambda text: Document.read(path, text).without(("featureGates", gate))


def _list_freed(path: str, text: str, version: Version) -> Freed:
    """Of k3s's and rke2's config.yaml: `kubelet-arg`, a list of flags without their dashes, or one of them."""
    found = list(_list_edits(path, Document.read(path, text), version))
    return _edited(path, text, [(taken, edit) for taken, edit in reversed(found)])


def _list_edits(path: str, document: Document, version: Version) -> Iterator[tuple[Taken, Callable[[str], str]]]:
    for key in LIST_KEYS:
        node = document.get((key,))
        if node is None:
            continue
        for index, word in [(None, node)] if node.is_word else list(enumerate(node.items or ())):
            name, _, value = word.text.removeprefix("--").partition("=")
            left, taken = _pairs_freed(name, value, version) if name in (GATES, LABELS) else ("", ())
            if why := _why_flag(name, version):
                taken = (Taken(f"--{name}", why),)
            for one in taken[:1]:
                put = f"{word.text.partition('=')[0]}={left}" if left else None
                what = Taken(", ".join(each.what for each in taken), one.why)
                yield what, _word_edit(path, key, index, put)


def _word_edit(path: str, key: str, index: int | None, put: str | None) -> Callable[[str], str]:
    def edit(text: str) -> str:
        document = Document.read(path, text)
        if put is not None:
            return document.with_word((key,), index, put)
        return document.without((key,)) if index is None else document.without_item((key,), index)

    return edit


def _edited(path: str, text: str, edits: list[tuple[Taken, Callable[[str], str]]]) -> Freed:
    if len(edits) > MOST_EDITS:
        raise refused(path, text, 0, f"more than {MOST_EDITS} of them, which no person wrote")
    for _, edit in edits:
        text = edit(text)
    return Freed(text, tuple(taken for taken, _ in edits))
