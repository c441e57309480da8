"""daemon.json files by the thousand: legal and almost legal ones, from a seed; number N of a seed is always the same.

For the rewriter's unit test, and for real daemons as judges in the lab (GPUNODE_DOCKER_FILES says how many).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass

from gpunode.model.spec import RuntimeSpec

SEED = 20261123
# A value of the right type for each key of dockerd 20.10 to 29 that may stand in a file; ours are below.
KEYS: dict[str, tuple[str, ...]] = {
    "allow-direct-routing": ("true", "false"),
    "api-cors-header": ('""', '"*"'),
    "authorization-plugins": ("[]", "null"),
    "bip": ('"172.26.0.1/16"', '""'),
    "bip6": ('"fd00::1/64"',),
    "bridge": ('""', '"none"'),
    "bridge-accept-fwmark": ('"1/2"',),
    "builder": ('{"gc": {"enabled": true, "defaultKeepStorage": "10GB"}}', '{"Entitlements": {}}', "{}"),
    "cgroup-parent": ('"/docker"',),
    "containerd": ('"/run/containerd/containerd.sock"',),
    "containerd-namespace": ('"moby"',),
    "containerd-plugins-namespace": ('"plugins.moby"',),
    "cpu-rt-period": ("0", "1000000"),
    "cpu-rt-runtime": ("0",),
    "cri-containerd": ("false",),
    "data-root": ('"/var/lib/docker"', '"/gr\\u00f6\\u00dfe"'),
    "debug": ("true", "false", "null"),
    "default-address-pools": ('[{"base": "172.30.0.0/16", "size": 24}]', "[ ]"),
    "default-cgroupns-mode": ('"private"', '"host"'),
    "default-gateway": ('"172.17.0.254"',),
    "default-gateway-v6": ('"fd00::fe"',),
    "default-ipc-mode": ('"private"', '"shareable"'),
    "default-network-opts": ('{"bridge": {"com.docker.network.driver.mtu": "1450"}}', "{}"),
    "default-shm-size": ('"64M"',),
    "default-ulimits": ('{"nofile": {"Name": "nofile", "Hard": 64000, "Soft": 9223372036854775807}}', "{}"),
    "dns": ('["10.0.0.2", "fd00::2"]', "[]"),
    "dns-opts": ('["ndots:2"]',),
    "dns-search": ('["example.com"]',),
    "exec-opts": ('["native.cgroupdriver=systemd"]', "[]"),
    "exec-root": ('"/var/run/docker"',),
    "experimental": ("true", "false"),
    "firewall-backend": ('"iptables"',),
    "fixed-cidr": ('"172.17.0.0/17"',),
    "fixed-cidr-v6": ('"fd00::/80"',),
    "group": ('"docker"',),
    "host-gateway-ip": ('"10.0.0.1"',),
    "http-proxy": ('"http://proxy.example:3128"',),
    "icc": ("true", "false"),
    "init": ("true", "false"),
    "init-path": ('"/usr/libexec/docker-init"',),
    "insecure-registries": ('["10.0.0.0/8", "registry.example:5000"]', "[]"),
    "ip": ('"0.0.0.0"',),
    "ip-forward": ("true",),
    "ip-masq": ("true",),
    "iptables": ("true", "false"),
    "ip6tables": ("false",),
    "ipv6": ("false",),
    "labels": ('["rack=7", "gr\\u00f6\\u00dfe=\\ud83d\\ude00", "path=C:\\\\x\\/"]', "[]"),
    "live-restore": ("true", "false"),
    "log-driver": ('"json-file"', '"local"'),
    "log-format": ('"text"',),
    "log-level": ('"info"', '""'),
    "log-opts": ('{"max-size": "10m", "max-file": "3"}', "{}"),
    "max-concurrent-downloads": ("3", "10"),
    "max-concurrent-uploads": ("5",),
    "max-download-attempts": ("5",),
    "metrics-addr": ('""', '"127.0.0.1:9323"'),
    "min-api-version": ('"1.24"',),
    "mtu": ("1450", "0"),
    "network-control-plane-mtu": ("1500",),
    "no-new-privileges": ("true", "false"),
    "node-generic-resources": ('["NVIDIA-GPU=UUID1", "gpu=UUID2"]', "[]"),
    "oom-score-adjust": ("0", "-500"),
    "pidfile": ('"/var/run/docker.pid"',),
    "proxies": ('{"http-proxy": "http://proxy.example:3128", "no-proxy": "*.test"}', "{}"),
    "raw-logs": ("false",),
    "registry-mirrors": ('["https://mirror.example/"]', "[]"),
    "rootless": ("false",),
    "seccomp-profile": ('""', '"builtin"'),
    "selinux-enabled": ("false",),
    "shutdown-timeout": ("15", "-1"),
    "storage-driver": ('"overlay2"',),
    "storage-opts": ("[]",),
    "swarm-default-advertise-addr": ('""',),
    "tls": ("false",),
    "tlscacert": ('"/etc/docker/ca.pem"',),
    "tlscert": ('"/etc/docker/cert.pem"',),
    "tlskey": ('"/etc/docker/key.pem"',),
    "tlsverify": ("false",),
    "userland-proxy": ("true", "false"),
    "userland-proxy-path": ('"/usr/libexec/docker/docker-proxy"',),
    "userns-remap": ('""',),
    "validate": ("false",),
    "bogus": ("1", '"x"'),
}  # fmt: skip
# Keys that not each of 20.10, 26 and 28 takes in a file.
NOT_ALL = (
    "allow-direct-routing", "api-cors-header", "bip6", "bogus", "bridge-accept-fwmark", "default-network-opts",
    "cpu-rt-period", "cpu-rt-runtime", "firewall-backend", "host-gateway-ip", "http-proxy", "min-api-version",
    "oom-score-adjust", "proxies", "rootless", "tlsverify", "userland-proxy-path", "validate",
)  # fmt: skip
ALL = tuple(key for key in KEYS if key not in NOT_ALL)
ODD_VALUES = (
    "1e400",
    "-0",
    "1.0e+2",
    "123456789012345678901234567890",
    '"\\u0000"',
    '"\\ud800"',
    "[[[{}]]]",
    '"é"',
    "{}",
)
NAMES = ("crun", "kata", "a.b", "Nvidia", "nvidia", "nvidia", "nvidia-legacy", "gr\\u00f6\\u00dfe", "", "x y", "runc")
PATHS = (
    "/usr/bin/crun",
    "nvidia-container-runtime",
    "/opt/ours/nvidia-container-runtime",
    "/a b",
    "/gr\\u00f6\\u00dfe",
)
BLANKS = ("", "", " ", "\n", "\n    ", "\n\t", "\r\n  ", "\t", "\r", "  \n\n ")


@dataclass(frozen=True)
class Generated:
    """A file, what is asked of it, and what was done to it that JSON or dockerd may not like."""

    number: int
    data: bytes
    want: RuntimeSpec
    fault: str = ""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


def how_many(default: int) -> int:
    return int(os.environ.get("GPUNODE_DOCKER_FILES", default))


def generated(count: int, seed: int = SEED) -> list[Generated]:
    return [one(number, seed) for number in range(count)]


def one(number: int, seed: int = SEED) -> Generated:
    pick = random.Random(f"{seed}/{number}")
    text = _document(pick)
    fault = pick.choice((*[""] * 3 * len(FAULTS), *FAULTS))
    data = FAULTS[fault](pick, text) if fault else text.encode()
    end = pick.choice(("\n", "\n", "\n", "\r\n"))
    if end == "\r\n":
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    want = RuntimeSpec(
        default=pick.random() < 0.7,
        cdi=pick.random() < 0.2,
        handler=pick.choice(("nvidia", "nvidia", "nvidia", "gpu_A", "gpu.b")),
        path=pick.choice((None, None, None, "/opt/asked/nvidia-container-runtime")),
    )
    return Generated(number, data, want, fault)


def _document(pick: random.Random) -> str:
    known = list(KEYS) if pick.random() < 0.15 else list(ALL)
    members = [(key, pick.choice(KEYS[key])) for key in pick.sample(known, pick.choice((0, 1, 2, 3, 5, 9)))]
    if pick.random() < 0.6:
        members.append(("runtimes", _runtimes(pick)))
    if pick.random() < 0.3:
        names = pick.sample(("cdi", "buildkit", "containerd-snapshotter", "x"), pick.randrange(4))
        values = [(name, pick.choice(("true", "false", "null"))) for name in names]
        members.append(("features", pick.choice(("null", _object(pick, values), _object(pick, values)))))
    if pick.random() < 0.4:
        spelled = ('"runc"', '"run\\u0063"', '"nvidia"', "null", '""', '"io.containerd.runc.v2"', '"crun"')
        members.append(("default-runtime", pick.choice(spelled)))
    pick.shuffle(members)
    return pick.choice(BLANKS) + _object(pick, members) + pick.choice(BLANKS)


def _runtimes(pick: random.Random) -> str:
    if pick.random() < 0.1:
        return pick.choice(("null", "{}", "{ \n }"))
    names = list(
        dict.fromkeys(pick.choice(NAMES if pick.random() < 0.9 else NAMES[:6]) for _ in range(pick.randrange(4)))
    )
    return _object(pick, [(name, _entry(pick)) for name in names])


def _entry(pick: random.Random) -> str:
    if pick.random() < 0.15:
        options = pick.choice(("{}", '{"BinaryName": "/opt/x"}', '{"TypeUrl": "a", "x": {"y": [1, 2.50]}}', "null"))
        return _object(pick, [("runtimeType", '"io.containerd.runc.v2"'), ("options", options)])
    members = [(pick.choice(("path", "path", "path", "Path", "PATH")), f'"{pick.choice(PATHS)}"')]
    if pick.random() < 0.4:
        arguments = pick.choice(("[]", "null", '["--debug", "--log=/x"]', '[ "\\u002d-x" ]'))
        members.append((pick.choice(("runtimeArgs", "RuntimeArgs")), arguments))
    if pick.random() < 0.2:
        members.append(("x-note", pick.choice(ODD_VALUES[:-1])))
    pick.shuffle(members)
    return _object(pick, members)


def _object(pick: random.Random, members: list[tuple[str, str]]) -> str:
    """In one of three layouts: on one line, indented, or with any blanks."""
    layout = pick.choice(("line", "indent", "indent", "any"))
    if layout == "line":
        return "{" + ", ".join(f"{_key(pick, key)}: {value}" for key, value in members) + "}"
    if layout == "indent" and members:
        unit = pick.choice(("  ", "    ", "\t"))
        lines = [f"{_key(pick, key)}: {value}".replace("\n", f"\n{unit}") for key, value in members]
        return "{\n" + ",\n".join(unit + line for line in lines) + "\n}"

    def blank() -> str:
        return pick.choice(BLANKS)

    inner = ",".join(f"{blank()}{_key(pick, key)}{blank()}:{blank()}{value}{blank()}" for key, value in members)
    return "{" + inner + blank() + "}"


def _key(pick: random.Random, key: str) -> str:
    """`key`, which may hold escapes already, in quotes; now and then with a letter escaped."""
    if key.isascii() and "\\" not in key and key and pick.random() < 0.05:
        at = pick.randrange(len(key))
        return f'"{key[:at]}\\u{ord(key[at]):04x}{key[at + 1 :]}"'
    return f'"{key}"'


def _into(pick: random.Random, text: str, piece: str) -> str:
    """`piece` as the first member of the whole."""
    at = text.index("{") + 1
    rest = text[at:]
    return f"{text[:at]}{piece}{'' if rest.strip().startswith('}') else ', '}{rest}"


def _somewhere(pick: random.Random, text: str, mark: str, piece: str) -> str:
    places = [n for n, letter in enumerate(text) if letter == mark] or [0]
    at = pick.choice(places)
    return text[:at] + piece + text[at:]


ODD_RUNTIMES = (
    "[]", '"nvidia"', "5", '{"a": "x"}', '{"a": []}', '{"a": {}}', '{"a": {"path": ""}}', '{"a": {"path": 5}}',
    '{"a": {"path": "/x", "options": []}}', '{"a": {"path": "/x", "runtimeArgs": "y"}}', '{"a": null}',
    '{"a": {"path": "/x", "runtimeArgs": [1]}}', '{"a": {"path": "/x", "runtimeType": "y"}}', '{"nvidia": null}',
    '{"a": {"path": "/x", "options": {}}}', '{"a": {"path": "/x", "options": {"y": 1}}}', '{"runc": {"path": "/x"}}',
    '{"io.containerd.runc.v2": {"path": "/x"}}', '{"a": {"path": "/x", "Path": "/y"}}', '{"a": {"path": null}}',
)  # fmt: skip
ODD_FEATURES = ("[]", "true", '{"cdi": "true"}', '{"cdi": 1}', '{"x": null}', '{"CDI": true}', '{"x": {}}')

Fault = Callable[[random.Random, str], bytes]
FAULTS: dict[str, Fault] = {
    "byte order mark": lambda pick, text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda pick, text: text.encode("utf-16"),
    "a key twice": lambda pick, text: _into(pick, _into(pick, text, '"debug": true'), '"debug": false').encode(),
    "runtimes twice": lambda pick, text: _into(pick, _into(pick, text, '"runtimes": {}'), '"runtimes": {}').encode(),
    "a comma too many": lambda pick, text: _somewhere(pick, text, "}", ",").encode(),
    "a comment": lambda pick, text: _somewhere(pick, text, "{", "// ours\n").encode(),
    "truncated": lambda pick, text: text[: pick.randrange(len(text))].encode(),
    "more behind it": lambda pick, text: (text + pick.choice(("{}", "x", "null", "}", "\x00"))).encode(),
    "not a number": lambda pick, text: _into(pick, text, '"mtu": NaN').encode(),
    "zero in front": lambda pick, text: _into(pick, text, '"mtu": 01450').encode(),
    "a bad escape": lambda pick, text: _into(pick, text, '"labels": ["a\\x41"]').encode(),
    "half a pair": lambda pick, text: _into(pick, text, '"labels": ["a=\\ud800"]').encode(),
    "a raw tab": lambda pick, text: _into(pick, text, '"labels": ["a=\t"]').encode(),
    "not UTF-8": lambda pick, text: _into(pick, text, '"labels": ["caf@"]').encode().replace(b"caf@", b"caf\xe9"),
    "a NUL": lambda pick, text: _somewhere(pick, text, "{", "\x00").encode(),
    "another blank": lambda pick, text: _somewhere(pick, text, "}", pick.choice("\u00a0\x0b\x0c\u2003")).encode(),
    "a wrong type": lambda pick, text: _into(
        pick, text, f'"{pick.choice(list(KEYS))}": {pick.choice(ODD_VALUES)}'
    ).encode(),
    "runtimes of a wrong type": lambda pick, text: _into(
        pick, text.replace('"runtimes"', '"x-runtimes"'), f'"runtimes": {pick.choice(ODD_RUNTIMES)}'
    ).encode(),
    "features of a wrong type": lambda pick, text: _into(
        pick, text.replace('"features"', '"x-features"'), f'"features": {pick.choice(ODD_FEATURES)}'
    ).encode(),
    "a default of a wrong type": lambda pick, text: _into(
        pick, text.replace('"default-runtime"', '"x"'), f'"default-runtime": {pick.choice(ODD_VALUES)}'
    ).encode(),
    "capitals": lambda pick, text: _into(pick, text, f'"{pick.choice(("Runtimes", "FEATURES"))}": {{}}').encode(),
    "no object": lambda pick, text: pick.choice(("[]", "1", '"x"', "true", "null", "", " \n", "\ufeff")).encode(),
    "deep": lambda pick, text: _into(pick, text, f'"x": {"[" * 90}{"]" * 90}').encode(),
    "a long number": lambda pick, text: _into(pick, text, f'"mtu": {"9" * 400}').encode(),
}  # fmt: skip


def shown(case: Generated) -> str:
    """For a failing test's words: what repeats it."""
    return f"docker_texts.one({case.number}) [{case.fault or 'legal'}] {json.dumps(case.text)} {case.want}"
