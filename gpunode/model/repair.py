"""What other tools call a repair: gpud's repair actions and NVSentinel's recommended actions, for whoever feeds them.

gpud: api/v1/types.go of leptonai/gpud (4a8de33). NVSentinel: RecommendedAction in health_event.proto of
NVIDIA/NVSentinel (264bfab). Both were read on 2026-11-23.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.remedy import RepairAction
from gpunode.values import dataclass


@dataclass(frozen=True)
class Elsewhere:
    """One of our actions in the words of the others."""

    gpud: str
    nvsentinel: str  # on bare metal
    nvsentinel_vm: str  # in a virtual machine


def _same(gpud: str, nvsentinel: str) -> Elsewhere:
    return Elsewhere(gpud, nvsentinel, nvsentinel)


_BY_HAND = _same("CHECK_USER_APP_AND_GPU", "NONE")  # neither has a word for software that a person sets right
_REBOOT = Elsewhere("REBOOT_SYSTEM", "RESTART_BM", "RESTART_VM")
_OTHER_MACHINE = Elsewhere("HARDWARE_INSPECTION", "CONTACT_SUPPORT", "REPLACE_VM")

ELSEWHERE: Mapping[RepairAction, Elsewhere] = {
    RepairAction.NONE: _BY_HAND,
    RepairAction.CONFIGURE: _BY_HAND,
    RepairAction.RESTART_SERVICE: _BY_HAND,
    RepairAction.RELOAD_MODULE: _same("REBOOT_SYSTEM", "NONE"),  # gpud only advises; NVSentinel would reboot for it
    RepairAction.RESET_GPU: _same("REBOOT_SYSTEM", "COMPONENT_RESET"),  # of a GPU whose UUID is known
    RepairAction.REBOOT: _REBOOT,
    # A warm reboot does not bring it back; a virtual machine has no power to cycle.
    RepairAction.POWER_CYCLE: _OTHER_MACHINE,
    RepairAction.REPLACE: _OTHER_MACHINE,
    RepairAction.UPGRADE: _BY_HAND,
    RepairAction.WAIT: _same("IGNORE_NO_ACTION_REQUIRED", "NONE"),
    RepairAction.SUPPORT: _same("HARDWARE_INSPECTION", "CONTACT_SUPPORT"),
}
