from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from gpunode.catalog.distros import Distro
from gpunode.catalog.load import load_catalog
from gpunode.catalog.rows import Row
from gpunode.errors import UsageError

C = load_catalog()
ROWS: tuple[Any, ...] = (*C.cards, *C.architectures, *C.switches, *C.branches, *C.defaults, *C.distros, C.toolkit)


def test_every_row_says_where_it_comes_from() -> None:
    assert all(row.source and re.fullmatch(r"\d{4}-\d\d-\d\d", row.checked) and row.grade for row in ROWS)


def test_blocks_do_not_overlap() -> None:
    blocks = sorted((first, last) for a in C.architectures for first, last, _ in a.blocks)
    assert all(last < first for (_, last), (first, _) in pairwise(blocks))


def test_listed_cards_agree_with_the_blocks() -> None:
    wrong = [
        card.id
        for card in C.cards
        for a in C.architectures
        for first, last, _ in a.blocks
        if first <= int(card.id, 16) <= last and a.name != card.architecture
    ]
    assert not wrong


def test_every_architecture_reaches_a_supported_branch_or_says_why_not() -> None:
    for a in C.architectures:
        last = a.last_branch or 999
        reach = [b for b in C.branches if b.status == "supported" and a.first_branch <= b.number <= last]
        fitting = [b for b in reach if (not b.open_only if a.flavour == "proprietary" else b.open)]
        assert fitting or a.refused, a.name


@pytest.mark.parametrize("distro", C.distros, ids=lambda d: d.name)
def test_every_distribution_has_packages_a_folder_and_a_whole_fingerprint(distro: Distro) -> None:
    assert distro.cuda.open
    assert distro.cuda.proprietary
    assert distro.cuda.fabric
    for machine in ("x86_64", "aarch64"):
        assert (distro.cuda_url(machine) or "").startswith("https://")
    if distro.fingerprint:
        assert len(distro.fingerprint) == 40
        assert distro.fingerprint.endswith((distro.key_file or "-").split(".")[0].upper())


def test_urls_are_https() -> None:
    assert all(u.startswith("https://") for u in (C.toolkit.key_url, C.toolkit.apt_url, C.toolkit.rpm_url))


@pytest.mark.parametrize(
    ("device", "name", "architecture"),
    [
        ("2330", "H100 SXM5 80GB", "hopper"),
        ("1eb8", "T4", "turing"),
        ("2901", "B200 180GB", "blackwell"),
        ("2b00", "Blackwell card 10de:2b00 (GB10B (Thor iGPU))", "blackwell"),
        ("f000", "unknown card 10de:f000", "rubin"),
        ("06c0", "unknown card 10de:06c0", "fermi"),
    ],
)
def test_card(device: str, name: str, architecture: str) -> None:
    card = C.card(device)
    assert (card.name, card.architecture) == (name, architecture)


def test_a_fault_names_file_row_key_and_what_is_allowed() -> None:
    row = Row("branches.yaml", "branches[595]", {"kind": "fast"})
    with pytest.raises(UsageError, match=r"branches\.yaml: branches\[595\]\.kind: 'fast' is not production \| lts"):
        row.text("kind", ("production", "lts"))
