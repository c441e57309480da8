"""Who makes the CDI specifications, which ones go, and when nothing is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.cdi_versions import FLAG, VARIABLE
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.facts import (
    DriverFacts,
    HostFacts,
    RuntimeFacts,
    ServiceFacts,
    ToolkitFacts,
)
from gpunode.model.plan import Kept, Step
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.model.spec import RuntimeSpec, Spec, ToolkitConfig, ToolkitRequest
from gpunode.planner.engines.cdi import UNITS, cdi_outcomes
from gpunode.planner.engines.refresh_env import PATH as REFRESH_ENV
from tests.engines.hosts import engine_facts, file_facts
from tests.planner.builders import H100, host

LOADED = "595.91.07"
ETC, RUN = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"
CDI = Spec(runtime=RuntimeSpec(cdi=True))
ON, OFF = ServiceFacts("loaded", "active", "waiting", "enabled"), ServiceFacts("loaded", "inactive", "dead", "disabled")


def spec_text(driver: str = LOADED, *names: str) -> str:
    devices = "".join(f'- name: "{name}"\n  containerEdits:\n    deviceNodes:\n' for name in names or ("0", "all"))
    mount = f"  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{driver}\n"
    return f"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n{devices}containerEdits:\n  mounts:\n{mount}"


def node(
    files: dict[str, str] | None = None,
    unit: ServiceFacts | None = None,
    *,
    toolkit: str | None = "1.20.0",
    loaded: str | None = LOADED,
    init: str = "systemd",
) -> HostFacts:
    """A host with these specifications, and nvidia-cdi-refresh in this state (None: the toolkit has no such unit)."""
    found = files or {}
    return replace(
        host(H100),
        init=init,
        driver=DriverFacts(loaded=loaded),
        toolkit=ToolkitFacts(toolkit, cdi_specs=tuple(found), cdi_devices=("nvidia.com/gpu=0",) if found else ()),
        services=dict.fromkeys(UNITS, unit) if unit else {},
        files={path: file_facts(path, text) for path, text in found.items()},
    )


def steps(facts: HostFacts, spec: Spec = CDI, *, pending: bool = False) -> dict[str, Step]:
    return {one.id: one for one in cdi_outcomes(facts, spec, pending=pending) if isinstance(one, Step)}


def commands(step: Step) -> list[str]:
    return [" ".join(action.argv) for action in step.actions if isinstance(action, Run)]


def test_the_toolkits_own_unit_is_switched_on_and_no_second_file_is_made() -> None:
    (step,) = steps(node(unit=OFF)).values()
    assert commands(step)[0] == "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
    assert not any(isinstance(action, PutFile) for action in step.actions)
    assert "cdi generate" not in str(step)
    assert [" ".join(a.argv) for a in step.undo if isinstance(a, Run)] == [
        "systemctl disable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
    ]


def test_only_the_unit_that_is_off_is_switched_on() -> None:
    facts = replace(node(unit=ON), services={UNITS[0]: ON, UNITS[1]: OFF})
    assert "enable --now nvidia-cdi-refresh.service" in commands(steps(facts)["cdi.refresh"])[0]


@pytest.mark.parametrize(
    "files", [{}, {RUN: spec_text("580.95.05")}], ids=["it wrote nothing yet", "it wrote for the driver before"]
)
def test_a_unit_that_is_on_and_has_nothing_fresh_is_run_again(files: dict[str, str]) -> None:
    (step,) = steps(node(files, ON)).values()
    assert commands(step)[0] == "systemctl restart nvidia-cdi-refresh.service"


def test_without_the_unit_nvidia_ctk_writes_the_lasting_file_and_undo_knows_of_it() -> None:
    (step,) = steps(node()).values()
    assert commands(step)[:2] == ["mkdir -p /etc/cdi", f"nvidia-ctk cdi generate --output={ETC}"]
    assert [action.files for action in step.actions if isinstance(action, Run)][1] == (ETC,)
    assert step.undo == (RemoveFile(ETC),)


@pytest.mark.parametrize("spec", [CDI, Spec()], ids=["CDI is asked for", "it is not"])
def test_a_stale_file_that_nothing_renews_is_written_anew_where_it_is(spec: Spec) -> None:
    old = spec_text("580.95.05")
    (step,) = steps(node({ETC: old}), spec).values()
    assert f"nvidia-ctk cdi generate --output={ETC}" in commands(step)
    assert step.undo == (PutFile(ETC, old, any_before=True),)


@pytest.mark.parametrize("spec", [CDI, Spec()], ids=["CDI is asked for", "it is not"])
def test_a_stale_file_beside_the_unit_is_moved_away_with_its_bytes_known(spec: Spec) -> None:
    facts = node({ETC: spec_text("580.95.05"), RUN: spec_text()}, ON)
    (step,) = steps(facts, spec).values()
    assert (step.id, step.actions) == ("cdi.stale", (RemoveFile(ETC, facts.file(ETC).sha256),))
    assert "another driver" in step.title


def test_a_second_specification_of_the_same_gpus_goes_and_one_with_gpus_of_its_own_stays() -> None:
    files = {ETC: spec_text(), "/etc/cdi/ours.yaml": spec_text(LOADED, "mine"), RUN: spec_text()}
    (step,) = steps(node(files, ON)).values()
    assert [a.path for a in step.actions if isinstance(a, RemoveFile)] == [ETC]


def test_a_specification_of_another_vendor_is_nobodys_business() -> None:
    other = "cdiVersion: 0.5.0\nkind: vendor.com/net\ndevices:\n- name: a\n"
    assert "cdi.stale" not in steps(node({"/etc/cdi/net.yaml": other, RUN: spec_text()}, ON))


def test_json_is_read_as_well() -> None:
    text = '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"0"}],"x":"/libcuda.so.580.95.05"}'
    assert "cdi.stale" in steps(node({"/etc/cdi/nvidia.json": text, RUN: spec_text()}, ON))


@pytest.mark.parametrize(
    ("facts", "pending", "said"),
    [
        (node({RUN: spec_text()}, ON), False, "1 devices of nvidia.com/gpu are in /var/run/cdi/nvidia.yaml"),
        (node(unit=OFF), True, "after driver and toolkit"),
        (node(toolkit=None), False, "nvidia-ctk, which is not here"),
        (node(loaded=None), False, "once the driver is loaded"),
        (node(init="chroot"), False, "an image has no GPUs"),
    ],
    ids=["right", "the driver is about to change", "no toolkit", "no driver", "chroot"],
)
def test_what_is_right_or_too_early_is_kept_with_the_reason(facts: HostFacts, pending: bool, said: str) -> None:
    (kept,) = cdi_outcomes(facts, CDI, pending=pending)
    assert isinstance(kept, Kept)
    assert said in kept.text


@pytest.mark.parametrize(
    "spec",
    [
        Spec(),
        Spec(toolkit_config=ToolkitConfig("jit-cdi")),
        Spec(toolkit=ToolkitRequest("none")),
        Spec(runtime=RuntimeSpec(cdi=True), only=("driver",)),
    ],
    ids=["not asked for", "jit-cdi makes its own", "no toolkit wanted", "only the driver"],
)
def test_nothing_is_touched_or_said_where_nobody_asked(spec: Spec) -> None:
    assert cdi_outcomes(node(unit=OFF), spec, pending=False) == ()


def test_mode_cdi_of_the_toolkit_asks_for_specifications_too() -> None:
    assert "cdi.refresh" in steps(node(unit=OFF), Spec(toolkit_config=ToolkitConfig("cdi")))


PODMAN = engine_facts("podman", "4.9.3", cdi=True)
SHIPPED = "# This file can be used to override the configuration\nNVIDIA_DEV_ROOT=/\n"
NEW = spec_text().replace("0.5.0", "0.7.0")


def old_node(engine: RuntimeFacts = PODMAN, files: dict[str, str] | None = None, env: str = SHIPPED) -> HostFacts:
    """A host whose toolkit 1.20 writes version 0.7, with an engine that cannot read it."""
    facts = node(files, ON)
    return replace(facts, runtimes=(engine,), files={**facts.files, REFRESH_ENV: file_facts(REFRESH_ENV, env)})


def test_where_podman_cannot_read_version_0_7_the_unit_is_told_before_it_is_run_again() -> None:
    told, again = steps(old_node(files={RUN: NEW}), Spec()).values()
    assert told.actions == (
        PutFile(REFRESH_ENV, f"{SHIPPED}{VARIABLE}={FLAG}\n", expect_sha256=file_facts(REFRESH_ENV, SHIPPED).sha256),
    )
    assert "podman 4.9.3 can read" in told.title
    assert "NVIDIA_DEV_ROOT" in told.diff
    assert commands(again)[0] == "systemctl restart nvidia-cdi-refresh.service"
    assert "of version 0.7.0, which podman 4.9.3 cannot read" in again.why


def test_the_unit_is_told_before_there_is_a_specification() -> None:
    assert list(steps(replace(old_node(), driver=DriverFacts()), Spec())) == ["cdi.readable"]


def test_once_told_nothing_is_left_to_do() -> None:
    facts = old_node(files={RUN: spec_text()}, env=f"{VARIABLE}={FLAG}\n")
    assert cdi_outcomes(facts, Spec(), pending=False) == ()


def test_a_lasting_specification_that_cannot_be_read_is_moved_away() -> None:
    found = steps(old_node(files={ETC: NEW, RUN: spec_text()}), Spec())
    assert list(found) == ["cdi.readable", "cdi.stale"]
    assert "of version 0.7.0, which podman 4.9.3 cannot read" in found["cdi.stale"].title


def test_without_the_unit_nvidia_ctk_is_given_the_flag() -> None:
    found = steps(replace(node({ETC: NEW}), runtimes=(PODMAN,)), Spec())
    assert f"nvidia-ctk cdi generate --output={ETC} --feature-flag={FLAG}" in commands(found["cdi.spec"])
    found = steps(replace(node(toolkit="1.17.8"), runtimes=(PODMAN,)))
    assert f"nvidia-ctk cdi generate --output={ETC}" in commands(found["cdi.spec"])


@pytest.mark.parametrize(
    ("engine", "spec", "told"),
    [
        (engine_facts("docker", "26.0.0", cdi=False), Spec(), False),
        (engine_facts("docker", "26.0.0", cdi=False), CDI, True),
        (engine_facts("containerd", "1.7.2", cdi=True), Spec(), True),
        (engine_facts("podman", "5.4.2", cdi=True), CDI, False),
        (PODMAN, Spec(toolkit=ToolkitRequest("none")), False),
        (PODMAN, Spec(only=("driver",)), False),
    ],
    ids=["CDI is off", "CDI is asked for", "CDI is on", "a podman that reads it", "no toolkit wanted", "only driver"],
)
def test_who_makes_the_unit_leave_groups_out(engine: RuntimeFacts, spec: Spec, told: bool) -> None:
    assert ("cdi.readable" in steps(old_node(engine), spec)) is told


def test_an_older_toolkit_is_told_nothing() -> None:
    facts = old_node()
    assert steps(replace(facts, toolkit=replace(facts.toolkit, version="1.18.2")), Spec()) == {}


def test_a_settings_file_that_could_not_be_read_is_named() -> None:
    facts = old_node()
    unread = replace(facts.file(REFRESH_ENV), text=None, sha256=None, unread="over 131072 bytes")
    (kept,) = cdi_outcomes(replace(facts, files={REFRESH_ENV: unread}), Spec(), pending=False)
    assert isinstance(kept, Kept)
    assert kept.refused
    assert kept.evidence == "over 131072 bytes"


def laid_out(files: dict[str, str], unit: ServiceFacts | None) -> HostFacts:
    """A GPU whose MIG layout was changed by this setup's pass before; the specification names it whole."""
    gpu = SmiGpu(0, "0000:19:00.0", "H100", mig_mode="Enabled", mig_profiles=("3g.40gb", "3g.40gb"))
    return replace(node(files, unit), driver=DriverFacts(loaded=LOADED, smi=SmiFacts(0, gpus=(gpu,))))


@pytest.mark.parametrize("spec", [CDI, Spec()], ids=["CDI is asked for", "it is not"])
def test_a_specification_follows_the_mig_layout(spec: Spec) -> None:
    (again,) = steps(laid_out({RUN: spec_text()}, ON), spec).values()
    assert commands(again)[0] == "systemctl restart nvidia-cdi-refresh.service"
    assert "of other GPUs or MIG instances (0 not here, 0:MIG not in it)" in again.why
    (written,) = steps(laid_out({ETC: spec_text()}, None), spec).values()
    assert f"nvidia-ctk cdi generate --output={ETC}" in commands(written)
    assert "of other GPUs or MIG instances" in written.why


def test_a_specification_of_the_layout_that_is_here_is_left_alone() -> None:
    assert cdi_outcomes(laid_out({RUN: spec_text(LOADED, "0:0", "0:1", "all")}, ON), Spec(), pending=False) == ()
