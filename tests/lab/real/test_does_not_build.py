"""Debian's open modules and the kernels of its security updates: no build; a person hears why, apt stays usable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lab.lab import Lab

from .image import SETUP, Image, make_image

# What the archive held when this was written: 535.261.03 beside 6.1.0-56, and 550.163.01 beside 6.12.117.
COMPILER = re.compile(r"nv-pci\.c:\d+:\d+: error: too few arguments to function .pci_resize_resource.")


@pytest.mark.parametrize("distribution", ["debian13", "debian12"])
def test_a_build_that_fails_is_told_in_the_compilers_words_and_leaves_apt_usable(
    lab: Lab, gpunode_site: Path, distribution: str
) -> None:
    image = make_image(lab, distribution, "newest", gpunode_site)

    failed = image.run(f"{SETUP} --trust-key {lab.repo_fingerprint}")

    said = failed.stdout + failed.stderr
    print(said)  # -rP shows it: what a person sees
    assert failed.returncode == 1, said
    assert f"does not build for {image.kernel}" in said
    assert COMPILER.search(said), said
    assert "--driver-source cuda" in said, "the way out"
    assert COMPILER.search(image.says("cat /var/lib/gpunode/make.log")), "DKMS's own went with the package"

    assert half_configured(image) == [], said
    assert image.says("dpkg --audit") == ""
    assert "nvidia" not in image.says("dkms status")
    image.says("apt-get check")
    image.says("apt-get install -y hello")


def half_configured(image: Image) -> list[str]:
    """Packages that are neither wholly there nor wholly gone ("rc": gone but for its configuration)."""
    listing = image.says("dpkg-query -W -f '${db:Status-Abbrev}|${Package}\\n'")
    return [line for line in listing.splitlines() if line.split("|")[0].strip() not in ("ii", "hi", "rc", "un")]
