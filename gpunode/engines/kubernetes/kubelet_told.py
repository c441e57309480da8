"""What this host's kubelet is told, by the files that decide how it starts: gates and flags, each with its place.

What setup would take out (planner/engines/kubelet) is read by the same rules.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.editing.flag_text import Flag, flags
from gpunode.editing.yaml_text import Document
from gpunode.engines.kubernetes.kubelet_places import READ_BY_PROBE, Place, environment_files, places
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletSettings, KubeletTold, Told
from gpunode.regex import regex

GATES = "feature-gates"
ENDPOINT = "container-runtime-endpoint"
BY_CONFIG_YAML = ("k3s", "rke2")  # of which nothing else tells the kubelet what people want
LIST_KEYS = ("kubelet-arg", "kubelet-arg+")
MOST_EDITS = 32  # in one file; a kubelet was never given more by a person
MOST_FLAGS = 10 * MOST_EDITS
LARGEST_YAML = 32768  # characters; a kubelet's configuration has two thousand
RUNNING = "the command line of the running kubelet"
PAIR = regex(r"([A-Za-z][A-Za-z0-9]*)=([A-Za-z0-9]*)", re.ASCII)
_BETWEEN = regex(r"[^A-Za-z0-9=]+", re.ASCII)


def told(host: HostFacts) -> KubeletTold:
    """Of a host with a kubelet. A file that was not read, or cannot be, is said as unknown."""
    gates: list[Told] = []
    others: list[Told] = []
    unknown: list[str] = []
    lists = set[str]()  # files of k3s' and rke2's own that were read so far
    read = places(host)
    for place in read:
        try:
            found = _in_place(place)
        except ConfigFileError as error:
            unknown.append(error.problem)
            continue
        if place.file.unread is not None:
            unknown.append(f"{place.path} was not read: {place.file.unread}")
        if _is_last_word(place):
            gates, others = ([one for one in kept if one.path not in lists] for kept in (gates, others))
        lists.update({place.path} if place.form == "kubelet-arg" else ())
        for is_gate, one in found:
            (gates if is_gate else others).append(one)
    embedded = next((engine for engine in host.runtimes if engine.embedded_in or engine.distribution_flags), None)
    for is_gate, one in _on_command_line(embedded) if embedded else ():
        (gates if is_gate else others).append(one)
    settings = host.kubernetes.settings
    named = {one.name for one in gates}
    for name, gate in sorted((settings or KubeletSettings()).gates.items()):
        if name not in named:
            gates.append(Told(name, str(gate.on).lower(), gate.where))
    in_files = any(place.form == "flags" for place in read)
    # What stands in none of them is in one that was not read, or was taken out since the kubelet was started.
    in_some_file = {GATES, *(one.name for one in others)}
    # A distribution passes its kubelet flags of its own, as its release has them.
    started_by = embedded or any(one.name == host.kubernetes.distribution for one in kubernetes_distributions())
    by_people = () if started_by else host.kubernetes.flags or ()
    others += [Told(name, "", RUNNING) for name in by_people if name not in in_some_file]
    knows_flags = in_files or host.kubernetes.flags is not None or host.kubernetes.distribution in BY_CONFIG_YAML
    has_none = knows_flags and not any(one.name == "config" for one in others)
    unknown += _not_known(host, settings, read, knows_flags=knows_flags, has_none=has_none)
    known = (settings is not None and not settings.unread) or has_none
    return KubeletTold(tuple(gates), tuple(others), tuple(dict.fromkeys(unknown)), known)


def pairs_of(text: str, flag: Flag) -> list[tuple[str, str]]:
    """The gates of a --feature-gates. Where the end of its value is not known, its line is looked at."""
    if not flag.open:
        return pairs(flag.value or "")
    return pairs(_BETWEEN.sub(",", text[flag.value_at :].partition("\n")[0]))


def pairs(value: str) -> list[tuple[str, str]]:
    """ "A=true,B=false" """
    return [(found[1], found[2]) for word in value.split(",") if (found := PAIR.fullmatch(word))]


_Found = Iterator[tuple[bool, Told]]  # whether it is a gate


def _in_place(place: Place) -> _Found:
    """Raises ConfigFileError for a file that no kubelet would read either, or that is too large to be its own."""
    text = place.file.text or ""
    if place.form == "flags":
        return _in_flags(place, text)
    if len(text) > LARGEST_YAML:
        raise ConfigFileError(f"{place.path} has over {LARGEST_YAML} characters, which is no kubelet's configuration")
    document = Document.read(place.path, text)
    return _in_configuration(place, document) if place.form == "configuration" else _in_list(place, document)


def _is_last_word(place: Place) -> bool:
    """Of k3s' and rke2's files the last one with a key counts, unless it has a plus (their configuration pages)."""
    if place.form != "kubelet-arg":
        return False
    return Document.read(place.path, place.file.text or "").get((LIST_KEYS[0],)) is not None


def _in_flags(place: Place, text: str) -> _Found:
    found = flags(text)
    if len(found) > MOST_FLAGS:
        raise ConfigFileError(f"{place.path} has {len(found)} flags, which no kubelet has")
    return _each_flag(place, text, found)


def _each_flag(place: Place, text: str, found: tuple[Flag, ...]) -> _Found:
    line, seen = 1, 0
    for flag in found:
        line, seen = line + text.count("\n", seen, flag.start), flag.start
        where = f"{place.path}:{line}"
        if flag.name == GATES:
            yield from (
                (True, Told(name, on, where, place.path, place.is_packaged)) for name, on in pairs_of(text, flag)
            )
        else:
            yield False, Told(flag.name, flag.value or "", where, place.path, place.is_packaged)


def _in_configuration(place: Place, document: Document) -> _Found:
    gates = document.get(("featureGates",))
    for key, value in gates.members or () if gates else ():
        yield True, Told(key.text, value.text, f"{place.path}:{key.place.partition(':')[0]}", place.path)
    if (endpoint := document.get(("containerRuntimeEndpoint",))) is not None:  # what the flag says as well
        yield False, Told(ENDPOINT, endpoint.text, f"{place.path}:{endpoint.place.partition(':')[0]}", place.path)


def _in_list(place: Place, document: Document) -> _Found:
    """Of k3s's and rke2's config.yaml."""
    for key in LIST_KEYS:
        node = document.get((key,))
        for word in () if node is None else [node] if node.is_word else node.items or ():
            yield from _of_word(word.text, f"{place.path}:{word.place.partition(':')[0]}", place.path)


def _of_word(word: str, where: str, path: str = "") -> _Found:
    name, _, value = word.removeprefix("--").partition("=")
    if name == GATES:
        yield from ((True, Told(gate, on, where, path)) for gate, on in pairs(value))
    elif name:
        yield False, Told(name, value, where, path)


def _on_command_line(engine: RuntimeFacts) -> _Found:
    """What a distribution's own command passes on: --kubelet-arg of k3s and rke2, --kubelet-extra-args of k0s."""
    where = f"the command line of {engine.unit}"
    for word, following in itertools.pairwise((*engine.distribution_flags, "")):
        name, joined, value = word.partition("=")
        value = value if joined else following
        if name == "--kubelet-arg":
            yield from _of_word(value, where)
        elif name == "--kubelet-extra-args":
            for flag in flags(value)[:MOST_FLAGS]:
                yield from _of_word(f"{flag.name}={flag.value or ''}", where)


def _not_known(
    host: HostFacts, settings: KubeletSettings | None, read: tuple[Place, ...], *, knows_flags: bool, has_none: bool
) -> Iterator[str]:
    """`has_none`: no flag names a configuration."""
    distribution = host.kubernetes.distribution
    if settings is not None and settings.unread and not any(one.path == settings.unread for one in read):
        yield f"{settings.unread} was not read"
    if distribution == "k0s":
        yield "k0s keeps gates of its kubelets in worker profiles of the cluster's configuration, not on the node"
    elif distribution == "microk8s" and not read:
        yield "the arguments of microk8s' kubelet were not read"
    elif distribution not in (*BY_CONFIG_YAML, "microk8s"):
        if host.kubernetes.flags is None:
            yield from (
                f"{path}, which the kubelet's unit reads, was not read"
                for path in environment_files(host)
                if path not in host.files and path not in READ_BY_PROBE
            )
        if not knows_flags:
            yield "the kubelet does not run, and no unit or environment file of it was read: its flags are not known"
        if settings is None and not has_none and not any(place.form == "configuration" for place in read):
            yield "no configuration of the kubelet was read: its feature gates there are not known"
