"""The compiler of kernels that are not built with the distribution's default one (Oracle's UEK)."""

from __future__ import annotations

from gpunode import resources
from gpunode.model.action import PutFile
from gpunode.model.plan import Step
from gpunode.planner.kernel.modules import kernels
from gpunode.planner.site import Site

CONF = "/etc/dkms/framework.conf.d/gpunode-toolset.conf"
ENVIRONMENT = "/etc/dkms/gpunode-toolset.env"


def toolset_step(site: Site) -> Step | None:
    """DKMS builds with the gcc toolset that built the kernel, which the headers' package brings; None where it does.

    UEK 8 on Oracle Linux 9 is built with gcc 14 and the default is 11, which does not know all of its options (driver
    installation guide 615, "Oracle Linux"). The file that `build_environment` names is sourced before each build
    (dkms's framework.conf).
    """
    others = (site.distro.kernel(release) for release in kernels(site.host))
    if not any(other.toolset for other in others if other):
        return None
    wanted = {
        CONF: resources.render("dkms/toolset.conf.j2", environment=ENVIRONMENT),
        ENVIRONMENT: resources.render("dkms/toolset.env.j2"),
    }
    files = tuple(
        PutFile(path, text, expect_sha256=site.host.file(path).sha256, any_before=True)
        for path, text in wanted.items()
        if site.host.file(path).text != text
    )
    if not files:
        return None
    return Step(
        "kernel.toolset",
        "DKMS: build with the gcc toolset that built the kernel",
        "the default gcc is older than the kernel's and does not know all of its options",
        files,
    )
