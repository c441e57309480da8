"""Which labels of a node are changed: nobody else's, and nothing that the facts cannot say."""

from __future__ import annotations

import pytest

from gpunode.kubernetes.label_changes import LabelChange, label_changes, refused_to_nodes
from gpunode.kubernetes.labels import ALPHA_NAME, NodeLabels

COUNT, PRODUCT, TEAM = "nvidia.com/gpu.count", "nvidia.com/gpu.product", "team"
FOUND = NodeLabels({COUNT: "8"}, {PRODUCT: "nvidia-smi did not say"})
NOTHING = NodeLabels({}, {"nvidia.com/gpu.present": "there is no NVIDIA GPU"})


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
