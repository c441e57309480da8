"""On systems that are set up using their native mechanism, nothing is planned, whatever part is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.catalog.systems import OwnSystem
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import OsFacts
from gpunode.model.spec import PARTS, DriverRequest, Spec
from gpunode.planner.plan import make_plan

from .builders import L4, host

CATALOG = load_catalog()
WAYS = {
    "cos": "cos-extensions install gpu",
    "flatcar": "/etc/flatcar/enabled-sysext.conf",
    "talos": "extensions",
    "bottlerocket": "-nvidia",
    "nixos": "hardware.nvidia-container-toolkit.enable",
    "ubuntu-core": "snap components",
}


@pytest.mark.parametrize("only", [PARTS, *((part,) for part in PARTS)], ids=["all", *PARTS])
@pytest.mark.parametrize("image_based", ["read-only", None])
@pytest.mark.parametrize("system", CATALOG.systems, ids=lambda system: system.id)
def test_every_part_is_refused_with_the_way_of_this_system(
    system: OwnSystem, image_based: str | None, only: Sequence[str]
) -> None:
    facts = replace(host(L4, image_based=image_based), os=OsFacts(system.id, "1"))
    with pytest.raises(UnsupportedHost, match=system.name) as refused:
        make_plan(facts, Spec(only=tuple(only)), CATALOG)
    assert WAYS[system.id] in refused.value.remedy.text
    assert "setup" not in refused.value.remedy.text, "no command of gpunode's changes such a host"


def test_a_removal_is_refused_too() -> None:
    facts = replace(host(L4), os=OsFacts("nixos", "26.05"))
    with pytest.raises(UnsupportedHost, match="NixOS"):
        make_plan(facts, Spec(only=("driver",), driver=DriverRequest.parse("none")), CATALOG)


def test_no_row_of_a_distribution_hides_one_of_these_systems() -> None:
    assert {system.id for system in CATALOG.systems} & {distro.id for distro in CATALOG.distros} == set()
