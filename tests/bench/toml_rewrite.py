"""What it costs to add a runtime to a large containerd configuration, compared with one parse by tomllib and tomlkit.

python -m tests.bench.toml_rewrite [LINES ...]

Processor time, the best of three in one process each; `configure` is the whole command, start-up included. Then how
many times as long each takes as for half the lines: below 2.3 it is linear. Where nvidia-ctk is installed, the same
change by it in its own process (at most five times its time); where it is not, that is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import tomlkit

from gpunode.editing import toml_text
from gpunode.editing.diff import unified
from gpunode.editing.toml_scan import statements
from gpunode.foreign import read_toml

ENGINE = ("plugins", "io.containerd.grpc.v1.cri", "containerd")
HEAD = 'version = 2\nroot = "/var/lib/containerd"\n\n[plugins]\n'
TABLE = '  [plugins."io.example.plugin.v1.number-{}"] # what it is for\n    key = "value"\n    list = [1, 2, 3]\n\n'
CRI = '[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n'


def spent_s(work: Callable[[], object], tries: int = 3) -> float:
    spent = []
    for _ in range(tries):
        toml_text.parsed.cache_clear()
        statements.cache_clear()
        began = sum(os.times()[:4])
        work()
        spent.append(sum(os.times()[:4]) - began)
    return min(spent)


GPUNODE = (sys.executable, "-m", "gpunode", "runtime", "configure", "containerd", "--config")
NVIDIA = ("nvidia-ctk", "runtime", "configure", "--runtime=containerd", "--config")


def configured(text: str, command: Sequence[str] = GPUNODE) -> float:
    """Of the whole command in a process of its own; it ends with the option that takes the file."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "config.toml")
        argv = [*command, str(file)]

        def run() -> None:
            file.write_text(text, encoding="utf-8")
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        return spent_s(run)


def main(sizes: list[int]) -> None:
    print(
        f"{'lines':>7} {'tomllib':>8} {'tomlkit':>8} {'rewrite':>8} {'diff':>8} {'configure':>10}   ratio to tomllib, s"
    )
    before: tuple[int, tuple[float, ...]] = (0, ())
    for lines in sizes:
        text = HEAD + "".join(TABLE.replace("{}", str(n)) for n in range(lines // 4)) + CRI
        want = toml_text.load("/x", text)
        table = want
        for key in ENGINE:
            table = table[key]
        table["default_runtime_name"] = "nvidia"
        table["runtimes"] = {"nvidia": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/x"}}}
        after = toml_text.rewrite("/x", text, want, ENGINE)
        row = (
            spent_s(lambda text=text: read_toml(text)),  # type: ignore[misc]
            spent_s(lambda text=text: tomlkit.parse(text), tries=1),  # type: ignore[misc]
            spent_s(lambda text=text, want=want: toml_text.rewrite("/x", text, want, ENGINE)),  # type: ignore[misc]
            spent_s(lambda text=text, after=after: unified("/x", text, after)),  # type: ignore[misc]
            configured(text),
        )
        print(f"{lines:7} " + " ".join(f"{spent / row[0]:5.1f} x " for spent in row) + f"  {row[0]:.2f} {row[4]:.2f}")
        if lines == 2 * before[0]:
            print("  twice " + " ".join(f"{now / then:5.2f} x " for now, then in zip(row, before[1], strict=True)))
        before = lines, row
        if shutil.which(NVIDIA[0]):
            peer = configured(text, NVIDIA)
            print(f"  nvidia-ctk {peer:.2f} s: {row[4] / peer:.1f} x")
    if not shutil.which(NVIDIA[0]):
        print("nvidia-ctk is not at hand: not compared")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1000, 5000, 10_000, 20_000])
