"""examples/ for Node Problem Detector, Slurm and LBNL NHC: by the contract of each, and run where they are shell."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.render.verdict import NPD_BYTES

EXAMPLES = Path(__file__).parents[2] / "examples"
READY = str(EXAMPLES / "hosts" / "debian12-ready")
# docs/custom_plugin_monitor.md of kubernetes/node-problem-detector: the keys, and which must be there.
TOP = {"plugin", "pluginConfig", "source", "metricsReporting", "conditions", "rules"}
CONFIG = {"invoke_interval", "timeout", "max_output_length", "concurrency", "skip_initial_status"} | {
    "enable_message_change_based_condition_update"
}
RULE = {"type", "condition", "reason", "path", "args", "timeout", "invoke_interval"}
SILENT = "gpunode check ended with 1 and said nothing"
HOSTILE_LINE = 'gpunode: a.b: it\'s "odd" $(touch pwned) `touch pwned`; touch pwned \\ * (and 1 more)'


def seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def test_the_plugin_of_node_problem_detector_keeps_its_contract() -> None:
    plugin = json.loads((EXAMPLES / "node-problem-detector" / "gpunode.json").read_text())
    assert (plugin.keys() - TOP, plugin["plugin"]) == (set(), "custom")
    config = plugin["pluginConfig"]
    assert not config.keys() - CONFIG
    assert config["max_output_length"] == NPD_BYTES
    (condition,) = plugin["conditions"]
    assert condition.keys() == {"type", "reason", "message"}
    for rule in plugin["rules"]:
        assert not rule.keys() - RULE
        assert (rule["type"], rule["condition"]) == ("permanent", condition["type"])
        assert rule["reason"] != condition["reason"]
        assert seconds(rule["timeout"]) <= seconds(config["timeout"]) < seconds(config["invoke_interval"])


def test_its_command_line_is_one_of_gpunode(capsys: pytest.CaptureFixture[str]) -> None:
    (rule,) = json.loads((EXAMPLES / "node-problem-detector" / "gpunode.json").read_text())["rules"]
    assert Path(rule["path"]).name == "gpunode"
    assert main([*rule["args"], "--recorded", READY]) == 0
    assert capsys.readouterr().out.endswith(" checks pass\n")


def stub(directory: Path, name: str, body: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def tools(directory: Path, line: str, code: int, state: str = "idle") -> dict[str, str]:
    """PATH with a gpunode that answers so, and the tools of Slurm, which note what they are called with."""
    stub(directory, "gpunode", f'echo "gpunode $*" >> calls\nprintf "%s\\n" {shlex.quote(line)}\nexit {code}')
    stub(directory, "sinfo", f"echo {state}")
    stub(directory, "scontrol", 'for word; do echo "scontrol <$word>" >> calls; done')
    stub(directory, "logger", 'echo "logger $4" >> calls')
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "SLURMD_NODENAME": "gpu04"}


def calls(directory: Path, argv: list[str], env: dict[str, str]) -> tuple[int, list[str]]:
    ended = subprocess.run(argv, cwd=directory, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert not (directory / "pwned").exists()
    return ended.returncode, (directory / "calls").read_text().splitlines()


DRAINED = ["scontrol <update>", "scontrol <NodeName=gpu04>", "scontrol <State=DRAIN>"]


@pytest.mark.parametrize(
    ("code", "state", "after"),
    [
        (0, "idle", []),
        (1, "idle", [*DRAINED, f"scontrol <Reason={HOSTILE_LINE}>"]),
        (1, "alloc", [*DRAINED, f"scontrol <Reason={HOSTILE_LINE}>"]),
        (1, "drng", []),
        (1, "drain*", []),
        (2, "idle", [f"logger {HOSTILE_LINE}"]),
        (127, "idle", [f"logger {HOSTILE_LINE}"]),
    ],
    ids=["fit", "unfit", "unfit, at work", "draining", "drained", "no verdict", "no gpunode"],
)
def test_slurms_health_check_drains_for_a_finding_and_for_nothing_else(
    code: int, state: str, after: list[str], tmp_path: Path
) -> None:
    env = tools(tmp_path, HOSTILE_LINE, code, state)
    ended = calls(tmp_path, [str(EXAMPLES / "slurm" / "gpunode-health"), "--strict"], env)
    assert ended == (0, ["gpunode check --nhc --strict", *after])


def test_slurms_health_check_drains_for_no_python_that_did_not_start(tmp_path: Path) -> None:
    ended = calls(tmp_path, [str(EXAMPLES / "slurm" / "gpunode-health")], tools(tmp_path, "", 1))
    assert ended == (0, ["gpunode check --nhc", f"logger {SILENT}"])


NHC = """
die() { echo "die $*" >> calls; }
log() { echo "log $*" >> calls; }
nhc_cmd_with_timeout() { shift; "$@"; }
. "$1"
shift
check_gpunode "$@"
"""


@pytest.mark.parametrize(
    ("code", "line", "ended", "after"),
    [
        (0, HOSTILE_LINE, 0, []),
        (1, HOSTILE_LINE, 1, [f"die 1 {HOSTILE_LINE}"]),
        (1, "", 0, [f"log {SILENT}"]),
        (2, HOSTILE_LINE, 0, [f"log {HOSTILE_LINE}"]),
        (143, HOSTILE_LINE, 1, ["die 1 gpunode: check ended with 143"]),
    ],
    ids=["fit", "unfit", "Python did not start", "no verdict", "timeout"],
)
def test_the_check_of_nhc_dies_with_the_finding(
    code: int, line: str, ended: int, after: list[str], tmp_path: Path
) -> None:
    env = tools(tmp_path, line, code)
    script = str(EXAMPLES / "nhc" / "gpunode.nhc")
    assert calls(tmp_path, ["bash", "-c", NHC, "nhc", script, "--expect-gpus", "8"], env) == (
        ended,
        ["gpunode check --nhc --expect-gpus 8", *after],
    )
