"""What `--where KEY=VALUE` may ask of a host's facts. Refusals and docs have its words."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpunode.catalog.load import Catalog, load_catalog
from gpunode.model.facts import HostFacts
from gpunode.values import dataclass

NONE = "none"  # the value of a host that has none
Seen = tuple[str, ...] | None  # what a host has, in lower case; () for none of it, None where that is not known


@dataclass(frozen=True)
class Fact:
    """One key."""

    about: str
    form: str  # of its value, for messages and docs
    seen: Callable[[HostFacts, Catalog], Seen]
    pattern: str = r"[\w][\w .()+/:-]{0,60}"
    matches: Callable[[str, str], bool] = str.__eq__  # (what a host has, what is wanted)
    choices: Callable[[], tuple[str, ...]] = tuple  # (): any value of that pattern


def _read(section: str, host: HostFacts, values: tuple[str, ...]) -> Seen:
    return None if section in host.unread else tuple(dict.fromkeys(value.lower() for value in values))


def _architectures(host: HostFacts, catalog: Catalog) -> Seen:
    return _read("pci", host, tuple(catalog.gpu_model(gpu.device).architecture for gpu in host.gpus))


def _models(host: HostFacts, catalog: Catalog) -> Seen:
    models = ((catalog.gpu_model(gpu.device), gpu.device) for gpu in host.gpus)
    return _read(
        "pci", host, tuple(f"{model.name if model.known else ''} {device}".strip() for model, device in models)
    )


def _count(host: HostFacts, catalog: Catalog) -> Seen:
    return _read("pci", host, (str(len(host.gpus)),))


def _branch(host: HostFacts, catalog: Catalog) -> Seen:
    version = host.driver.loaded or host.driver.installed
    return (version.partition(".")[0],) if version else _no_driver(host)


def _no_driver(host: HostFacts) -> Seen:
    return None if host.unread.keys() & {"driver", "modinfo"} else ()


def _modules(host: HostFacts, catalog: Catalog) -> Seen:
    facts = host.driver
    found = facts.loaded_flavour if facts.loaded else facts.installed_flavour
    return (found,) if found else None if facts.loaded or facts.installed else _no_driver(host)


def _like(host: HostFacts, catalog: Catalog) -> Seen:
    return tuple(name.lower() for name in (host.os.id, *host.os.id_like))


def _version(host: HostFacts, catalog: Catalog) -> Seen:
    return (host.os.version_id.lower(),) if host.os.version_id else ()


def _engines(host: HostFacts, catalog: Catalog) -> Seen:
    return tuple(dict.fromkeys(engine.name for engine in host.runtimes))


def _words_in(seen: str, wanted: str) -> bool:
    """H100 is in "h100 sxm5 80gb 2330", and L4 is not in "l40s": whole words, in their order."""
    return re.search(rf"(?<!\S){re.escape(wanted)}(?!\S)", seen) is not None


def _begins(seen: str, wanted: str) -> bool:
    """9 is 9.4 as well, and 24.04 is not 24.0."""
    return seen == wanted or seen.startswith(f"{wanted}.")


def _known_architectures() -> tuple[str, ...]:
    return (*(one.name for one in load_catalog().architectures), NONE)


FACTS: dict[str, Fact] = {
    "gpu.arch": Fact(
        "architecture of one of its GPUs", "blackwell, hopper, ... or none", _architectures,
        choices=_known_architectures,
    ),
    "gpu.model": Fact(
        "one of its GPUs, by words of its name or its PCI device id", "H100, RTX 4090, 2330 or none", _models,
        matches=_words_in,
    ),
    "gpu.count": Fact("how many GPUs it has", "a number", _count, pattern="[0-9]{1,3}"),
    "os.id": Fact("ID of os-release", "ubuntu, rocky, ...", lambda host, _: (host.os.id.lower(),)),
    "os.like": Fact("ID or one of ID_LIKE: a family", "rhel, debian, suse, ...", _like),
    "os.version": Fact("VERSION_ID, or its beginning", "24.04, 9 (which is 9.4 too)", _version, matches=_begins),
    "os.machine": Fact("processor, as uname -m has it", "x86_64, aarch64", lambda host, _: (host.os.machine.lower(),)),
    "driver.branch": Fact(
        "branch of the driver that is loaded, else installed", "580 or none", _branch, pattern="[0-9]{3}|none"
    ),
    "driver.module-type": Fact(
        "its kernel modules", "open, proprietary or none", _modules, choices=lambda: ("open", "proprietary", NONE)
    ),
    "engine": Fact("a container engine that is there", "docker, containerd, ... or none", _engines),
}  # fmt: skip
