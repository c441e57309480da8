"""Which labels of a node are changed: nobody else's, and nothing that the facts cannot say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import collect
from gpunode.kubernetes.label_changes import LabelChange, label_changes, refused_to_nodes
from gpunode.kubernetes.labels import ALPHA_NAME, NodeLabels, node_labels
from gpunode.kubernetes.mig_labels import MIG_STRATEGIES
from gpunode.model.facts import HostFacts
from gpunode.transport.recorded import Recorded

COUNT, PRODUCT, TEAM = "nvidia.com/gpu.count", "nvidia.com/gpu.product", "team"
FOUND = NodeLabels({COUNT: "8"}, {PRODUCT: "nvidia-smi did not say"})
NOTHING = NodeLabels({}, {"nvidia.com/gpu.present": "there is no NVIDIA GPU"})
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"


@pytest.mark.parametrize(
    ("have", "ours", "found", "changes", "left", "after"),
    [
        ({TEAM: "ml"}, {}, FOUND, [LabelChange(COUNT, None, "8")], [], {COUNT: "8"}),
        ({COUNT: "8"}, {}, FOUND, [], [], {}),
        ({COUNT: "4"}, {COUNT: "4"}, FOUND, [LabelChange(COUNT, "4", "8")], [], {COUNT: "8"}),
        ({COUNT: "4"}, {}, FOUND, [], [COUNT], {}),
        ({COUNT: "4"}, {COUNT: "2"}, FOUND, [], [COUNT], {}),
        ({COUNT: "8", "nvidia.com/mig.x": "1"}, {"nvidia.com/mig.x": "1"}, FOUND,
         [LabelChange("nvidia.com/mig.x", "1", None)], [], {}),
        ({COUNT: "8", "nvidia.com/mig.x": "2"}, {"nvidia.com/mig.x": "1"}, FOUND, [], [], {}),
        ({COUNT: "8", PRODUCT: "L4"}, {PRODUCT: "L4"}, FOUND, [], [PRODUCT], {PRODUCT: "L4"}),
        ({COUNT: "8", TEAM: "ml"}, {COUNT: "8"}, NOTHING, [LabelChange(COUNT, "8", None)], [], {}),
        ({"nvidia.com/gpu.present": "true"}, {"nvidia.com/gpu.present": "true"}, NOTHING,
         [LabelChange("nvidia.com/gpu.present", "true", None)], [], {}),
        ({}, {COUNT: "4"}, FOUND, [LabelChange(COUNT, None, "8")], [], {COUNT: "8"}),
    ],
    ids=["it is not there", "it is right, whoever set it", "ours, and changed", "somebody else's",
         "ours once, and set otherwise since", "ours, and no longer true", "somebody else's, and no longer true",
         "ours, and not known now", "the GPUs are gone", "the last one too", "ours, and taken away by somebody"],
)  # fmt: skip
def test_what_is_changed(
    have: dict[str, str],
    ours: dict[str, str],
    found: NodeLabels,
    changes: list[LabelChange],
    left: list[str],
    after: dict[str, str],
) -> None:
    seen = label_changes(have, ours, found, {})
    assert (list(seen.changes), list(seen.left), dict(seen.ours)) == (changes, left, after)
    done = {**have, **{one.name: one.after for one in seen.changes}}
    again = label_changes({n: v for n, v in done.items() if v is not None}, seen.ours, found, {})
    assert again.changes == ()
    assert again.ours == seen.ours


def test_what_is_refused_is_left_and_says_why() -> None:
    found = NodeLabels({ALPHA_NAME: "L4", COUNT: "8"}, {})
    refused = refused_to_nodes(found.values, (1, 15))
    seen = label_changes({}, {}, found, refused)
    assert seen.changes == (LabelChange(COUNT, None, "8"),)
    assert "NodeRestriction" in seen.left[ALPHA_NAME]
    assert refused_to_nodes(found.values, (1, 12)) == {}


def sample(slug: str) -> HostFacts:
    return collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))


@pytest.mark.parametrize("module", [True, False], ids=["its module is loaded", "no module is loaded"])
@pytest.mark.parametrize("slug", sorted(path.parent.name for path in EXAMPLES.glob("*/facts.txt")))
def test_a_silent_nvidia_smi_takes_nothing_away(slug: str, module: bool) -> None:
    facts = sample(slug)
    driver = facts.driver if module else replace(facts.driver, loaded=None)
    silent = replace(facts, driver=replace(driver, smi=None))
    for strategy in MIG_STRATEGIES:
        for release in ((1, 15), (1, 34)):
            before, now = (
                node_labels(one, load_catalog(), mig_strategy=strategy, kubernetes=release) for one in (facts, silent)
            )
            if not now.values:  # a host without GPUs
                continue
            seen = label_changes(before.values, before.values, now, {})
            assert [one for one in seen.changes if one.after is None] == []
            assert all(name in seen.ours for name in before.values)


def test_what_nvidia_smi_says_no_longer_is_taken_away() -> None:
    name = "nvidia.com/mig-9g.90gb.count"
    found = node_labels(sample("ubuntu2404-node-l40s-ready"), load_catalog(), mig_strategy="mixed")
    assert LabelChange(name, "7", None) in label_changes({name: "7"}, {name: "7"}, found, {}).changes
