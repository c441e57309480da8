"""Which engines can read which CDI specifications.

An engine rejects a whole specification with a field that it does not know. Version 0.7 has additionalGids, which the
toolkit writes unless a feature flag switches it off (NVIDIA/nvidia-container-toolkit#1860).
"""

from __future__ import annotations

import re

from gpunode.catalog.versions import first_with
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.versions import at_least, release
from gpunode.regex import regex

# The toolkit's switch: with FLAG in VARIABLE it writes what the older engines read.
FLAG = "no-additional-gids-for-device-nodes"
_WITH_ROWS = ("docker", "podman", "crio")
VARIABLE = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS"
_VERSION = regex(r"""(?:^|["'{,])[ \t]*cdiVersion["']?[ \t]*:[ \t]*["']?v?([0-9][0-9.]{0,20})""", re.MULTILINE)


def behind(host: HostFacts, *, cdi: bool = False) -> tuple[RuntimeFacts, ...]:
    """The engines that take devices from CDI specifications and cannot read 0.7. `cdi`: it is about to be switched on.

    CDI is off by default in every release of docker and containerd that is so old.
    """
    return tuple(one for one in host.runtimes if (one.cdi or cdi) and reads_old_only(one))


def reads_old_only(engine: RuntimeFacts) -> bool:
    """It has CDI, and reads no version 0.7; False for an engine whose version is not known."""
    program = _program(engine)
    has_it = at_least(engine.version, first_with(program, "cdi"))
    return has_it and not at_least(engine.version, first_with(program, "cdi-0.7"))


def lacks_cdi(engine: RuntimeFacts) -> bool:
    """It is of a release from before CDI; False for an engine whose version is not known."""
    return release(engine.version) is not None and not at_least(engine.version, first_with(_program(engine), "cdi"))


def _program(engine: RuntimeFacts) -> str:
    """The Kubernetes distributions run a containerd of their own."""
    return engine.name if engine.name in _WITH_ROWS else "containerd"


def titles(engines: tuple[RuntimeFacts, ...]) -> str:
    """ "docker 26.0.0 and podman 4.9.3" """
    return " and ".join(f"{engine.label} {engine.version}" for engine in engines)


def version_of(specification: str) -> str | None:
    """0.7.0 of `cdiVersion: 0.7.0` or `"cdiVersion": "0.7.0"`."""
    found = _VERSION.search(specification)
    return found[1] if found else None


def is_new(specification: str) -> bool:
    """Whether it is of a version that the engines of reads_old_only reject."""
    return at_least(version_of(specification), first_with("cdi", "additional-gids"))


def writes_new(toolkit: str | None) -> bool:
    """Whether this toolkit writes version 0.7 unless it is told otherwise."""
    return at_least(toolkit, first_with("toolkit", "cdi-0.7"))
