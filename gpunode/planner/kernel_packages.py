"""The meta-package that provides each new kernel, whose name those of its headers and signed modules share."""

from __future__ import annotations

from gpunode.model.facts import HostFacts

IMAGE = "linux-image-"


def kernel_meta(host: HostFacts, release: str | None = None) -> str | None:
    """ "generic", "generic-hwe-22.04", "cloud-amd64"; None where no kernel meta-package is installed.

    Of several the one that is at the version of `release`, None: the running kernel's. Ubuntu 22.04 has 5.15 from
    generic and 6.8 from generic-hwe-22.04.
    """
    found = {
        name.removeprefix(IMAGE): package.version
        for name, package in sorted(host.packages.installed.items())
        if name.startswith(IMAGE) and _is_meta(name.removeprefix(IMAGE))
    }
    line = ".".join((release or host.kernel.release).split(".")[:2]) + "."  # "6.8."
    of_line = [tail for tail, version in found.items() if version.startswith(line)]
    return next(iter(of_line or found), None)


def kernel_flavour(host: HostFacts, default: str, release: str | None = None) -> str:
    """What the name of a package of signed modules ends with, for a kernel and those that follow it.

    `release`: its uname -r; None: the running kernel's.

    "6.8.0-51-generic" -> "generic" ("generic-hwe-22.04" where that meta-package provides it), "5.15.0-1101-aws" ->
    "aws" or "aws-lts-22.04", "6.4.0-150700.53.22-default" -> "default". Ubuntu's packages of signed modules share the
    whole tail: linux-modules-nvidia-595-aws-lts-22.04.
    """
    flavour = "-".join((release or host.kernel.release).split("-")[2:]) or default
    meta = (kernel_meta(host, release) or "").replace("virtual", "generic")  # the same kernel with fewer modules
    return meta if meta.startswith(f"{flavour}-") else flavour


def _is_meta(tail: str) -> bool:
    return not tail[:1].isdigit() and not tail.startswith(("unsigned-", "extra-"))
