"""The environment file of nvidia-cdi-refresh: the flag is in force, and nothing else changes."""

from __future__ import annotations

import pytest

from gpunode.catalog.cdi_versions import FLAG, VARIABLE
from gpunode.planner.engines.refresh_env import flagged, is_flagged

LINE = f"{VARIABLE}={FLAG}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", LINE),
        ("# shipped\n# NVIDIA_DRIVER_ROOT=/\n", f"# shipped\n# NVIDIA_DRIVER_ROOT=/\n{LINE}"),
        ("NVIDIA_DRIVER_ROOT=/run/x", f"NVIDIA_DRIVER_ROOT=/run/x\n{LINE}"),
        ("A=1 \\\n", f"A=1 \\\n\n{LINE}"),
        (f"# {LINE}A=1\n", f"# {LINE}A=1\n{LINE}"),
        (f"{VARIABLE}=one,two # \nA=1\n", f"{VARIABLE}=one,two,{FLAG}\nA=1\n"),
        (f'A=1\n{VARIABLE}="one"\nB=2\n', f"A=1\n{VARIABLE}=one,{FLAG}\nB=2\n"),
        (f"{VARIABLE}=one,\\\ntwo\nA=1\n", f"{VARIABLE}=one,two,{FLAG}\nA=1\n"),
        (f"{LINE}{VARIABLE}=one\n", f"{LINE}{VARIABLE}=one,{FLAG}\n"),
        (f"{VARIABLE}=one\n{LINE}", f"{VARIABLE}=one\n{LINE}"),
        (f"{VARIABLE}='one,{FLAG}'\n", f"{VARIABLE}='one,{FLAG}'\n"),
    ],
    ids=[
        "absent",
        "as shipped",
        "no newline at the end",
        "the last line is continued",
        "commented out",
        "beside others",
        "quoted",
        "over two lines",
        "switched off by the last line",
        "switched on by the last line",
        "there in quotes",
    ],
)
def test_the_flag_is_in_force_and_every_other_line_stays(before: str, after: str) -> None:
    assert flagged(before) == after
    assert is_flagged(after)
    assert flagged(after) == after
