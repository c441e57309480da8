"""An image that is being built: it does not run, and the machine that builds it is not touched."""

from __future__ import annotations

from dataclasses import replace

from gpunode.errors import UnsupportedHost
from gpunode.model.action import Action, Run
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Step
from gpunode.planner.kernel.modules import kernels
from gpunode.remedy import Remedy, RepairAction, setup

# systemctl, in the packages' scripts too, then leaves process 1 alone, which may be the machine's: it enables units and
# starts none (systemd, docs/ENVIRONMENT.md). shell/commands/start_detached.sh goes by it as well.
OFFLINE = ("SYSTEMD_OFFLINE", "1")


def refuse_no_kernel(host: HostFacts) -> None:
    """Raises UnsupportedHost for an image without a kernel: nothing in it could load the driver."""
    if host.init != "chroot" or kernels(host):
        return
    raise UnsupportedHost(
        f"{host.hostname}: this image has no kernel that the driver's module could be built for",
        evidence="neither /boot/vmlinuz-RELEASE nor /lib/modules/RELEASE/vmlinuz is there; the kernel that runs is "
        "that of the machine around it",
        remedy=Remedy(
            RepairAction.UPGRADE,
            "install the image's kernel package first (containers take the driver from their host), or ",
            setup("--only", "toolkit,runtime"),
        ),
    )


def without_systemd(step: Step) -> Step:
    """The same step, whose commands do not ask the systemd of the machine that builds the image."""
    return replace(step, actions=tuple(map(_offline, step.actions)), undo=tuple(map(_offline, step.undo)))


def _offline(action: Action) -> Action:
    return replace(action, env=(*action.env, OFFLINE)) if isinstance(action, Run) else action
