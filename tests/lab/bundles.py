"""Bundles in the lab: made on a host with a network, carried to one whose network namespace has no route at all."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gpunode.bundles.archive import read_bundle, write_bundle
from gpunode.bundles.index_dates import iso, newest
from gpunode.model.bundle import BundledFile, Manifest

from .host import Host, Result
from .lab import Lab
from .product_runs import expect
from .site import ROOT, site_path


def typed(host: Host, *words: str) -> Result:
    """On the host itself, behind sshd's back: its link may be down."""
    return host.nsrun(shlex.join(("gpunode", *words)), timeout=600)


def builder_of(lab: Lab, distribution: str) -> Host:
    """A host with a network and gpunode on it."""
    host = lab.host(distribution)
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    return host


def made(builder: Host, target: str, name: str, into: Path, options: Sequence[str]) -> Path:
    """A bundle that a host with a network makes, copied from it as on a stick."""
    created = typed(
        builder, "bundle", "create", "--target", target, "--output", f"/root/{name}", "--kernel", os.uname().release,
        *options,
    )  # fmt: skip
    expect(created, 0)
    assert f"for      {target} on x86_64" in created.stdout
    shutil.copyfile(builder.path(f"/root/{name}"), into / name)
    return into / name


def alone(lab: Lab, distribution: str, runtime: str | None, bundles: Sequence[Path]) -> Host:
    """A host whose network namespace has no route at all, with gpunode and these files on it."""
    host = lab.host(distribution, gpu="h100", runtime=runtime)
    host.install_gpunode(ROOT, site_path(ROOT / "pyproject.toml"))
    for bundle in bundles:
        shutil.copyfile(bundle, host.path(f"/root/{bundle.name}"))
    host.nsrun("ip link set host0 down", check=True)
    routes = host.nsrun("ip route; ip -6 route", check=True).stdout.splitlines()
    assert [route for route in routes if "docker0" not in route] == [], "docker's own bridge leads nowhere"
    return host


def leave_only(host: Host, address: str) -> None:
    """Its routes lead to this address alone, and it begins no conversation of its own: whoever is there may log in."""
    host.nsrun(
        f"ip route flush dev host0 && ip route add {address}/32 dev host0 scope link && "
        "iptables -w -A OUTPUT -o host0 -p tcp --tcp-flags SYN,ACK SYN -j REJECT && "
        "iptables -w -A OUTPUT -o host0 -p udp -j REJECT",
        check=True,
    )
    routes = host.nsrun("ip -4 route show dev host0", check=True).stdout.split("\n")
    assert [route.split()[0] for route in routes if route] == [address], routes


def torn(bundle: Path, into: Path) -> Path:
    """One bit of it is another one."""
    data = bundle.read_bytes()
    (into / "torn.bundle").write_bytes(data[:-20_000] + bytes([data[-20_000] ^ 1]) + data[-19_999:])
    return into / "torn.bundle"


def altered(bundle: Path, name: str, into: Path, change: Callable[[Manifest, Path], None]) -> Path:
    """`change` of its unpacked tree, and a manifest that agrees with what came of it, its date included."""
    manifest, scratch = read_bundle(bundle).manifest, into / name
    shutil.unpack_archive(bundle, scratch, "tar")
    tree = scratch / "gpunode-bundle"
    change(manifest, tree)
    (tree / "MANIFEST.json").unlink()
    files = {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    listed = {path: BundledFile(hashlib.sha256(data).hexdigest(), len(data)) for path, data in files.items()}
    as_of = iso(newest(files[one.release].decode() for one in manifest.repositories))
    with (into / f"{name}.bundle").open("wb") as out:
        write_bundle(replace(manifest, files=listed, as_of=as_of), tree, out)
    return into / f"{name}.bundle"


def another_driver(lead: str) -> Callable[[Manifest, Path], None]:
    """The package `lead` with another last byte."""

    def change(manifest: Manifest, tree: Path) -> None:
        file = tree / next(one.path for one in manifest.packages if one.name == lead)
        file.write_bytes(file.read_bytes()[:-1] + b"!")

    return change
