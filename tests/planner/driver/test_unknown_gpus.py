"""A driver that is on a host whose GPUs the catalog does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import DriverFacts
from gpunode.model.spec import Spec
from gpunode.planner.driver.installed import keep_driver
from tests.planner.builders import gpus, host

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("device", "bound", "version", "flavour", "kept"),
    [
        pytest.param("ffff", "nvidia", "580.95.05", "proprietary", True, id="what drives it stays"),
        pytest.param("0abc", "nvidia", "595.91.07", "open", True, id="what drives an old id stays"),
        pytest.param("ffff", None, "580.95.05", "open", False, id="a new GPU, and an older branch that did not bind"),
        pytest.param("ffff", None, "595.91.07", "open", True, id="a new GPU, and what it would be given"),
        pytest.param("0abc", None, "595.91.07", "open", False, id="an old GPU, and open modules that did not bind"),
    ],
)
def test_an_installed_driver(device: str, bound: str | None, version: str, flavour: ModuleFlavour, kept: bool) -> None:
    driver = DriverFacts(installed=version, installed_flavour=flavour)
    facts = replace(host(device), pci=gpus(device, driver=bound), driver=driver)
    choice = keep_driver(facts, Spec(), [CATALOG.gpu_model(device)], CATALOG)
    assert (choice is not None) is kept
