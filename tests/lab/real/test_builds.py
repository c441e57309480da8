"""Debian 12: its 535 with open modules is built by its DKMS for its kernel, which loads it and finds no GPU.

That is the kernel of the last point release; for that of the security updates see test_does_not_build.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.lab.lab import Lab

from .boot import boot
from .image import SETUP, Image, make_image

MODULE = "nvidia-current-open"


def test_the_built_module_is_loaded_by_the_images_kernel_and_finds_no_gpu(
    lab: Lab, gpunode_site: Path, tmp_path: Path
) -> None:
    image = make_image(lab, "debian12", "release", gpunode_site)
    words = f"{SETUP} --driver 535 --trust-key {lab.repo_fingerprint}"

    baked = image.run(words)

    said = baked.stdout + baked.stderr
    print(said)  # -rP shows it: what a person sees
    assert baked.returncode == 0, said
    version = dkms_status(image)
    assert version.startswith("535."), said
    assert image.says(f"modinfo -k {image.kernel} -F version {MODULE}") == version
    assert image.says(f"modinfo -k {image.kernel} -F license {MODULE}") == "Dual MIT/GPL", "the open flavour"
    assert versions_of(image, "nvidia-smi", "libcuda1", "nvidia-driver-bin", "nvidia-alternative") == {version}
    assert "nvidia-open-kernel-dkms" in image.says("apt-mark showhold").split()
    image.says("apt-get check")

    again = image.run(words)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no changes" in again.stdout + again.stderr

    loaded = boot(image.root / f"boot/vmlinuz-{image.kernel}", modules(image), tmp_path)
    assert loaded.kernel == image.kernel, loaded.console
    print(loaded.dmesg)
    code, words = loaded.inserted[f"{MODULE}.ko"]
    assert (code != 0, "No such device" in words) == (True, True), loaded.console
    assert "NVRM: No NVIDIA GPU found." in loaded.dmesg
    others = {name: code for name, (code, _) in loaded.inserted.items() if name != f"{MODULE}.ko"}
    assert set(others.values()) <= {0}, loaded.console


def dkms_status(image: Image) -> str:
    """The version that DKMS has installed for the image's kernel."""
    (line,) = image.says("dkms status").splitlines()
    name, _, state = line.partition(f", {image.kernel}, x86_64: ")
    assert state == "installed", line
    module, _, version = name.partition("/")
    assert module == MODULE
    return version


def versions_of(image: Image, *packages: str) -> set[str]:
    """Upstream versions."""
    return set(image.says(f"dpkg-query -W -f '${{source:Upstream-Version}}\\n' {' '.join(packages)}").split())


def modules(image: Image) -> list[Path]:
    """The module after those it needs, as modprobe would insert them."""
    lines = image.says(f"modprobe -S {image.kernel} --show-depends {MODULE}").splitlines()
    return [image.root / line.split()[1].lstrip("/") for line in lines if line.startswith("insmod ")]
