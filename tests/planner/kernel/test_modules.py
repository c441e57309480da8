"""Which kernels get a module, and which reboot would lose the GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.model.action import Run
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import DriverFacts, HostFacts, KernelTree, SecurityFacts
from gpunode.model.spec import DriverRequest, Spec
from gpunode.planner.install.driver import driver_choice
from gpunode.planner.kernel.modules import boot_fault, build_step, without_module
from gpunode.planner.site import survey
from tests.planner.builders import H100, RELEASE, host, kernel, packages

NEXT = "6.8.0-52-generic"
MODULE = "/lib/modules/{}/updates/dkms/nvidia.ko"
CATALOG = load_catalog()
DRIVER = {"nvidia-open": "595.91.07-1", "dkms": "3.0.11"}


def tree(release: str, *, built: bool = True, headers: bool = True, bootable: bool = True) -> KernelTree:
    return KernelTree(release, bootable, headers, MODULE.format(release) if built else None)


def built(*trees: KernelTree, next_boot: str | None = RELEASE, installed: str | None = "595.91.07") -> HostFacts:
    """A host whose driver's packages are in; `installed`: modinfo finds that module for the running kernel."""
    return host(
        H100,
        driver=DriverFacts(None, None, installed, "open" if installed else None),
        packages=packages(DRIVER, held=list(DRIVER)),
        kernel=kernel(trees=trees, next_boot=next_boot),
    )


READY = built(tree(RELEASE))


@pytest.mark.parametrize(
    ("facts", "releases"),
    [
        (READY, ()),
        (built(tree(RELEASE, built=False), installed=None), (RELEASE,)),
        (built(tree(RELEASE), tree(NEXT, built=False), next_boot=NEXT), (NEXT,)),
        (built(tree(RELEASE, built=False), tree(NEXT, built=False), next_boot=NEXT, installed=None), (RELEASE, NEXT)),
        (built(tree(RELEASE), tree("6.8.0-40-generic", built=False)), ()),
        (built(tree(RELEASE), tree(NEXT, built=False), next_boot=None), (NEXT,)),
        (built(tree(RELEASE, bootable=False), next_boot=None), ()),
    ],
    ids=[
        "all is built",
        "the running kernel is bare",
        "the next one is bare",
        "both are bare",
        "an old kernel that nobody boots may stay bare",
        "what boots next cannot be told, so the newest counts",
        "the kernel lies outside",
    ],
)
def test_kernels_that_need_a_module(facts: HostFacts, releases: tuple[str, ...]) -> None:
    assert without_module(facts) == releases


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (READY, None),
        (built(tree(RELEASE), tree(NEXT), next_boot=NEXT), None),
        (built(tree(RELEASE), tree(NEXT, built=False), next_boot=NEXT), f"{NEXT} boots next and has no nvidia module"),
        (
            built(tree(RELEASE), tree(NEXT, built=False, headers=False), next_boot=NEXT),
            f"{NEXT} boots next and has no nvidia module, and no headers to build one",
        ),
        (built(tree(RELEASE, bootable=False), next_boot=None), None),
        (
            built(tree(RELEASE, built=False, bootable=False), next_boot=None, installed=None),
            f"{RELEASE} boots again and has no nvidia module",
        ),
        (replace(built(tree(NEXT, built=False), next_boot=NEXT), pci=()), None),
    ],
    ids=[
        "the same kernel with a module",
        "a newer kernel with a module",
        "a newer kernel without",
        "a newer kernel without headers either",
        "a kernel from outside with a module",
        "a kernel from outside without",
        "no GPU to lose",
    ],
)
def test_a_reboot_that_would_lose_the_gpus_is_told(facts: HostFacts, says: str | None) -> None:
    assert boot_fault(facts, Spec()) == says


def test_another_version_in_the_next_kernel_is_a_fault() -> None:
    facts = built(tree(RELEASE), tree(NEXT), next_boot=NEXT)
    lines = (DkmsLine("nvidia", "595.91.07", RELEASE, "installed"), DkmsLine("nvidia", "580.178.04", NEXT, "installed"))
    fault = boot_fault(replace(facts, driver=replace(facts.driver, dkms=lines)), Spec())
    assert fault == f"{NEXT} boots next with module 580.178.04, and 595.91.07 is installed"


@pytest.mark.parametrize("spec", [Spec(driver=DriverRequest("none")), Spec(only=("runtime",))], ids=["none", "only"])
def test_where_no_driver_is_wanted_any_kernel_may_boot(spec: Spec) -> None:
    assert boot_fault(built(tree(NEXT, built=False), next_boot=NEXT), spec) is None


def test_each_bare_kernel_is_built_and_looked_at() -> None:
    step = build_step(*_site(built(tree(RELEASE), tree(NEXT, built=False), next_boot=NEXT)))
    assert step is not None
    build, prove = step.actions
    assert isinstance(build, Run)
    assert isinstance(prove, Run)
    assert build.argv == ("dkms", "autoinstall", "-k", NEXT)
    assert build.detach
    assert prove.argv[-1] == NEXT
    assert "would come up without a GPU" in step.why


@pytest.mark.parametrize(("signer", "verbs"), [(None, ["build", "install"]), ("DKMS module signing key", [])])
def test_an_unsigned_module_is_built_again_under_secure_boot(signer: str | None, verbs: list[str]) -> None:
    facts = replace(READY, security=SecurityFacts(secure_boot=True))
    line = (DkmsLine("nvidia", "595.91.07", RELEASE, "installed"),)
    step = build_step(*_site(replace(facts, driver=replace(facts.driver, signer=signer, dkms=line))))
    runs = [a for a in step.actions if isinstance(a, Run)] if step else []
    assert [run.argv[1] for run in runs] == verbs


def test_modules_that_no_dkms_built_are_not_built() -> None:
    facts = built(tree(RELEASE), tree(NEXT, built=False), next_boot=NEXT)
    plain = packages({"nvidia-open": "595.91.07-1"})
    assert build_step(*_site(replace(facts, packages=plain))) is None


def _site(facts: HostFacts):  # type: ignore[no-untyped-def]
    site = survey(facts, Spec(), CATALOG)
    return site, driver_choice(site)
