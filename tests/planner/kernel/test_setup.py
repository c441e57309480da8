"""Headers and the compiler that the module is built with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost
from gpunode.facts.kernel import parse_compiler
from gpunode.model.action import Run
from gpunode.model.facts import DriverFacts, KernelTree, SecurityFacts
from gpunode.model.plan import Step
from gpunode.model.spec import Spec
from gpunode.planner.kernel.setup import follower, headers_step
from gpunode.planner.kernel_packages import kernel_flavour
from gpunode.planner.plan import make_plan
from gpunode.planner.site import survey
from tests.planner.builders import H100, RELEASE, host, kernel, packages

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("os", "compiler", "gcc", "asked"),
    [
        ("ubuntu-22.04", 12, "4:11.2.0-1ubuntu1", True),
        ("ubuntu-22.04", 11, "4:11.2.0-1ubuntu1", False),
        ("ubuntu-22.04", 12, None, True),
        ("ubuntu-22.04", None, "4:11.2.0-1ubuntu1", False),
        ("ubuntu-24.04", 12, "4:13.2.0-7ubuntu1", False),
    ],
    ids=["newer kernel", "same compiler", "no compiler yet", "not gcc's kernel", "headers bring it along"],
)
def test_the_kernels_own_compiler(os: str, compiler: int | None, gcc: str | None, asked: bool) -> None:
    there = packages({"gcc": gcc} if gcc else {})
    step = headers_step(survey(host(H100, os=os, kernel=kernel(compiler=compiler), packages=there), Spec(), CATALOG))
    assert (isinstance(step, Step) and f"gcc-{compiler}" in step.title) is asked


@pytest.mark.parametrize(
    ("text", "major"),
    [
        (
            "Linux version 6.8.0-51-generic (buildd@lcy02-amd64-065) (x86_64-linux-gnu-gcc-12 (Ubuntu "
            "12.3.0-1ubuntu1~22.04) 12.3.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #52~22.04.1-Ubuntu SMP",
            12,
        ),
        ("Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld", 12),
        ("Linux version 5.14.0-503.el9 (mockbuild@x) (gcc (GCC) 11.5.0 20240719 (Red Hat 11.5.0-2), GNU ld", 11),
        ("Linux version 6.6.1 (me@x) (clang version 17.0.6, LLD 17.0.6) #1 SMP", None),
        ("", None),
    ],
    ids=["Ubuntu", "Debian", "EL", "clang", "unread"],
)
def test_compiler_in_proc_version(text: str, major: int | None) -> None:
    assert parse_compiler(text) == major


@pytest.mark.parametrize(
    ("images", "release", "headers", "modules"),
    [
        ({"generic": "5.15.0.161.160"}, "5.15.0-161-generic", "linux-headers-generic", "generic"),
        (
            {"generic": "5.15.0.161.160", "generic-hwe-22.04": "6.8.0.87.87~22.04"},
            "6.8.0-87-generic",
            "linux-headers-generic-hwe-22.04",
            "generic-hwe-22.04",
        ),
        (
            {"virtual-hwe-22.04": "6.8.0.87.87~22.04"},
            "6.8.0-87-generic",
            "linux-headers-virtual-hwe-22.04",
            "generic-hwe-22.04",
        ),
        ({"aws": "6.8.0-1021.23"}, "6.8.0-1021-aws", "linux-headers-aws", "aws"),
        (
            {"aws-lts-22.04": "5.15.0.1101.103"},
            "5.15.0-1101-aws",
            "linux-headers-aws-lts-22.04",
            "aws-lts-22.04",
        ),
        ({"oem-24.04b": "6.11.0-1020.20"}, "6.11.0-1020-oem", "linux-headers-oem-24.04b", "oem-24.04b"),
        ({"generic-6.8": "6.8.0-51.52"}, "6.8.0-51-generic", "linux-headers-generic-6.8", "generic-6.8"),
        ({"6.8.0-87-generic": "6.8.0-87.88"}, "6.8.0-87-generic", None, "generic"),
    ],
    ids=[
        "the release's own kernel",
        "its newer one beside it",
        "in a virtual machine",
        "a cloud's",
        "a cloud's that stays at its release's kernel",
        "a maker's",
        "one that stays at its version",
        "no meta-package",
    ],
)
def test_headers_and_signed_modules_follow_the_kernel_that_runs(
    images: dict[str, str], release: str, headers: str | None, modules: str
) -> None:
    there = packages({f"linux-image-{tail}": version for tail, version in images.items()})
    facts = replace(host(H100, os="ubuntu-22.04", packages=there), kernel=replace(kernel(), release=release))
    assert (follower(survey(facts, Spec(), CATALOG)), kernel_flavour(facts, "generic")) == (headers, modules)


@pytest.mark.parametrize(("module", "asks"), [("/lib/modules/x/nvidia.ko", True), (None, False)], ids=["it", "none"])
def test_signed_modules_of_the_next_kernel_alone_ask_for_a_reboot_and_build_nothing(
    module: str | None, asks: bool
) -> None:
    trees = (KernelTree(RELEASE, True, False, None), KernelTree("6.8.0-87-generic", True, False, module))
    signed = {"nvidia-headless-no-dkms-595-server-open": "595.91.07-0ubuntu1", "dkms": "3.0.11-1"}
    facts = host(
        H100,
        kernel=kernel(trees=trees, next_boot="6.8.0-87-generic"),
        packages=packages(signed, held=list(signed)),
        security=SecurityFacts(secure_boot=True),
    )
    plan = make_plan(facts, Spec(only=("driver",)), CATALOG)
    assert "driver.build" not in [step.id for step in plan.steps]
    assert (plan.reboot is not None and "6.8.0-87-generic, which boots next" in plan.reboot) is asks


def test_signed_modules_are_loaded_once_it_is_known_that_the_running_kernel_has_one() -> None:
    bare = host(H100, security=SecurityFacts(secure_boot=True))
    signed = {"nvidia-headless-no-dkms-595-server-open": "595.91.07-0ubuntu1"}
    there = replace(
        bare, driver=DriverFacts(None, None, "595.91.07", "open"), packages=packages(signed, held=list(signed))
    )
    for facts, loads in ((bare, False), (there, True)):
        steps = make_plan(facts, Spec(only=("driver",)), CATALOG).steps
        commands = [" ".join(a.argv) for step in steps for a in step.actions if isinstance(a, Run)]
        assert ("modprobe nvidia" in commands) is loads


@pytest.mark.parametrize("name", ["nvidia", "nvidia_uvm"])
def test_a_module_that_the_host_keeps_from_loading_is_refused(name: str) -> None:
    facts = host(H100, kernel=kernel(barred=frozenset({"nouveau", "nova_core", name})))
    with pytest.raises(UnsupportedHost, match=f"keeps {name} from loading") as refused:
        make_plan(facts, Spec(), CATALOG)
    assert "grep -rE" in str(refused.value.remedy)
