"""Who this host is: os-release and the probe's `identity` lines."""

from __future__ import annotations

import shlex

from gpunode.model.facts import OsFacts
from gpunode.values import dataclass

LONGEST = 1024  # characters of one value of os-release


@dataclass(frozen=True)
class Identity:
    """The probe's first section."""

    root: bool = False
    kernel: str = ""
    machine: str = "x86_64"
    hostname: str = ""
    boot_id: str | None = None
    init: str = "none"
    init_scripts: tuple[str, ...] = ()
    virtualization: str | None = None
    image_based: str | None = None
    platform: str | None = None
    cgroup: str | None = None
    product: str | None = None
    user_namespace: bool | None = None


def key_values(text: str) -> dict[str, str]:
    """`key=value` lines; the first of a repeated key wins, other lines are passed over."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key.strip(), value.strip())
    return found


def parse_identity(text: str) -> Identity:
    """`-` stands for a file that was not there; ValueError when there is no uid:

    uid=0
    kernel=6.8.0-52-generic
    machine=x86_64
    hostname=gpu07
    boot_id=763bc20e-1e78-4731-b993-2f6418be2d8e
    init=systemd
    init_scripts=docker
    hypervisor=QEMU
    image_based=ostree
    platform=wsl
    cgroup=v2
    product=PowerEdge XE9680
    uid_map=0 100000 65536
    """
    value = {key: word for key, word in key_values(text).items() if word != "-"}
    if "uid" not in value:
        raise ValueError("no uid line")
    virtualization = "container" if "container" in value else value.get("hypervisor")
    if virtualization is None and "hypervisor=-" in text:
        virtualization = "unknown hypervisor"
    return Identity(
        root=value["uid"] == "0",
        kernel=value.get("kernel", ""),
        machine=value.get("machine", "x86_64"),
        hostname=value.get("hostname", ""),
        boot_id=value.get("boot_id"),
        init=value.get("init", "none"),
        init_scripts=tuple(value.get("init_scripts", "").split()),
        virtualization=virtualization,
        image_based=value.get("image_based"),
        platform=value.get("platform"),
        cgroup=value.get("cgroup"),
        product=value.get("product"),
        user_namespace=_mapped(value.get("uid_map", "").split()),
    )


def _mapped(uids: list[str]) -> bool | None:
    """Whether root here is another user outside, by the first line of uid_map (user_namespaces(7))."""
    return uids[:2] != ["0", "0"] if len(uids) == 3 and all(word.isdecimal() for word in uids) else None


def parse_os(text: str, machine: str) -> OsFacts:
    """/etc/os-release (os-release(5)), whose values may be quoted like shell words:

    ID="rocky"
    ID_LIKE="rhel centos fedora"
    VERSION_ID="9.5"
    """
    value = {key: _unquote(word) for key, word in key_values(text).items()}
    if not value.get("ID"):
        raise ValueError("os-release has no ID")
    return OsFacts(
        id=value["ID"],
        version_id=value.get("VERSION_ID", ""),
        id_like=tuple(value.get("ID_LIKE", "").split()),
        codename=value.get("VERSION_CODENAME", ""),
        pretty_name=value.get("PRETTY_NAME", ""),
        machine=machine,
    )


def _unquote(word: str) -> str:
    if len(word) > LONGEST:  # shlex takes a time that grows with the square
        return ""
    try:
        return " ".join(shlex.split(word))
    except ValueError:  # an odd quote in someone's PRETTY_NAME is no reason to report nothing
        return word.strip("\"'")
