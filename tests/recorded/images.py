"""Constructed images that are being built, and a container that runs: their kernel and GPUs are another machine's."""

from __future__ import annotations

from dataclasses import replace

from tests.recorded.more_hosts import DEBIAN12, L4, UBUNTU2404
from tests.recorded.nouns import Driver, Recipe, enterprise

EL9 = enterprise("almalinux", "AlmaLinux", "9.6", "5.14.0-570.58.1.el9_6.x86_64")
IMAGES = (
    Recipe(
        "debian12-docker-build",
        "an image of Debian with two kernels, in a RUN of docker build",
        replace(DEBIAN12, next_kernel="6.1.0-42-amd64"),
        (),
        docker="20.10.24",
        image=True,
        options=("--allow-no-gpu",),
    ),
    Recipe(
        "almalinux9-buildah-build",
        "an image for EL 9 hosts with docker, in a RUN of buildah, for a branch and flavour that are named",
        EL9,
        (),
        docker="28.5.2",
        image=True,
        options=("--allow-no-gpu", "--driver", "580", "--flavour", "proprietary"),
    ),
    Recipe(
        "debian12-docker-build-no-options",
        "in a RUN of docker build, and nothing says which GPUs it is for",
        DEBIAN12,
        (),
        image=True,
    ),
    Recipe(
        "debian12-docker-build-no-kernel",
        "a container's image, which has no kernel, in a RUN of docker build",
        replace(DEBIAN12, kernel="", kernel_packages=()),
        (),
        image=True,
        options=("--allow-no-gpu",),
    ),
    Recipe(
        "ubuntu2404-lxc-guest",
        "an LXC guest with docker, on its host's kernel and driver",
        replace(UBUNTU2404, kernel="6.8.12-9-pve", kernel_packages=()),
        (L4,),
        docker="28.5.2",
        driver=Driver("580.178.04", "proprietary", ()),
        identity=("container=1", "platform=container"),
        secure_boot=None,
    ),
)
