"""Gates that kubelets before 1.12 need to offer GPUs, put where this host's unit reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpunode.catalog.feature_gates import needed_by
from gpunode.editing.flag_text import flags, refused, with_value
from gpunode.engines.kubernetes.kubelet_places import EXTRA_ARGS, UNIT_DIRECTORY, environment_files, places, units
from gpunode.engines.kubernetes.kubelet_told import GATES
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import KubeletSettings
from gpunode.planner.engines.kubelet.refused import Version
from gpunode.regex import regex

OWN_DROP_IN = f"{UNIT_DIRECTORY}kubelet.service.d/90-gpunode.conf"
DOCKER_ONLY = "Accelerators"
# EnvironmentFile=: NAME=words, in quotes or not; Environment=: the whole assignment is in quotes.
_VARIABLE = regex(rf"^[ \t]*(?:Environment=)?[\"']?{EXTRA_ARGS}=[\"']?(?=(.*))", re.MULTILINE)
_PEOPLE_WRITE = ("/etc/default/kubelet", "/etc/sysconfig/kubelet")


class Text(NamedTuple):
    """A file as it should be; `before` None: it is not there yet."""

    path: str
    before: str | None
    after: str


def missing(host: HostFacts, version: Version) -> dict[str, str]:
    """Gates that this release needs and that are not on -> what each of them brings."""
    settings = host.kubernetes.settings or KubeletSettings()
    on = {name for name, gate in settings.gates.items() if gate.on}
    return {gate: why for gate, why in needed_by(version).items() if gate not in on}


def why_not_docker(host: HostFacts) -> str | None:
    """What speaks against Accelerators: only a kubelet that starts its containers with docker counts GPUs by itself."""
    settings = host.kubernetes.settings or KubeletSettings()
    if settings.container_runtime not in (None, "docker"):
        return f"this kubelet has --container-runtime={settings.container_runtime}"
    return None if host.runtime("docker") else "no docker was found"


def with_gates(host: HostFacts, gates: tuple[str, ...], texts: dict[str, str]) -> Text:
    """The file that should have them. `texts`: of files that are edited already, by path.

    Raises UnsupportedHost where nothing that the unit reads is people's to write, ConfigFileError for a spelling that
    is not understood.
    """
    editable = [place for place in places(host) if place.form == "flags" and not place.is_packaged]
    now = {place.path: texts.get(place.path, place.file.text or "") for place in editable}
    for path, text in now.items():
        if (edited := _in_flag(path, text, gates)) is not None:
            return Text(path, host.file(path).text, edited)
    for path, text in now.items():
        if (edited := _in_variable(path, text, gates)) is not None:
            return Text(path, host.file(path).text, edited)
    return _new(host, gates, now)


def _in_flag(path: str, text: str, gates: tuple[str, ...]) -> str | None:
    flag = next((one for one in flags(text) if one.name == GATES), None)
    if flag is None:
        return None
    if flag.open or not re.fullmatch(r"[A-Za-z0-9=,]*", flag.value or ""):
        raise refused(path, text, flag.start, f"--{GATES} is spelled in a way that gpunode does not edit")
    named = [word for word in (flag.value or "").split(",") if word and word.partition("=")[0] not in gates]
    return with_value(path, text, flag, ",".join([*named, *(f"{gate}=true" for gate in gates)]))


def _in_variable(path: str, text: str, gates: tuple[str, ...]) -> str | None:
    found = _VARIABLE.search(text)
    if found is None:
        return None
    rest = found[1]
    between = " " if rest and rest[0] not in " \"'" else ""
    return text[: found.end()] + _flag(gates) + between + text[found.end() :]


def _new(host: HostFacts, gates: tuple[str, ...], texts: dict[str, str]) -> Text:
    """A line of the environment file that the unit reads, or a drop-in of gpunode's own for the unit's variable."""
    file = next((path for path in environment_files(host) if path in _PEOPLE_WRITE), None)
    uses = any(re.search(rf"\$\{{?{EXTRA_ARGS}\b", unit.text or "") for unit in units(host))
    if uses and file is not None:
        before = host.file(file).text
        text = texts.get(file, before or "")
        return Text(file, before, f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{_line(gates)}\n")
    if uses:
        drop_in = f'[Service]\nEnvironment="{_line(gates)}"\n'
        return Text(OWN_DROP_IN, host.file(OWN_DROP_IN).text, drop_in)
    raise UnsupportedHost(
        f"{' and '.join(gates)} must be given to the kubelet, and no file of its unit takes flags from people",
        evidence=f"its unit has no ${EXTRA_ARGS}, and no --{GATES} stands in a file of /etc",
        remedy=f"add --{GATES}={_value(gates)} to what starts the kubelet, and restart it",
    )


def _line(gates: tuple[str, ...]) -> str:
    return f"{EXTRA_ARGS}={_flag(gates)}"


def _flag(gates: tuple[str, ...]) -> str:
    return f"--{GATES}={_value(gates)}"


def _value(gates: tuple[str, ...]) -> str:
    return ",".join(f"{gate}=true" for gate in gates)
