"""systemd units, all from one `systemctl show`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.release import key_values
from gpunode.foreign import whole_number
from gpunode.model.facts import ServiceFacts

# Of systemd.unit(5), seen from the other end: Requires=, Requisite=, BindsTo= and PartOf=.
STOPPED_WITH = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf")
# Likewise: Wants=, Requires=, BindsTo= and Upholds= of the units that systemd has loaded: all that a boot starts are.
# And the paths, timers and sockets that trigger it, by their Unit= or by its name (kubelet.path).
STARTED_BY = ("WantedBy", "RequiredBy", "BoundBy", "UpheldBy", "TriggeredBy")


def parse_units(text: str) -> Mapping[str, Mapping[str, str]]:
    """unit -> its properties. Blocks are parted by empty lines:

    Id=docker.service
    LoadState=loaded
    ActiveState=active
    """
    blocks = (key_values(block) for block in re.split(r"\n\s*\n", text))
    return MappingProxyType({block["Id"]: MappingProxyType(block) for block in blocks if "Id" in block})


def parse_services(units: Mapping[str, Mapping[str, str]]) -> Mapping[str, ServiceFacts]:
    return MappingProxyType({name: _service(value) for name, value in units.items()})


def exec_words(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The command line in ExecStart; systemd shows it as

    { path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd -H fd:// ; ignore_errors=no ; start_time=[n/a] ; ... }
    """
    words, end, _ = properties.get("ExecStart", "").partition("argv[]=")[2].partition(" ;")
    return tuple(words.split()) if end else ()


def _service(value: Mapping[str, str]) -> ServiceFacts:
    return ServiceFacts(
        load=value.get("LoadState", "not-found"),
        active=value.get("ActiveState", "inactive"),
        sub=value.get("SubState", "dead"),
        enabled=value.get("UnitFileState", ""),
        main_pid=_positive(value.get("MainPID")),
        restarts=_natural(value.get("NRestarts")),
        dependents=_units(value, STOPPED_WITH),
        wanted_by=_units(value, STARTED_BY) if "WantedBy" in value else None,
    )


def _units(value: Mapping[str, str], properties: tuple[str, ...]) -> tuple[str, ...]:
    """Those that any of the properties names, each once."""
    return tuple(dict.fromkeys(unit for name in properties for unit in value.get(name, "").split()))


def _positive(text: str | None) -> int | None:
    return _natural(text) or None


def _natural(text: str | None) -> int | None:
    number = whole_number(text)
    return None if number is None or number < 0 else number
