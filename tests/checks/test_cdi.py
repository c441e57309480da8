"""Which of several CDI specifications is one too many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, Passed
from tests.checks import hosts as h

CATALOG = load_catalog()
TEAM = "/etc/cdi/team-pairs.yaml"
OWN = "/etc/cdi/own.yaml"
OLD = "/etc/cdi/nvidia.yaml"


def of(*names: str) -> str:
    devices = "".join(f'- name: "{name}"\n  containerEdits: {{}}\n' for name in names)
    return f'cdiVersion: "0.5.0"\nkind: "nvidia.com/gpu"\ndevices:\n{devices}'


def host(files: dict[str, str]) -> HostFacts:
    there = {path: h._file(path, text) for path, text in files.items()}
    return replace(h.toolkit(cdi_specs=tuple(there)), files={**h.files(), **there})


def duplicate(files: dict[str, str]) -> CheckOutcome | Passed:
    return run_all(host(files), None, CATALOG).results["ctk.cdi-duplicate"].outcome


def test_a_specification_with_devices_of_its_own_is_no_duplicate() -> None:
    """CDI knows a device by kind and name: files of one kind are normal."""
    assert duplicate({TEAM: of("pair01"), h.CDI: of("0", "1", "all")}) is None


@pytest.mark.parametrize(
    ("files", "evidence", "remedy"),
    [
        ({TEAM: of("0"), h.CDI: of("0", "1", "all")}, f"{TEAM} and {h.CDI}: 0", f"rm {TEAM} when "),
        ({TEAM: of("0", "all"), h.CDI: of("0", "all")}, f"{TEAM} and {h.CDI}: 0, all", f"rm {TEAM} when "),
        ({TEAM: of("0", "1", "all"), OWN: of("0")}, f"{TEAM} and {OWN}: 0", f"rm {OWN} when "),
        ({TEAM: of("0", "pair01"), OWN: of("0", "1")}, f"{TEAM} and {OWN}: 0",
         f"take 0 out of {TEAM} or out of {OWN}; "),
        ({OLD: of("0", "1", "all"), h.CDI: of("0", "all")}, f"{OLD} and {h.CDI}: 0, all", f"rm {OLD} since "),
        ({OLD: of("0:0", "0:1", "all"), h.CDI: of("0", "all")}, f"{OLD} and {h.CDI}: all", f"rm {OLD} since "),
        ({TEAM: of("0", "1", "pair01"), h.CDI: of("0")}, f"{TEAM} and {h.CDI}: 0", f"take 0 out of {TEAM}; "),
        ({TEAM: of("0", "pair01"), h.CDI: of("0")}, f"{TEAM} and {h.CDI}: 0", f"take 0 out of {TEAM}; "),
        ({TEAM: of("0", "pair01"), h.CDI: of("0", "all")}, f"{TEAM} and {h.CDI}: 0", f"take 0 out of {TEAM}; "),
    ],
    ids=["a part of the other", "the same: the admin's goes", "the other is the part", "each has its own too",
         "the unit's is the part: of a GPU that is gone", "of MIG instances that are gone",
         "of a GPU that is gone, and the admin's own", "the unit's is the part: the admin's own",
         "the unit's beside the admin's own"],
)  # fmt: skip
def test_the_one_whose_devices_the_other_defines_is_named(files: dict[str, str], evidence: str, remedy: str) -> None:
    found = duplicate(files)
    assert isinstance(found, Finding)
    assert found.evidence == evidence
    assert found.remedy.text.startswith(remedy)


def test_of_three_only_those_that_share_a_device_are_counted() -> None:
    found = duplicate({TEAM: of("pair01"), "/etc/cdi/old.yaml": of("0"), h.CDI: of("0", "all")})
    assert isinstance(found, Finding)
    assert found.summary == "2 CDI specifications define the same devices of nvidia.com/gpu"
    assert [entity.name for entity in found.entities] == ["/etc/cdi/old.yaml", h.CDI]
    assert found.remedy.text.startswith("rm /etc/cdi/old.yaml when ")
