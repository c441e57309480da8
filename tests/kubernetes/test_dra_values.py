"""Values of the DRA driver's chart: nothing that the chart has not, and nothing for a node that they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpunode.catalog.load import load_catalog
from gpunode.cli.app import main
from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.errors import ExitCode
from gpunode.kubernetes.dra_values import dra_node, dra_values, not_known_for_dra, unfit_for_dra
from gpunode.model.facts import HostFacts
from tests.checks import hosts as h
from tests.checks import test_dra as d
from tests.checks import test_k8s as k
from tests.checks import test_svc as svc

CATALOG = load_catalog()
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
# Of values.yaml of kubernetes-sigs/dra-driver-nvidia-gpu, v0.4.1 and main of 2026-08-07, as far as it is used here.
CHART = {
    "nvidiaDriverRoot",
    "gpuResourcesEnabledOverride",
    "resources.gpus.enabled",
    "resources.computeDomains.enabled",
    "kubeletPlugin.kubeletRegistrarDirectoryPath",
    "kubeletPlugin.kubeletPluginsDirectoryPath",
}


def paths(values: Any, above: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield from paths(value, f"{above}{name}.") if isinstance(value, dict) else (f"{above}{name}",)


@pytest.mark.parametrize("compute_domains", [True, False])
@pytest.mark.parametrize("kubelet", ["/var/lib/kubelet", "/var/lib/k0s/kubelet"])
def test_every_value_is_one_of_the_charts(compute_domains: bool, kubelet: str) -> None:
    values: Any = dra_values(compute_domains=compute_domains, kubelet=kubelet)
    assert set(paths(values)) <= CHART
    # templates/validation.yaml fails with GPUs and without it.
    assert values["resources"]["gpus"]["enabled"] is values["gpuResourcesEnabledOverride"] is True
    assert values["resources"]["computeDomains"]["enabled"] is compute_domains
    assert values["nvidiaDriverRoot"] == "/"
    elsewhere = values.get("kubeletPlugin", {}).get("kubeletRegistrarDirectoryPath")
    assert elsewhere == (None if kubelet == "/var/lib/kubelet" else f"{kubelet}/plugins_registry")


@pytest.mark.parametrize(("host", "across"), [(d.node(), False), (d.node(pci=(d.TRAY,)), True)])
def test_compute_domains_are_for_boards_whose_fabric_joins_hosts(host: HostFacts, across: bool) -> None:
    assert dra_node(host, CATALOG).across_hosts is across


def test_a_node_that_is_ready_fits() -> None:
    assert list(unfit_for_dra(d.node(), CATALOG, pod_engines(d.node()))) == []
    assert not_known_for_dra(d.node(), pod_engines(d.node())) == []


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (d.PLUGIN, "a device plugin gives out its GPUs"),
        (d.told("1.31.4", None), "its kubelet is 1.31.4, and the DRA driver is for"),
        (d.told("1.33.7", k.WELL_SETTINGS), "no DynamicResourceAllocation=true"),
        (d.driver("550.163.01"), "its driver is 550.163.01, and 565 or later"),
        (d.driver("570.148.08", pci=(d.TRAY,)), "and 570.158.01 or later"),
        (d.engine(cdi=False), "CDI is off in containerd"),
        (d.node(pci=(d.TRAY,), services={svc.IMEX: svc.RUNS}), "nvidia-imex.service runs"),
        (d.node(driver=replace(h.READY.driver, container=True)), "its driver is a container's"),
    ],
)
def test_a_node_that_does_not_fit_is_named_with_its_reason(host: HostFacts, says: str) -> None:
    (fault,) = unfit_for_dra(host, CATALOG, pod_engines(host))
    assert says in fault


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (d.told("", None), "release is not known"),
        (d.told("1.34.0", None), "documented for 1.34.2"),
        (d.node(driver=replace(h.READY.driver, loaded=None)), "no driver is loaded"),
        (k.kubernetes(d.node(), device_plugins=None), "whether a device plugin is there was not checked"),
        (d.node(runtimes=()), "no engine that speaks CRI"),
        (d.engine(cdi=None), "did not say whether CDI is on"),
    ],
)
def test_what_could_not_be_checked_is_said(host: HostFacts, says: str) -> None:
    (note,) = not_known_for_dra(host, pod_engines(host))
    assert says in note


def test_no_host_is_asked_unless_one_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpunode.cli.hosts.open_hosts", None)
    assert main(["k8s", "dra", "--compute-domains"]) == 0
    out = capsys.readouterr().out
    assert "--version 0.5.0" in out
    assert yaml.safe_load(out)["resources"]["computeDomains"]["enabled"] is True


@pytest.mark.parametrize(
    ("slug", "code", "says"),
    [
        ("ubuntu2404-dra136-h200", ExitCode.UNSUPPORTED, "CDI is off in containerd"),
        ("ubuntu2404-node-l40s-ready", ExitCode.UNSUPPORTED, "a device plugin gives out its GPUs"),
        ("ubuntu2404-kubelet137-h200", ExitCode.DONE, "no driver is loaded"),
    ],
)
def test_a_host_that_is_named_is_held_against_it_first(
    slug: str, code: ExitCode, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["k8s", "dra", "--recorded", str(EXAMPLES / slug)]) == code
    shown = capsys.readouterr()
    assert says in shown.err
    assert bool(shown.out) is (code is ExitCode.DONE)
