"""Container engines: which are here, which config they really use, and what the running daemons report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.facts.engines import (
    crio,
    distribution_of,
    distribution_version,
    missing_binaries,
    own_files,
    podman,
    stopped_distributions,
)
from gpunode.facts.processes import Process, parse_processes, unit_of
from gpunode.facts.readers import ADDED, Reader, Units
from gpunode.facts.release import key_values
from gpunode.facts.services import exec_words
from gpunode.facts.trust import daemons_of_the_host, daemons_of_users
from gpunode.facts.wire import Sections
from gpunode.foreign import read_json
from gpunode.model.facts import RuntimeFacts
from gpunode.regex import regex

_VERSION = regex(r"\bv?(\d+\.\d+\.\d+)")

LONGEST_HEADER = 300  # characters


def parse_runtimes(sections: Sections, units: Units) -> tuple[RuntimeFacts, ...]:
    """docker first, then every containerd that is not docker's own, CRI-O, podman, and what else is registered."""
    hosts = daemons_of_the_host(parse_processes(sections))
    modes = socket_modes(sections.text("socket_modes"))
    found = (facts for reader in readers() for facts in reader.read(sections, units, hosts))
    return tuple(replace(facts, socket_mode=modes.get(facts.socket)) for facts in found)


def socket_modes(text: str) -> dict[str, int]:
    """Path -> permission bits, of the sockets that were asked; stat's %f has the kind of file before them:

    c1b0 /var/run/docker.sock
    """
    lines = (re.fullmatch(r"([0-9a-f]{4}) (/.*)", line) for line in text.splitlines())
    return {line[2]: int(line[1], 16) & 0o7777 for line in lines if line}


def readers() -> tuple[Reader, ...]:
    """The built-in engines' are named here, so that a probe of a host loads no editor of files."""
    return (
        Reader(("docker:",), _dockers),
        Reader(("containerd:", *(f"{one.name}:" for one in kubernetes_distributions())), _containerds),
        Reader(("crio:",), crio),
        Reader(("podman",), lambda sections, units, hosts: podman(sections)),
        *ADDED,
    )


def _dockers(sections: Sections, units: Units, hosts: tuple[Process, ...]) -> tuple[RuntimeFacts, ...]:
    rootless = [_rootless_docker(sections, p) for p in daemons_of_users(parse_processes(sections))]
    rooted = tuple(p for p in hosts if p.comm == "dockerd")
    pid = key_values(sections.text("docker")).get("pid")  # whose file and socket the section has
    main = next((p for p in rooted if str(p.pid) == pid), rooted[0] if rooted else None)
    others = tuple((p.pid, unit_of(p, units) or "") for p in rooted if p is not main)
    dockers = [replace(_docker(sections, units, main), others=others)] if main else []
    # Docker advises to disable the host's dockerd next to a rootless one; one that is only stopped still counts.
    if not dockers and (not rootless or _starts_by_itself(units, "docker.service")):
        dockers = _stopped_docker(sections, units)
    return (*dockers, *rootless)


def _containerds(sections: Sections, units: Units, hosts: tuple[Process, ...]) -> tuple[RuntimeFacts, ...]:
    keys = sorted(name for name in sections.commands if re.fullmatch(r"containerd:[0-9]{1,9}:files", name))
    by_pid = {p.pid: p for p in hosts}
    found = tuple(_containerd(sections, units, int(key.split(":")[1]), by_pid) for key in keys)
    return (*found, *stopped_distributions(units, found, sections))


def _docker(sections: Sections, units: Units, process: Process | None) -> RuntimeFacts:
    """`/info` of the running daemon, whose fields are Go's: DefaultRuntime, Runtimes, LiveRestoreEnabled ..."""
    value = key_values(sections.text("docker"))
    info = _object(sections.text("docker:info"))
    unit = (unit_of(process, units) if process else None) or "docker.service"
    argv = process.argv if process else _unit_words(sections) or exec_words(units.get(unit, {}))
    binary = (process.binary if process else None) or value.get("binary") or None
    handlers = tuple(sorted(_mapping(info.get("Runtimes"))))
    systemd = info.get("CgroupDriver") == "systemd"
    cdi = info.get("CDISpecDirs")
    return RuntimeFacts(
        name="docker",
        version=_version(str(info.get("ServerVersion", "")) or sections.text("docker:version")),
        config_path=value.get("config", "/etc/docker/daemon.json"),
        unit=unit,
        pid=process.pid if process else None,
        started_at=process.started_at if process else None,
        socket=value.get("socket", "/var/run/docker.sock"),
        binary=binary,
        active=process is not None and _active(units, unit),
        effective_default=_word(info.get("DefaultRuntime")),
        effective_source="docker /info" if info else "",
        handlers=handlers,
        systemd_cgroup=MappingProxyType({name: systemd for name in handlers if "CgroupDriver" in info}),
        cdi=bool(cdi) if isinstance(cdi, list) else None,
        live_restore=info["LiveRestoreEnabled"] if isinstance(info.get("LiveRestoreEnabled"), bool) else None,
        swarm=_mapping(info.get("Swarm")).get("LocalNodeState") == "active",
        containers_running=info["ContainersRunning"] if isinstance(info.get("ContainersRunning"), int) else None,
        running=tuple(sections.text("docker:running").split()),
        flags=argv[1:],
        snap=_is_snap(binary, unit, sections),
        missing_binaries=missing_binaries(sections),
    )


def _unit_words(sections: Sections) -> tuple[str, ...]:
    """The arg= lines of a stopped dockerd: its unit's ExecStart, with the variables that root decides filled in."""
    return tuple(re.findall(r"^arg=(.*)$", sections.text("docker"), re.MULTILINE))


def _rootless_docker(sections: Sections, process: Process) -> RuntimeFacts:
    """A user's own dockerd (docs.docker.com/engine/security/rootless): their file, their unit, their socket.

    Its answer comes from a user's program: one that makes no sense counts as none.
    """
    value = key_values(sections.text(f"docker:{process.pid}"))
    try:
        info = _object(sections.text(f"docker:{process.pid}:info"))
    except ValueError:
        info = {}
    cdi = info.get("CDISpecDirs")
    return RuntimeFacts(
        name="docker",
        version=_version(str(info.get("ServerVersion", ""))),
        config_path=value.get("config", ""),
        unit="docker.service",
        pid=process.pid,
        started_at=process.started_at,
        socket=value.get("socket", ""),
        binary=process.binary,
        active=bool(info),
        effective_default=_word(info.get("DefaultRuntime")),
        effective_source=f"docker /info of {process.user or process.uid}" if info else "",
        handlers=tuple(sorted(_mapping(info.get("Runtimes")))),
        cdi=bool(cdi) if isinstance(cdi, list) else None,
        live_restore=info["LiveRestoreEnabled"] if isinstance(info.get("LiveRestoreEnabled"), bool) else None,
        swarm=_mapping(info.get("Swarm")).get("LocalNodeState") == "active",
        containers_running=info["ContainersRunning"] if isinstance(info.get("ContainersRunning"), int) else None,
        flags=process.argv[1:],
        missing_binaries=missing_binaries(sections),
        user=process.user or str(process.uid),
        owner=f"{process.uid}:{process.uid if process.gid is None else process.gid}",
        sees_toolkit=process.sees_toolkit,
    )


def _stopped_docker(sections: Sections, units: Units) -> list[RuntimeFacts]:
    """An installed dockerd that does not run. The client alone is no engine."""
    here = key_values(sections.text("docker")).get("binary") or _loaded(units, "docker.service")
    return [_docker(sections, units, None)] if here else []


def _containerd(sections: Sections, units: Units, pid: int, running: Mapping[int, Process]) -> RuntimeFacts:
    """pid 0: installed, not running."""
    process, key = running.get(pid), f"containerd:{pid}"
    unit = (unit_of(process, units) if process else None) or "containerd.service"
    argv = process.argv if process else exec_words(units.get("containerd.service", {}))
    files = sections.text(f"{key}:files").splitlines()
    dump = sections.text(f"{key}:dump") or None
    config, source = _cri(sections, key)
    effective = effective_cri(config)
    if process and not config and dump and sections.commands.get(f"{key}:plugins") is not None:
        effective, source = _from_dump(sections, key, dump)
    sockets = dict(line.split(None, 1) for line in sections.text("sockets").splitlines() if " " in line)
    namespaces = sections.text("shims").split()
    binary = (process.binary if process else None) or (argv[0] if argv else None)
    embedded_in = distribution_of(unit, files[0]) if process and files else None
    return RuntimeFacts(
        name=embedded_in or "containerd",
        version=_version(sections.text(f"{key}:version")),
        runc_version=_version(sections.text(f"{key}:runc")),
        config_path=files[0] if files else "/etc/containerd/config.toml",
        unit=unit,
        pid=pid or None,
        socket=sockets.get(key, "/run/containerd/containerd.sock"),
        binary=binary,
        active=process is not None and _active(units, unit),
        effective_default=effective.get("default"),
        effective_source=source,
        handlers=effective.get("handlers", ()),
        systemd_cgroup=MappingProxyType(effective.get("systemd_cgroup", {})),
        cdi=effective.get("cdi"),
        containers_running=sum(n != "moby" for n in namespaces) if process else None,
        imports=own_files(sections, embedded_in) if embedded_in in ("k3s", "rke2") else tuple(files[1:]),
        merged_config=dump,
        cri_error=None if config or process is None else _cri_error(sections, key),
        missing_binaries=missing_binaries(sections),
        flags=argv[1:],
        snap=_is_snap(binary, unit, sections, client=False),
        embedded_in=distribution_version(sections, embedded_in) if embedded_in else None,
        distribution_flags=exec_words(units.get(unit, {}))[1:] if embedded_in else (),
        distribution_config=process.config_file if process and embedded_in in ("k3s", "rke2") else None,
    )


def effective_cri(config: Mapping[str, Any]) -> dict[str, Any]:
    """default, handlers, systemd_cgroup and cdi in CRI Status' verbose `config`:

    {"containerd": {"defaultRuntimeName": "runc",
                    "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": true}}}},
     "enableCDI": true}
    """
    containerd = _mapping(config.get("containerd"))
    runtimes = _mapping(containerd.get("runtimes"))
    if not containerd:
        return {}
    options = {name: _mapping(_mapping(value).get("options")) for name, value in runtimes.items()}
    return {
        "default": _word(containerd.get("defaultRuntimeName")),
        "handlers": tuple(sorted(runtimes)),
        # An option that is not set is cgroupfs: SystemdCgroup is not inherited.
        "systemd_cgroup": {name: value.get("SystemdCgroup") is True for name, value in options.items()},
        "cdi": config["enableCDI"] if isinstance(config.get("enableCDI"), bool) else None,
    }


def _cri(sections: Sections, key: str) -> tuple[Mapping[str, Any], str]:
    """`source=WAY`, then the configuration; crictl prints it as the member "config" of a larger object."""
    source, _, text = sections.text(f"{key}:cri").partition("\n")
    answer = _object(text)
    config = _mapping(answer.get("config")) or answer
    if "containerd" not in config:
        return {}, ""
    return config, f"CRI Status ({source.removeprefix('source=')})"


def _from_dump(sections: Sections, key: str, dump: str) -> tuple[dict[str, Any], str]:
    """Without CRI's own answer: the content of the files, and only while containerd reports the plugin as loaded."""
    plugins = sections.commands[f"{key}:plugins"]
    default = re.search(r'^[ \t]*default_runtime_name[ \t]*=[ \t]*["\']([^"\'\n]+)["\']', dump, re.MULTILINE)
    if plugins.rc != 0 or _plugin_error(plugins.text) or default is None:
        return {}, ""
    header = re.compile(r"[ \t]*\[.*containerd[\"']?\.runtimes\.([\"']?)([\w.-]+?)\1\]")
    names = (header.match(line) for line in dump.split("\n") if len(line) <= LONGEST_HEADER)
    handlers = tuple(sorted({found[2] for found in names if found}))
    return {"default": default[1], "handlers": handlers}, "config dump (weaker)"


def _cri_error(sections: Sections, key: str) -> str | None:
    """Why CRI does not answer. None while nothing shows that it is broken (no tool to ask with, or no permission)."""
    plugins, asked = sections.commands.get(f"{key}:plugins"), sections.commands.get(f"{key}:cri")
    if plugins is not None and plugins.rc == 0:
        return _plugin_error(plugins.text)
    if asked is None or asked.rc in (0, 2) or "uid=0" not in sections.text("identity").split():
        return None
    return "the daemon runs, and its CRI socket did not answer RuntimeService/Status"


def _plugin_error(text: str) -> str | None:
    """`ctr plugins ls -d`: a plugin that failed has an Error block; one switched off is not listed at all.

    2.x lists the plugins that CRI is made of (runtime, images) as well, which load without the one that answers: `cri`.

    Type:          io.containerd.grpc.v1
    ID:            cri
    Error:
                   Code:        Unknown
                   Message:     invalid plugin config: no corresponding runtime configured in ...
    """
    message = re.search(r"Message:\s*(.+)", text)
    if message:
        return message[1].strip()
    return None if re.search(r"^ID:\s*cri\s*$", text, re.MULTILINE) else "the CRI plugin is switched off"


def _is_snap(binary: str | None, unit: str, sections: Sections, client: bool = True) -> bool:
    if (binary or "").startswith("/snap/") or unit.startswith("snap."):
        return True
    return client and not binary and "/snap/bin/docker" in sections.text("tools").split()


def _active(units: Units, unit: str) -> bool:
    return units.get(unit, {}).get("ActiveState", "active") == "active"


def _loaded(units: Units, unit: str) -> bool:
    return units.get(unit, {}).get("LoadState") == "loaded"


def _starts_by_itself(units: Units, unit: str) -> bool:
    return _loaded(units, unit) and units[unit].get("UnitFileState") in ("enabled", "enabled-runtime")


def _version(text: str) -> str | None:
    match = _VERSION.search(text)
    return match[1] if match else None


def _object(text: str) -> dict[str, Any]:
    """A JSON object; {} for no text. ValueError for anything else."""
    if not text.strip():
        return {}
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: {text[:60]!r}")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
