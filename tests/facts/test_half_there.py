"""What the probe lists of a package database: whatever is half there, and of the rest what concerns GPUs."""

from __future__ import annotations

import re
import subprocess

from gpunode import resources


def test_the_probe_lists_whatever_is_half_there_and_of_the_rest_only_what_concerns_gpus() -> None:
    found = re.search(r"^PACKAGES='([^']*)'", resources.script("probe/packages"), re.MULTILINE)
    assert found
    states = {"half-configured": "iF ", "half-removed": "rHR", "unpacked": "iU ", "broken": "iiR"}
    others = {"whole": "ii ", "held": "hi ", "gone": "rc ", "selected-by-the-admin": "ri ", "unknown": "un "}
    listing = "".join(f"{name}\t1\tamd64\t{state}\n" for name, state in {**states, **others}.items())
    listing += "some-rpm\t3:1-1.el9\tx86_64\nnvidia-open\t1\tamd64\tii \n"
    listed = subprocess.run(["grep", "-E", found[1]], input=listing, text=True, capture_output=True, check=True).stdout
    assert [line.split("\t")[0] for line in listed.splitlines()] == [*states, "nvidia-open"]
