"""A kubelet that is told a flag which its release does not know, and what takes it out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable
from gpunode.render.remedy_text import remedy_text
from tests.checks import hosts as h
from tests.checks.upgrades import well
from tests.planner.engines.kubelets import DEFAULT, FLAGS_ENV, KUBEADM, PACKAGED

ID = "k8s.kubelet-flags"


def outcome(host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog(), today=h.TODAY).results[ID].outcome


@pytest.mark.parametrize(
    ("version", "files", "evidence", "remedy"),
    [
        ("1.15.12", {DEFAULT: "# GPUs\nKUBELET_EXTRA_ARGS=--allow-privileged=true\n"},
         f"{DEFAULT}:2 has --allow-privileged, which is not known from 1.15 on",
         f"gpunode setup --only kubernetes takes --allow-privileged out of {DEFAULT}"),
        ("1.27.1", {FLAGS_ENV: 'KUBELET_KUBEADM_ARGS="--container-runtime=remote --max-pods=50"\n'},
         f"{FLAGS_ENV}:1 has --container-runtime, which is not known from 1.27 on",
         f"gpunode setup --only kubernetes takes --container-runtime out of {FLAGS_ENV}"),
        ("1.35.0", {PACKAGED: f"{KUBEADM}ExecStart=\nExecStart=/usr/bin/kubelet --cloud-config=/x\n"},
         "has --cloud-config, which is not known from 1.34 on", "take --cloud-config out of "),
    ],
    ids=["one that went", "one among others", "a package's unit is not edited"],
)  # fmt: skip
def test_a_flag_that_went_is_found_with_its_place(
    version: str, files: dict[str, str], evidence: str, remedy: str
) -> None:
    found = outcome(well(version, files))
    assert isinstance(found, Finding)
    assert evidence in found.evidence
    assert remedy_text(found.remedy).startswith(remedy)


@pytest.mark.parametrize(
    ("version", "files"),
    [
        ("1.14.9", {DEFAULT: "KUBELET_EXTRA_ARGS=--allow-privileged=true\n"}),
        ("1.35.0", {DEFAULT: "KUBELET_EXTRA_ARGS=--max-pods=50\n"}),
        ("1.35.0", {DEFAULT: "# KUBELET_EXTRA_ARGS=--allow-privileged=true\n"}),
    ],
    ids=["known still", "known", "a comment"],
)
def test_a_flag_that_is_known_is_none(version: str, files: dict[str, str]) -> None:
    assert outcome(well(version, files)) is None


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (well(None), "the version of the kubelet is not known"),
        (replace(well(), files={}), "its flags are not known"),
        (replace(well(), kubernetes=replace(well().kubernetes, kubelet=False)), "no kubelet"),
    ],
    ids=["no version", "nothing was read", "no kubelet"],
)
def test_what_is_not_known_is_no_pass(host: HostFacts, why: str) -> None:
    found = outcome(host)
    assert isinstance(found, NotApplicable)
    assert why in found.reason


def test_flags_that_a_distribution_passes_are_its_own() -> None:
    """rke2 tells its kubelet --containerd, and its release of 1.37 will not."""
    passed = well("1.37.0", {}, flags=("containerd",))
    assert isinstance(outcome(passed), Finding)
    own = replace(passed, kubernetes=replace(passed.kubernetes, distribution="rke2"))
    assert not isinstance(outcome(own), Finding)


def test_gates_and_labels_are_found_where_the_kubelet_reads_them() -> None:
    """The probe's own look at a kubelet that is down takes lines of a few names alone."""
    text = 'MINE="--max-pods=200 \\\n--feature-gates=CPUManager=true --node-labels=alpha.kubernetes.io/x=y"\n'
    host = well("1.33.7", {DEFAULT: text})
    results = run_all(host, None, load_catalog(), today=h.TODAY).results
    for id, name in (("k8s.feature-gates", "CPUManager"), ("k8s.labels-legacy", "alpha.kubernetes.io/x")):
        found = results[id].outcome
        assert isinstance(found, Finding), id
        assert name in found.summary
