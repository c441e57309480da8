"""Whether a root runs, is being built, or is a container's, as the probe tells it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from tests.facts.hosts import make_root, run_probe

FIRST = "pid:[4026531836]"  # the first PID namespace of every machine
BUILDERS = "6.1.0-13-amd64"  # the kernel of the machine around it
IMAGES = "6.8.0-52-generic"  # the one that the root has
ENGINES = ("proc/812", "proc/900", "proc/950")
ROOT = "29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n31 29 0:22 / /proc rw - proc proc rw\n"
OTHER = "90 80 0:52 / / rw - overlay overlay rw\n91 90 0:55 / /proc rw - proc proc rw\n"
BELOW = "31 29 0:22 / /proc rw - proc proc rw\n"  # entered by chroot(2): nothing is mounted on its /


def root_with(
    tmp_path: Path, process_1: str, *, space: str, paths: tuple[str, ...], without: tuple[str, ...] = ()
) -> Path:
    root = make_root(tmp_path)
    (root / "proc/sys/kernel/osrelease").write_text(f"{BUILDERS}\n")
    (root / "proc/1/comm").write_text(f"{process_1}\n")
    (root / "proc/1/root").symlink_to(root)
    (root / "proc/self/ns").mkdir(parents=True)
    (root / "proc/self/ns/pid").symlink_to(space)
    for path in without:
        shutil.rmtree(root / path)
    for path in paths:
        name, _, text = path.partition(" ")
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def probed(root: Path) -> HostFacts:
    return assemble(run_probe(("sh",), root).stdout, "gpu07")


SYSTEMD = ("run/systemd",)


@pytest.mark.parametrize(
    ("process_1", "paths", "without", "init", "platform"),
    [
        ("sh", (".dockerenv",), (*SYSTEMD, *ENGINES), "chroot", None),
        ("bwrap", (), (*SYSTEMD, *ENGINES), "chroot", None),
        ("sh", ("run/openrc/softlevel",), (*SYSTEMD, *ENGINES), "chroot", None),
        ("sh", (), ENGINES, "chroot", None),
        ("systemd", ("run/systemd/container lxc",), ENGINES, "systemd", "container"),
        ("systemd", ("run/systemd/container docker", ".dockerenv"), (), "systemd", "container"),
        (
            "init",
            ("run/openrc/softlevel", "proc/1/environ container=lxc\0"),
            (*SYSTEMD, *ENGINES),
            "openrc",
            "container",
        ),
        ("init", ("run/openrc/softlevel",), (*SYSTEMD, *ENGINES), "openrc", None),
        ("systemd", (), (), "systemd", None),
        ("python3", ("dev/nvidiactl", ".dockerenv"), (*SYSTEMD, *ENGINES), "none", "container"),
        ("dockerd-entrypo", (".dockerenv",), SYSTEMD, "none", "container"),
        ("init(Debian)", ("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"), (*SYSTEMD, *ENGINES), "none", "wsl"),
        ("init(Debian)", (), (*SYSTEMD, *ENGINES), "none", None),
    ],
    ids=[
        "docker build",
        "a sandbox of mkosi",
        "a build that pretends to have openrc",
        "a build that sees the builder's /run",
        "LXC with systemd",
        "systemd in docker",
        "LXC with openrc",
        "an openrc that nobody calls a container",
        "a systemd that nobody calls a container",
        "a container that was given GPUs",
        "docker in docker",
        "WSL",
        "WSL without a GPU",
    ],
)
def test_what_a_pid_namespace_of_its_own_means(
    tmp_path: Path, process_1: str, paths: tuple[str, ...], without: tuple[str, ...], init: str, platform: str | None
) -> None:
    host = probed(root_with(tmp_path, process_1, space="pid:[4026532501]", paths=paths, without=without))
    assert (host.init, host.platform) == (init, platform)
    assert host.kernel.release == (IMAGES if init == "chroot" else BUILDERS)


@pytest.mark.parametrize(
    ("process_1", "without"), [("sh", SYSTEMD), ("systemd", ())], ids=["a rescue shell", "systemd"]
)
def test_in_the_first_pid_namespace_a_root_runs_and_is_a_machines(
    tmp_path: Path, process_1: str, without: tuple[str, ...]
) -> None:
    host = probed(root_with(tmp_path, process_1, space=FIRST, paths=(".dockerenv",), without=(*without, *ENGINES)))
    assert (host.init, host.platform) == ("systemd" if process_1 == "systemd" else "none", None)
    assert host.kernel.release == BUILDERS


def test_nothing_of_the_machine_that_builds_is_taken_for_the_images(tmp_path: Path) -> None:
    """Its bus, its loaded driver, its command line and its firmware are to be seen in /sys and /proc."""
    without = (*SYSTEMD, *ENGINES)
    machine = probed(root_with(tmp_path / "machine", "sh", space=FIRST, paths=(), without=without))
    image = probed(root_with(tmp_path / "image", "sh", space="pid:[4026532501]", paths=(), without=without))
    assert machine.gpus
    assert machine.driver.loaded
    assert machine.driver.smi
    assert "nouveau" in machine.kernel.blacklisted
    assert (image.pci, image.devices, image.kernel.modules, image.kernel.cmdline) == ((), (), frozenset(), "")
    assert (image.driver.loaded, image.driver.smi, image.driver.gpus) == (None, None, ())
    assert "nouveau" not in image.kernel.blacklisted
    assert image.unread["smi"] == "an image is being built"
    assert [tree.release for tree in image.kernel.trees] == [IMAGES]


@pytest.mark.parametrize(
    ("ours", "init", "found"),
    [(ROOT, ROOT, "systemd"), (OTHER, ROOT, "chroot"), (BELOW, ROOT, "chroot"), (ROOT, None, "systemd")],
    ids=["the same", "a mounted one", "a directory", "process 1 is hidden"],
)
def test_where_the_root_of_process_1_is_hidden_the_mounts_tell(
    tmp_path: Path, ours: str, init: str | None, found: str
) -> None:
    """Only root may follow /proc/1/root, and not from another user namespace."""
    root = root_with(tmp_path, "systemd", space=FIRST, paths=(f"proc/self/mountinfo {ours}",))
    (root / "proc/1/root").unlink()
    if init is not None:
        (root / "proc/1/mountinfo").write_text(init)
    assert probed(root).init == found


def test_a_root_without_proc_is_an_image(tmp_path: Path) -> None:
    root = root_with(tmp_path, "systemd", space=FIRST, paths=())
    shutil.rmtree(root / "proc")
    host = probed(root)
    assert (host.init, host.kernel.release) == ("chroot", IMAGES)


def test_the_module_of_an_image_is_found_by_its_path(tmp_path: Path) -> None:
    """By its name modinfo would look below the running kernel's directory, which is the builder's."""
    root = root_with(tmp_path, "sh", space="pid:[4026532501]", paths=(), without=(*SYSTEMD, *ENGINES))
    tool = root / "usr/bin/modinfo"
    tool.write_text(
        '#!/bin/sh\n[ -f "$1" ] && printf "filename: %s\\nversion: 595.91.07\\nlicense: Dual MIT/GPL\\n" "$1"\n'
    )
    tool.chmod(0o755)
    assert probed(root).driver.installed == "595.91.07"
