"""containerd configurations by chance, as its documentation lets people write them: every schema, every style.

`generated(seed, number)` is the same case on every machine. The values are such as the daemons themselves take, so
that these can be asked as well (tests/lab/test_containerd_cases.py).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from gpunode.model.spec import RuntimeSpec
from tests.editing.toml_writer import Writer
from tests.engines.test_containerd import PATH, V2, V3

SEED = 20_261_123
DAEMONS = ("1.6.20", "1.7.24", "2.1.9")
CRI_OF = {1: "cri", 2: V2, 3: V3}
IMAGES = "io.containerd.cri.v1.images"
RUNC = "io.containerd.runc.v2"
NOTE = '[no.header]\nkey = "no value"\n# no comment\n'


@dataclass(frozen=True)
class Case:
    number: int
    daemon: str
    schema: int
    want: RuntimeSpec
    files: dict[str, str]
    values: dict[str, dict[str, Any]]  # what was written into each file


def generated(seed: int, number: int) -> Case:
    chance = random.Random(f"{seed} {number}")
    daemon = DAEMONS[number % len(DAEMONS)]
    schema = chance.choice((2, 2, 2, 1) if daemon < "2" else (3, 3, 3, 2, 2, 1))
    root, others = _root(chance, daemon, schema), {}
    if chance.random() < 0.25 and schema > 1:
        root["imports"] = [chance.choice(("/etc/containerd/conf.d/*.toml", "/etc/containerd/conf.d/10-site.toml"))]
        if chance.random() < 0.7:  # a missing one that is named without a star is refused
            others["/etc/containerd/conf.d/10-site.toml"] = _drop_in(chance, daemon, schema)
    values = {PATH: root, **others}
    files = {path: Writer(chance).text(value) for path, value in values.items()}
    if chance.random() < 0.04:
        files[PATH] = "\ufeff" + files[PATH]
    want = RuntimeSpec(
        default=chance.random() < 0.85,
        cdi=daemon >= "1.7" and schema > 1 and chance.random() < 0.25,
        drop_in=None if daemon >= "2" and chance.random() < 0.4 else "none",
    )
    return Case(number, daemon, schema, want, files, values)


def _root(chance: random.Random, daemon: str, schema: int) -> dict[str, Any]:
    config: dict[str, Any] = {} if schema == 1 and chance.random() < 0.5 else {"version": schema}
    config |= _some(
        chance,
        {
            "oom_score": -999,
            "required_plugins": [],
            "disabled_plugins": chance.choice(([], [CRI_OF[schema]], [_name(schema, "zfs"), CRI_OF[schema]])),
            "grpc": _some(chance, {"max_recv_message_size": 16777216, "gid": 0}),
            "debug": _some(chance, {"level": "info", "uid": 0}),
            "metrics": {"address": "", "grpc_histogram": False},
            "timeouts": {"io.containerd.timeout.shim.cleanup": "5s", "io.containerd.timeout.task.state": "2s"},
            "cgroup": {"path": ""},
            "stream_processors": {
                "io.containerd.ocicrypt.decoder.v1.tar": {
                    "accepts": ["application/vnd.oci.image.layer.v1.tar+encrypted"],
                    "returns": "application/vnd.oci.image.layer.v1.tar",
                    "path": "ctd-decoder",
                    "env": ["NOTE=a\n  b\n", "X=1"],
                }
            },
            "proxy_plugins": {"stargz.v1": {"type": "snapshot", "address": "/run/stargz.sock"}},
            "x-site": {"notes": [{"by": "ops", "text": NOTE}, {"by": "größe", "list": [1, 2, 3]}]},
        },
        share=0.25,
    )
    config["plugins"] = _plugins(chance, daemon, schema)
    if not config["plugins"] and chance.random() < 0.8:
        del config["plugins"]
    return config


def _plugins(chance: random.Random, daemon: str, schema: int) -> dict[str, Any]:
    plugins: dict[str, Any] = _some(
        chance,
        {
            _name(schema, "cgroups", "monitor"): {"no_prometheus": False},
            _name(schema, "bolt", "metadata"): {"content_sharing_policy": "shared"},
            _name(schema, "overlayfs"): {"root_path": "", "upperdir_label": False},
        },
    )
    if chance.random() < 0.9:
        plugins[CRI_OF[schema]] = _cri(chance, daemon, schema)
    if schema == 3 and chance.random() < 0.4:
        plugins[IMAGES] = _some(chance, {"snapshotter": "overlayfs", "registry": _registry(chance)}, share=0.7)
    return plugins


def _name(schema: int, plugin: str, kind: str = "snapshotter") -> str:
    return plugin if schema == 1 else f"io.containerd.{kind}.v1.{plugin}"


def _cri(chance: random.Random, daemon: str, schema: int) -> dict[str, Any]:
    cri: dict[str, Any] = _some(
        chance,
        {
            "enable_selinux": False,
            "max_container_log_line_size": 16384,
            "cni": {"bin_dir": "/opt/cni/bin", "max_conf_num": 1},
            "containerd": _engine(chance, daemon, schema),
        },
        share=0.7,
    )
    if schema < 3:
        cri |= _some(chance, {"sandbox_image": "registry.k8s.io/pause:3.9", "registry": _registry(chance)})
    if daemon >= "1.7" and schema > 1 and chance.random() < 0.2:
        cri["enable_cdi"] = chance.random() < 0.5
    return cri


def _registry(chance: random.Random) -> dict[str, Any]:
    auth = {"username": "u", "password": "line one\n  line two\n"}
    return chance.choice(
        (
            {"config_path": "/etc/containerd/certs.d"},
            {"mirrors": {"docker.io": {"endpoint": ["https://one.example", "https://two.example"]}}},
            {"configs": {"registry.example:5000": {"auth": auth}}},
        )
    )


def _engine(chance: random.Random, daemon: str, schema: int) -> dict[str, Any]:
    engine: dict[str, Any] = {}
    if chance.random() < 0.85:
        engine["runtimes"] = {
            name: _runtime(chance, name, daemon)
            for name, share in (("runc", 0.8), ("crun", 0.3), ("kata-qemu", 0.2), ("my.own", 0.1), ("nvidia", 0.2))
            if chance.random() < share
        }
    names = [name for name in engine.get("runtimes", {}) if name != "nvidia"]
    if chance.random() < 0.6:
        engine["default_runtime_name"] = chance.choice([*names, "runc"])
    # 2.x takes discard_unpacked_layers out of a version 2 file only where that file has runtimes, too.
    if chance.random() < 0.3 and not (daemon > "2" and schema == 2):
        engine["discard_unpacked_layers" if schema < 3 else "ignore_blockio_not_enabled_errors"] = True
    if daemon < "2" and chance.random() < 0.2:
        engine["default_runtime"] = {"runtime_type": RUNC, **_some(chance, {"options": {"SystemdCgroup": True}})}
    entries = list(engine.items())
    chance.shuffle(entries)
    return dict(entries)


def _runtime(chance: random.Random, name: str, daemon: str) -> dict[str, Any]:
    if name == "kata-qemu":
        return {"runtime_type": "io.containerd.kata-qemu.v2", "privileged_without_host_devices": True}
    options: dict[str, Any] = _some(chance, {"SystemdCgroup": chance.random() < 0.6, "NoPivotRoot": False}, share=0.6)
    if name in ("crun", "nvidia"):
        options["BinaryName"] = "/usr/bin/crun" if name == "crun" else "/opt/nvidia/nvidia-container-runtime"
    entry = {"runtime_type": RUNC, **_some(chance, {"pod_annotations": ["io.example.*", "a.b/c"], "options": options})}
    if daemon < "2" and chance.random() < 0.1:
        entry["runtime_engine"] = ""
    return entry


def _drop_in(chance: random.Random, daemon: str, schema: int) -> dict[str, Any]:
    config: dict[str, Any] = {"version": schema, **_some(chance, {"oom_score": 0, "debug": {"level": "debug"}})}
    if chance.random() < 0.7:
        config["plugins"] = {CRI_OF[schema]: _cri(chance, daemon, schema)}
    return config


def _some(chance: random.Random, all_of: dict[str, Any], share: float = 0.5) -> dict[str, Any]:
    return {key: value for key, value in all_of.items() if chance.random() < share}
