"""MIG layouts: what a spec may ask of which GPU, and when the GPUs are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.facts.logs import UNITS
from gpunode.model.action import PutFile, Run
from gpunode.model.facts import DriverFacts, HostFacts, ServiceFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import MIG_STEP, Kept, Step
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.model.spec import MigLayout, Spec, parse_mig
from gpunode.planner.mig import LAYOUT, SCRIPT, UNIT, UNIT_PATH, mig_outcome, reset_reason
from gpunode.planner.plan import make_plan
from gpunode.planner.site import survey
from tests.planner.builders import H100, L4, gpus, host

CATALOG = load_catalog()
# Of them the support bundle takes logs: all of engines and Kubernetes, and NVIDIA's and gpunode's own.
ENGINES = [unit for unit in UNITS if not unit.startswith(("nvidia-", "gpunode-"))]
SEVEN = "1g.10gb," * 6 + "1g.10gb"


def models(
    *modes: str | None, profiles: tuple[str, ...] = (), busy: tuple[str, ...] = (), ids: str = H100
) -> HostFacts:
    """H100s whose MIG mode is each of `modes`; the driver is loaded."""
    found = gpus(*[ids] * len(modes), driver="nvidia")
    seen = tuple(
        SmiGpu(
            n, gpu.address, "H100", mig_mode=mode, mig_pending=mode, mig_profiles=profiles if mode == "Enabled" else ()
        )
        for n, (gpu, mode) in enumerate(zip(found, modes, strict=True))
    )
    driver = DriverFacts("595.91.07", "open", "595.91.07", "open", smi=SmiFacts(0, gpus=seen), busy=busy)
    return host(H100, pci=found, driver=driver)


def outcome(facts: HostFacts, text: str | None) -> Step | Kept | None:
    spec = Spec(mig=None if text is None else parse_mig(text))
    return mig_outcome(survey(facts, spec, CATALOG))


def layout(facts: HostFacts, text: str) -> str:
    step = outcome(facts, text)
    assert isinstance(step, Step)
    assert step.replan_after
    return next(a.text for a in step.actions if isinstance(a, PutFile) and a.path == LAYOUT)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("all=1g.10gb:7", [SEVEN, SEVEN]),
        ("2330=3g.40gb:2", ["3g.40gb,3g.40gb"] * 2),
        ("h100 sxm5 80gb=7g.80gb", ["7g.80gb"] * 2),
        ("all=1g.10gb:2,2g.20gb,3g.40gb", ["1g.10gb,1g.10gb,2g.20gb,3g.40gb"] * 2),
        ("all=1g.10gb:7,2330=off", ["off", "off"]),
        ("all=off", ["off", "off"]),
    ],
    ids=["all alike", "by PCI id", "by name", "mixed", "the id is closer than all", "off"],
)
def test_lines_of_the_layout_file(text: str, lines: list[str]) -> None:
    written = layout(models("Disabled", "Disabled"), text).splitlines()
    assert [line.split() for line in written if not line.startswith("#")] == [
        ["0000:19:00.0", lines[0]],
        ["0000:1a:00.0", lines[1]],
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all=1g.10gb:8", "no room for 8 x 1g.10gb"),
        ("all=1g.5gb:1", "no room for 1 x 1g.5gb"),
        ("all=4g.40gb,2g.20gb:2", "asks for 8 slices"),
        ("all=3g.40gb:2,1g.10gb", "asks for 9 memory slices, and H100 SXM5 80GB has 8"),
        ("all=1g.20gb:4,1g.10gb", "asks for 9 memory slices"),
        ("20b5=1g.10gb", "no GPU here is one that the MIG layout names"),
    ],
    ids=[
        "too many",
        "another GPU's profile",
        "too large together",
        "too much memory",
        "double memory",
        "a GPU that is not here",
    ],
)
def test_layouts_that_do_not_fit_are_refused(text: str, says: str) -> None:
    with pytest.raises(UnsupportedHost, match=says):
        outcome(models("Disabled"), text)


def test_what_nvidia_calls_balanced_and_each_profile_at_its_most_fit_every_gpu() -> None:
    """The names of profiles round their memory: seven 1g.23gb and 1g.45gb:4 are of 180 GB."""
    for known in CATALOG.mig_sets:
        for profiles in (known.balanced, *({name: most} for name, most in known.profiles.items())):
            if profiles:
                text = "all=" + ",".join(f"{name}:{count}" for name, count in profiles.items())
                assert layout(models("Disabled", ids=known.ids[0]), text), known


def test_a_gpu_without_mig_is_refused() -> None:
    with pytest.raises(UnsupportedHost, match=r"L4 .* cannot be partitioned"):
        outcome(models(None, ids=L4), "all=1g.10gb")


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ("2bb1", "all=1g.24gb:4"),
        ("2bb4", "rtx pro 6000 max-q workstation=2g.48gb:2"),
        ("2bb3", "all=1g.24gb:2"),
        ("2c31", "all=1g.16gb:2"),
        ("2c3a", "all=2g.32gb"),
    ],
    ids=["RTX PRO 6000 Workstation", "RTX PRO 6000 Max-Q", "RTX PRO 5000", "RTX PRO 4500", "RTX PRO 4500 Server"],
)
def test_gpus_of_workstations_are_partitioned_too(ids: str, text: str) -> None:
    profiles = text.partition("=")[2].partition(":")[0]
    assert f"0000:19:00.0 {profiles}" in layout(models("Disabled", ids=ids), text)


def with_memory(facts: HostFacts, gib: int) -> HostFacts:
    smi = facts.driver.smi
    assert smi is not None
    gpus_seen = tuple(replace(gpu, memory_total_bytes=gib << 30) for gpu in smi.gpus)
    return replace(facts, driver=replace(facts.driver, smi=replace(smi, gpus=gpus_seen)))


@pytest.mark.parametrize(
    ("facts", "evidence"),
    [
        (models("Disabled", ids="232c"), "lists no profiles of it"),
        (models("Disabled", ids=L4), "nvidia-smi shows its MIG mode: Disabled"),
        (with_memory(models("Disabled", ids="2bb3"), 72), "72 GiB, and the profiles of catalog/mig.yaml are for 48 GB"),
    ],
    ids=["H20 141 GB", "one that its driver says can", "RTX PRO 5000 of 72 GB"],
)
def test_a_gpu_whose_profiles_are_unknown_is_not_called_unable(facts: HostFacts, evidence: str) -> None:
    with pytest.raises(UnsupportedHost, match="is capable of MIG, and its profiles are not known") as refused:
        outcome(facts, "all=1g.24gb")
    assert evidence in refused.value.evidence
    assert "nvidia-smi mig -lgip" in refused.value.remedy.text
    assert isinstance(outcome(facts, "all=off"), Step)


def test_memory_that_nvidia_smi_shows_a_little_less_of_is_the_same_gpu() -> None:
    assert "1g.10gb" in layout(with_memory(models("Disabled"), 79), "all=1g.10gb:7")


@pytest.mark.parametrize("text", ["1g.10gb", "all=", "all=1g10gb", "all=1g.10gb:0", "=1g.10gb", "all=1g.10gb:x"])
def test_words_that_are_no_layout(text: str) -> None:
    with pytest.raises(UsageError, match="is not a layout"):
        MigLayout.parse(text)


@pytest.mark.parametrize("text", ["all=1g.10gb:7", "2330=1g.10gb:2,2g.20gb:1,2331=off"])
def test_a_layout_reads_back_as_it_was_written(text: str) -> None:
    assert ",".join(map(str, parse_mig(text))) == text


@pytest.mark.parametrize("text", ["all=1g.10gb:7,all=off", "2330=off,all=off,2330=1g.10gb:7", "H100=off,h100 =off"])
def test_two_layouts_for_the_same_gpus_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="two layouts"):
        parse_mig(text)


def test_no_layout_leaves_the_gpus_alone() -> None:
    assert outcome(models("Enabled", profiles=("1g.10gb",)), None) is None


def with_files(facts: HostFacts, text: str) -> HostFacts:
    step = outcome(facts, text)
    assert isinstance(step, Step)
    puts = [a for a in step.actions if isinstance(a, PutFile)]
    enabled = {UNIT: ServiceFacts("loaded", enabled="enabled")}
    return replace(facts, files={p.path: FileFacts(p.path, p.text) for p in puts}, services=enabled)


def test_gpus_that_are_right_and_stay_so_are_kept() -> None:
    facts = models("Enabled", profiles=("1g.10gb",) * 7)
    assert isinstance(outcome(with_files(facts, "all=1g.10gb:7"), "all=1g.10gb:7"), Kept)
    off = models("Disabled")
    assert isinstance(outcome(with_files(off, "all=off"), "all=off"), Kept)


def test_files_without_the_instances_cut_them_again() -> None:
    facts = with_files(models("Disabled"), "all=1g.10gb:7")
    step = outcome(facts, "all=1g.10gb:7")
    assert isinstance(step, Step)
    assert [a.argv[0] for a in step.actions if isinstance(a, Run)][-1] == "sh"


def test_nothing_changes_below_a_program() -> None:
    with pytest.raises(UnsupportedHost, match="4242 python3 use the GPUs"):
        outcome(models("Disabled", busy=("4242 python3",)), "all=1g.10gb:7")
    right = with_files(models("Enabled", profiles=("7g.80gb",)), "all=7g.80gb")
    assert isinstance(
        outcome(replace(right, driver=replace(right.driver, busy=("4242 python3",))), "all=7g.80gb"), Kept
    )


def test_without_a_loaded_driver_the_unit_does_it_at_the_boot() -> None:
    step = outcome(replace(models("Disabled"), driver=DriverFacts()), "all=1g.10gb:7")
    assert isinstance(step, Step)
    assert UNIT_PATH in [a.path for a in step.actions if isinstance(a, PutFile)]
    assert [a.argv for a in step.actions if isinstance(a, Run)][-1] == ("systemctl", "enable", "gpunode-mig.service")


@pytest.mark.parametrize(("text", "asks"), [("all=1g.10gb:7", True), (None, False)])
def test_a_mode_that_waits_for_a_reset_asks_for_a_reboot(text: str | None, asks: bool) -> None:
    facts = models("Disabled")
    gpu = replace(facts.driver.smi.gpus[0], mig_pending="Enabled")  # type: ignore[union-attr]
    waiting = replace(facts, driver=replace(facts.driver, smi=SmiFacts(0, gpus=(gpu,))))
    site = survey(waiting, Spec(mig=parse_mig(text) if text else None), CATALOG)
    assert (reset_reason(site) is not None) is asks


def test_a_lost_gpu_keeps_no_layout_from_being_as_it_should_be() -> None:
    right = models("Enabled", "Enabled", profiles=("7g.80gb",))
    written = with_files(right, "all=7g.80gb")
    smi = right.driver.smi
    assert smi is not None
    lost = replace(smi, gpus=(smi.gpus[0], SmiGpu(1, smi.gpus[1].pci_address, "", fault="lost")))
    facts = replace(written, driver=replace(right.driver, smi=lost, busy=("4242 python3",)))
    assert isinstance(outcome(facts, "all=7g.80gb"), Kept)


@pytest.mark.parametrize(
    "more",
    [{"runfile": True}, {"image": "/etc/dgx-release"}, {}],
    ids=["a .run installer", "DGX OS", "unknown origin"],
)
def test_gpus_of_a_driver_that_is_not_gpunodes_are_partitioned_and_the_driver_stays(more: dict[str, object]) -> None:
    facts = models("Disabled")
    facts = replace(facts, driver=replace(facts.driver, **more))  # type: ignore[arg-type]
    spec = Spec(only=("driver",), mig=parse_mig("all=1g.10gb:7"))
    assert [step.id for step in make_plan(facts, spec, CATALOG).steps] == [MIG_STEP]
    with pytest.raises(UnsupportedHost, match=r"no room for 3 x 7g\.80gb"):
        make_plan(facts, replace(spec, mig=parse_mig("all=7g.80gb:3")), CATALOG)


def test_gpus_of_an_image_based_host_are_partitioned_and_wait_for_their_reset() -> None:
    spec = Spec(only=("driver",), mig=parse_mig("all=1g.10gb:7"))
    facts = replace(models("Disabled"), image_based="ostree")
    assert [step.id for step in make_plan(facts, spec, CATALOG).steps] == [MIG_STEP]
    smi = facts.driver.smi
    assert smi is not None
    waiting = replace(smi, gpus=(replace(smi.gpus[0], mig_pending="Enabled"),))
    reboot = make_plan(replace(facts, driver=replace(facts.driver, smi=waiting)), spec, CATALOG).reboot
    assert reboot == "MIG mode of 0000:19:00.0 changes with a reset of the GPU"


@pytest.mark.parametrize(
    ("init", "says"), [("chroot", "an image is being built"), ("systemd", "no GPU is here")], ids=["a chroot", "no GPU"]
)
def test_without_a_gpu_the_layout_is_said_to_be_left_to_the_machine(init: str, says: str) -> None:
    spec = Spec(allow_no_gpu=True, mig=parse_mig("all=1g.10gb:7"))
    kept = next(one for one in make_plan(host(init=init), spec, CATALOG).kept if one.id == MIG_STEP)
    assert kept.text == f"the MIG layout is not set up: {says}; setup applies it on the machine itself"
    assert kept.beware


@pytest.mark.parametrize("state", ["disabled", "enabled-runtime", ""], ids=["disabled", "until the boot", "not loaded"])
def test_a_unit_that_does_not_start_at_the_boot_is_enabled_and_disabled_by_a_rollback(state: str) -> None:
    right = with_files(models("Enabled", profiles=("7g.80gb",)), "all=7g.80gb")
    step = outcome(replace(right, services={UNIT: ServiceFacts("loaded", enabled=state)}), "all=7g.80gb")
    assert isinstance(step, Step)
    assert ("systemctl", "enable", UNIT) in [a.argv for a in step.actions if isinstance(a, Run)]
    assert ("systemctl", "disable", UNIT) in [a.argv for a in step.undo if isinstance(a, Run)]
    assert not [a for a in step.actions if isinstance(a, PutFile)]


def test_a_masked_unit_is_refused_and_nothing_is_written_over_the_mask() -> None:
    masked = replace(models("Disabled"), services={UNIT: ServiceFacts("masked", enabled="masked")})
    kept = outcome(masked, "all=7g.80gb")
    assert isinstance(kept, Kept)
    assert kept.refused
    assert kept.remedy.text.startswith(f"systemctl unmask {UNIT}")


def test_without_systemd_no_boot_is_promised() -> None:
    facts = replace(models("Disabled"), init="openrc")
    step = outcome(facts, "all=7g.80gb")
    assert isinstance(step, Step)
    assert step.title == "1 x 7g.80gb on 1 GPU"
    assert f"nothing applies it at a boot: sh {SCRIPT} {LAYOUT} does" in step.why
    assert UNIT_PATH not in [a.path for a in step.actions if isinstance(a, PutFile)]
    right = with_files(replace(models("Enabled", profiles=("7g.80gb",)), init="openrc"), "all=7g.80gb")
    kept = outcome(right, "all=7g.80gb")
    assert isinstance(kept, Kept)
    assert "at every boot" not in kept.text
    assert kept.beware


def test_gpus_that_are_not_capable_of_mig_are_off_and_not_in_the_layouts_file() -> None:
    kept = outcome(models(None, ids=L4), "all=off")
    assert isinstance(kept, Kept)
    assert kept.text == "no GPU that the MIG layout switches off is capable of MIG"
    mixed = models("Disabled", None)
    mixed = replace(mixed, pci=(mixed.pci[0], replace(mixed.pci[1], device=L4)))
    written = layout(mixed, "2330=off,27b8=off")
    assert "0000:19:00.0 off" in written
    assert "0000:1a:00.0" not in written


def test_a_layouts_file_that_names_a_gpu_without_mig_is_written_anew() -> None:
    old = {LAYOUT: FileFacts(LAYOUT, "0000:19:00.0 off\n")}
    assert "0000:19:00.0" not in layout(replace(models(None, ids=L4), files=old), "all=off")


@pytest.mark.parametrize("started", ["docker.service", "podman.service", "podman-restart.service", *ENGINES])
def test_nothing_that_starts_containers_comes_before_the_layout(started: str) -> None:
    step = outcome(models("Disabled"), "all=7g.80gb")
    assert isinstance(step, Step)
    unit = next(a.text for a in step.actions if isinstance(a, PutFile) and a.path == UNIT_PATH)
    before = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("Before=")]
    assert started in " ".join(before).split()
