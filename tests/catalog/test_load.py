"""The catalog closes: what a row claims, the other rows can keep."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from gpunode import resources
from gpunode.catalog.distros import Distro, Names
from gpunode.catalog.functions import function_kinds
from gpunode.catalog.load import load_catalog
from gpunode.catalog.repositories import dead_repositories
from gpunode.catalog.rows import GRADES, Row
from gpunode.catalog.versions import thresholds
from gpunode.errors import UsageError
from gpunode.model.driver import ModuleFlavour
from gpunode.model.facts import PciDevice
from gpunode.packages.registry import BACKENDS

C = load_catalog()
ROWS: tuple[Any, ...] = (
    *C.models.values(), *C.architectures, *C.guesses, *C.switches, *C.branches, *C.defaults, *C.distros, C.toolkit,
    *C.cuda.majors, *C.cuda.toolkits, C.cuda.install, *C.mig_sets, *C.images, *C.systems,
    *thresholds().values(), *dead_repositories(), *(f for kind in function_kinds() for f in kind.functions),
)  # fmt: skip
DISTROS = [pytest.param(d, id=d.name) for d in C.distros]
SETS = [
    pytest.param(d, names, id=f"{d.name}-{source}-{n}")
    for d in C.distros
    for source in ("cuda", "distro")
    for n, names in enumerate(getattr(d.packages(source), "sets", ()))
]


def test_every_row_says_where_it_comes_from() -> None:
    assert all(row.source and re.fullmatch(r"\d{4}-\d\d-\d\d", row.checked) and row.grade in GRADES for row in ROWS)


def test_no_row_with_an_unverified_part_is_graded_documented() -> None:
    assert [r for r in ROWS if "unverified" in r.source.lower() and r.grade == "documented"] == []


def test_blocks_do_not_overlap() -> None:
    blocks = sorted((b.first, b.last) for a in C.architectures for b in a.blocks)
    assert all(last < first for (_, last), (first, _) in pairwise(blocks))


def test_listed_gpus_agree_with_the_blocks() -> None:
    wrong = [
        model.id
        for model in C.models.values()
        for a in C.architectures
        for block in a.blocks
        if block.first <= int(model.id, 16) <= block.last and a.name != model.architecture
    ]
    assert not wrong


def test_gpus_are_listed_once_and_by_four_hex_digits() -> None:
    ids = list(C.models)
    assert all(re.fullmatch(r"[0-9a-f]{4}", device) for device in ids)


def test_every_architecture_from_tesla_to_rubin_has_gpus_blocks_and_capabilities() -> None:
    names = [a.name for a in C.architectures]
    assert " ".join(names) == "tesla fermi kepler maxwell pascal volta turing ampere ada hopper blackwell rubin"
    for a in C.architectures:
        assert a.blocks or a.name == "tesla"  # its ids are interleaved with those of chipsets
        assert any(model.architecture == a.name for model in C.models.values())
        capabilities = {block.cc for block in a.blocks if block.cc}
        assert capabilities <= set(a.compute_capability), a.name


def test_every_architecture_reaches_a_supported_branch_or_says_why_not() -> None:
    for a in C.architectures:
        last = a.last_branch or 999
        reach = [b for b in C.branches if b.status == "supported" and a.first_branch <= b.number <= last]
        fitting = [b for b in reach if (not b.open_only if a.flavour == "proprietary" else b.open)]
        assert fitting or a.refused, a.name


def test_first_last_and_opt_in_branches_are_rows() -> None:
    rows = {b.number for b in C.branches}
    named = {n for a in C.architectures for n in (a.first_branch, a.last_branch, a.opt_in) if n}
    named |= {n for model in C.models.values() for n in (model.first_branch, model.last_branch) if n}
    assert named <= rows


def test_an_opt_in_branch_is_packaged_by_some_distribution_and_never_chosen_by_itself() -> None:
    for a in C.architectures:
        if a.opt_in is not None:
            branch = C.branch(a.opt_in)
            assert branch is not None
            assert branch.kind == "legacy"
            assert any(d.archive and d.archive.names(a.opt_in) for d in C.distros)


def test_there_are_no_proprietary_modules_from_615_on_and_no_open_ones_before_515() -> None:
    assert all(b.open_only == (b.number >= 615) for b in C.branches)
    assert all(b.open == (b.number >= 515) for b in C.branches)


def test_defaults_are_supported_and_carried_by_the_vendors_repository() -> None:
    for default in C.defaults:
        branch = C.branch(default.branch)
        assert branch is not None
        assert branch.status == "supported"
        assert branch.kind in ("production", "lts")
        carrying = [d for d in C.distros if d.cuda]
        assert any(d.cuda and d.cuda.names(default.branch) for d in carrying)


@pytest.mark.parametrize("distro", DISTROS)
def test_every_distribution_has_a_driver_or_says_why_not(distro: Distro) -> None:
    assert distro.cuda or distro.archive or distro.refused
    assert distro.manager in BACKENDS
    assert (distro.platform is None) == (distro.cuda is None)
    assert distro.headers


@pytest.mark.parametrize("distro", DISTROS)
def test_every_repository_is_reached_by_https_and_its_key_is_whole(distro: Distro) -> None:
    for machine in distro.machines:
        url = distro.cuda_url(machine)
        assert url is None if distro.cuda is None else (url or "").startswith("https://")
    if distro.fingerprint:
        assert re.fullmatch(r"[0-9A-F]{40}", distro.fingerprint)
        assert distro.fingerprint.endswith((distro.key_file or "-").split(".")[0].upper())
    if distro.key_checksum:
        assert re.fullmatch(r"[0-9a-f]{64}", distro.key_checksum)


@pytest.mark.parametrize(("distro", "names"), SETS)
def test_every_set_of_names_is_whole(distro: Distro, names: Names) -> None:
    carried = [b for b in C.branches if names.carries(b.number)]
    assert carried, "a set for no branch"
    assert names.open or names.proprietary
    assert set(names.signed) <= {"open", "proprietary"}
    for branch in carried:
        assert not names.open or branch.open or not names.branches, f"{branch.number} has no open modules"
        for name in (*names.open, *names.proprietary, *names.fabric, *names.nvlink5, *names.imex):
            assert re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name.format(branch=branch.number, flavour="generic"))
    for name in (*names.open, *names.proprietary):
        assert name not in ("cuda", "nvidia-cuda-toolkit")


@pytest.mark.parametrize("distro", DISTROS)
def test_every_supported_branch_that_a_distribution_claims_has_packages_there(distro: Distro) -> None:
    for source in ("cuda", "distro"):
        packages = distro.packages(source)
        for branch in C.branches if packages else ():
            names = packages.names(branch.number) if packages else None
            if names and names.carries(branch.number):
                flavours: set[ModuleFlavour] = (
                    {"open"} if branch.open_only else {"proprietary"} if not branch.open else {"open", "proprietary"}
                )
                assert any(names.of(f) for f in flavours)


@pytest.mark.parametrize("distro", DISTROS)
def test_what_is_installed_from_an_address_is_checked_against_a_pinned_key(distro: Distro) -> None:
    """dnf checks no signature of such a package unless it is told to, and knows no key of it."""
    for argv in distro.before:
        if any(word.startswith("http") for word in argv):
            assert "--setopt=localpkg_gpgcheck=1" in argv
            assert distro.before_key is not None
            assert re.fullmatch(r"[0-9A-F]{40}", distro.before_key[1])


def test_where_a_key_is_unknown_no_other_source_would_have_to_be_named() -> None:
    assert [d.name for d in C.distros if d.cuda and not d.key_pins and d.archive] == []


def test_no_two_rows_stand_for_one_release() -> None:
    claims = [(d.id, v) for d in C.distros for v in d.versions]
    assert len(claims) == len(set(claims))


def test_debian_13_never_gets_the_key_that_its_apt_refuses() -> None:
    refused = {d.fingerprint for d in C.distros if d.name == "Debian 12"}
    assert not refused & {
        d.fingerprint for d in C.distros if d.id == "debian" and d.name not in ("Debian 12", "Debian 11")
    }


def test_urls_are_https() -> None:
    assert all(u.startswith("https://") for u in (C.toolkit.key_url, C.toolkit.apt_url, C.toolkit.rpm_url))


def test_every_cuda_toolkit_has_a_major_row_and_a_branch_that_runs_it() -> None:
    for toolkit in C.cuda.toolkits:
        major = C.cuda.major(toolkit.version)
        assert major is not None
        assert int(toolkit.driver[:3]) >= major.first_driver
    architectures = {a.name for a in C.architectures}
    assert all(set(m.drops) <= architectures for m in C.cuda.majors)


def test_mig_sets_are_of_listed_gpus_and_point_back() -> None:
    for mig in C.mig_sets:
        assert mig.balanced.keys() <= mig.profiles.keys()
        for device in mig.ids:
            assert C.gpu_model(device).known
            assert C.gpu_model(device).mig == mig.name
    named = {model.mig for model in C.models.values() if model.mig}
    assert named <= {mig.name for mig in C.mig_sets}


@pytest.mark.parametrize(
    ("device", "name", "architecture"),
    [
        ("2330", "H100 SXM5 80GB", "hopper"),
        ("1eb8", "T4", "turing"),
        ("102d", "K80", "kepler"),
        ("17fd", "M40", "maxwell"),
        ("2901", "B200 180GB", "blackwell"),
        ("06d2", "M2070", "fermi"),
        ("2b7f", "Blackwell GPU 10de:2b7f (GB10B (Thor iGPU))", "blackwell"),
        ("1fb0", "Quadro T1000 Mobile", "turing"),
        ("05e0", "GeForce GTX 295", "tesla"),
        ("0191", "GeForce 8800 GTX", "tesla"),
        ("06e0", "GeForce 9300 GE", "tesla"),
        ("ffff", "unknown GPU 10de:ffff", "unknown-newer"),
        ("2100", "unknown GPU 10de:2100", "unknown-newer"),
        ("0abc", "unknown GPU 10de:0abc", "unknown-older"),
        ("0040", "unknown GPU 10de:0040", "unknown-older"),
    ],
)
def test_gpu_model(device: str, name: str, architecture: str) -> None:
    model = C.gpu_model(device)
    assert (model.name, model.architecture) == (name, architecture)
    assert C.guessed(model) is name.startswith("unknown")


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        ("22ba", "audio controller"),
        ("1ad8", "USB controller"),
        ("1ad9", "USB Type-C controller"),
        ("22a3", "NVSwitch"),
        ("1af0", "NVSwitch"),
        ("22d1", "PCIe port"),
        ("2330", None),
        ("ffff", None),
    ],
)
def test_a_function_that_is_no_gpu_is_named_for_what_it_is(device: str, kind: str | None) -> None:
    function = C.function(device)
    assert (function.kind if function else None) == kind


def test_no_id_is_both_a_gpu_and_another_function() -> None:
    listed = [function.id for kind in function_kinds() for function in kind.functions]
    assert len(listed) == len(set(listed)) > 80
    assert not set(listed) & set(C.models)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (PciDevice("0000:19:00.0", "10de", "0abc", "0300"), "unknown GPU 10de:0abc"),
        (PciDevice("0000:19:00.0", "10de", "3a10", "0302", name="Device"), "unknown GPU 10de:3a10"),
        (PciDevice("0000:19:00.0", "10de", "3a10", "0302", name="GX100"), "GX100"),
        (PciDevice("0000:19:00.1", "10de", "22ba", "0403"), "AD102 High Definition Audio Controller"),
        (PciDevice("0000:19:00.1", "10de", "3bff", "0403", name="Device"), "audio controller 10de:3bff"),
        (PciDevice("0000:19:00.1", "10de", "2330", "0403"), "audio controller 10de:2330"),
        (PciDevice("0000:05:00.0", "15b3", "1021", "0207"), None),
    ],
    ids=[
        "a GPU by its class", "lspci does not know it either", "lspci knows it", "listed", "by its class",
        "the class counts more than a GPU's id", "ConnectX-7 has the id of a K20Xm",
    ],
)  # fmt: skip
def test_a_device_is_named_by_its_class_first(device: PciDevice, name: str | None) -> None:
    assert C.device_name(device) == name


def test_a_gpu_that_no_list_has_is_placed_by_its_block_with_its_capability() -> None:
    model = C.gpu_model("23e1")
    assert (model.architecture, model.cc, model.known) == ("hopper", "9.0", False)


def test_a_fault_names_file_row_key_and_what_is_allowed() -> None:
    row = Row("branches.yaml", "branches[595]", {"kind": "fast"})
    with pytest.raises(UsageError, match=r"branches\.yaml: branches\[595\]\.kind: 'fast' is not production \| lts"):
        row.text("kind", ("production", "lts"))


def test_the_probe_looks_for_every_mark_of_an_image() -> None:
    probe = resources.script("probe/driver")
    assert [image.mark for image in C.images if image.mark.removeprefix("/") not in probe] == []
