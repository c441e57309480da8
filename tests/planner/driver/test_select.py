from __future__ import annotations

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.spec import DriverRequest, Flavour
from gpunode.planner.driver.select import choose_driver
from tests.planner.builders import A100, B200, GH200, H100, K80, P100, T4, V100

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("devices", "request_", "flavour", "branch", "chosen"),
    [
        pytest.param([T4], "auto", "auto", 595, "open", id="Turing gets the production branch, open"),
        pytest.param([A100] * 8, "auto", "auto", 595, "open", id="Ampere gets the production branch, open"),
        pytest.param([H100] * 8, "580", "auto", 580, "open", id="the LTS branch is taken when asked for"),
        pytest.param(
            [H100], "auto", "proprietary", 595, "proprietary", id="Hopper runs proprietary modules on request"
        ),
        pytest.param([B200] * 8, "auto", "auto", 595, "open", id="Blackwell gets open modules"),
        pytest.param([GH200], "auto", "auto", 595, "open", id="Grace Hopper gets open modules"),
        pytest.param([V100], "auto", "auto", 580, "proprietary", id="Volta gets 580, proprietary"),
        pytest.param(["17fd"], "auto", "auto", 580, "proprietary", id="Maxwell gets 580, proprietary"),
        pytest.param([P100, H100], "auto", "auto", 580, "proprietary", id="one Pascal GPU decides for the whole box"),
        pytest.param(["3700"], "auto", "auto", 595, "open", id="an unknown new GPU gets open modules"),
        pytest.param(["ffff"], "580", "proprietary", 580, "proprietary", id="what is asked for an unknown new GPU"),
        pytest.param([V100, "ffff"], "580", "auto", 580, "proprietary", id="a named branch counts more than a guess"),
        pytest.param(["0abc"], "580", "auto", 580, "proprietary", id="an unknown old GPU gets no open modules"),
        pytest.param([T4, "0abc"], "470", "auto", 470, "proprietary", id="nor do its neighbours"),
        pytest.param([H100], "615", "auto", 615, "open", id="615 is open"),
        pytest.param([K80], "470", "auto", 470, "proprietary", id="Kepler gets its ended branch when asked for"),
    ],
)
def test_the_driver_fits_every_gpu(devices: list[str], request_: str, flavour: str, branch: int, chosen: str) -> None:
    models = [CATALOG.gpu_model(d) for d in devices]
    choice = choose_driver(DriverRequest.parse(request_), Flavour(flavour), models, CATALOG)
    assert (choice.branch, choice.flavour) == (branch, chosen)
    assert choice.reasons


@pytest.mark.parametrize(
    ("devices", "request_", "flavour", "says"),
    [
        pytest.param([V100, B200], "auto", "auto", "cannot share one driver", id="Volta and Blackwell in one box"),
        pytest.param([P100, GH200], "auto", "auto", "cannot share one driver", id="Pascal and Grace Hopper in one box"),
        pytest.param([K80], "auto", "auto", "too old", id="Kepler"),
        pytest.param([K80], "580", "auto", "too old", id="Kepler, even with 580"),
        pytest.param([K80, H100], "470", "auto", "does not drive all GPUs", id="Kepler's 470 has no Hopper"),
        pytest.param(["0ff2"], "470", "auto", "too old", id="GRID K1 ended with 367, even when 470 is asked for"),
        pytest.param(["3182"], "570", "auto", "does not drive all GPUs", id="B300 came with 580"),
        pytest.param(["1081"], "auto", "auto", "too old", id="Fermi"),
        pytest.param(["05e0"], "auto", "auto", "Tesla.* is too old: the 340 branch", id="Tesla, of 2009"),
        pytest.param(["0abc"], "auto", "auto", "which driver branch it needs is not known", id="an unknown old GPU"),
        pytest.param([V100, "ffff"], "auto", "auto", "cannot share one driver", id="Volta and an unknown new GPU"),
        pytest.param([V100], "595", "auto", "does not drive all GPUs", id="595 has no Volta"),
        pytest.param(
            [B200], "auto", "proprietary", "proprietary kernel modules", id="Blackwell has no proprietary modules"
        ),
        pytest.param([H100], "615", "proprietary", "proprietary kernel modules", id="615 has no proprietary modules"),
        pytest.param([V100], "580", "open", "open kernel modules", id="Volta has no open modules"),
        pytest.param([H100], "444", "auto", "not offered", id="a branch that does not exist"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(
    devices: list[str], request_: str, flavour: str, says: str
) -> None:
    models = [CATALOG.gpu_model(d) for d in devices]
    with pytest.raises(UnsupportedHost, match=says) as caught:
        choose_driver(DriverRequest.parse(request_), Flavour(flavour), models, CATALOG)
    assert caught.value.evidence
    assert caught.value.remedy.text


def refusal(*devices: str) -> str:
    with pytest.raises(UnsupportedHost) as caught:
        choose_driver(DriverRequest.parse("auto"), Flavour.AUTO, [CATALOG.gpu_model(d) for d in devices], CATALOG)
    return f"{caught.value} {caught.value.evidence} {caught.value.remedy.text}"


def test_nobody_is_told_to_take_a_gpu_out_that_the_catalog_does_not_know() -> None:
    text = refusal("0abc")
    assert "take the GPU out" not in text
    assert "Fermi" not in text
    assert "--driver 580" in text


def test_what_is_guessed_of_a_gpu_is_said_to_be_a_guess() -> None:
    models = [CATALOG.gpu_model("ffff")] * 2
    choice = choose_driver(DriverRequest.parse("auto"), Flavour.AUTO, models, CATALOG)
    assert choice.reasons[0] == "2 × unknown GPU 10de:ffff (not in the catalog) is taken to run open modules only"
    assert "unknown GPU 10de:ffff is taken to run with open kernel modules only" in refusal(V100, "ffff")
