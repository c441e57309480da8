"""Systems on which a change of gpunode's would not last are refused as a whole, with the way that fits each."""

from __future__ import annotations

from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.remedy import Remedy, RepairAction


def refuse_own_system(host: HostFacts, catalog: Catalog) -> None:
    """Raises UnsupportedHost for a system that is set up using its native mechanism alone; the engines are too."""
    if catalog.distro(host.os) is not None:
        return  # the table is not read for it
    system = next((system for system in catalog.systems if system.id == host.os.id), None)
    if system is None:
        return
    raise UnsupportedHost(
        f"{host.hostname}: gpunode changes nothing on {system.name}: {system.why}",
        evidence=f"/etc/os-release says ID={system.id}; catalog/systems.yaml",
        remedy=Remedy(RepairAction.UPGRADE, f"to install driver and toolkit there: {system.way}"),
    )
