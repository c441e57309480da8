"""What it costs to add a runtime to a large containerd configuration, compared with one parse by tomllib.

python -m tests.bench.toml_rewrite [LINES ...]
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable

from gpunode.editing import toml_text
from gpunode.editing.diff import unified
from gpunode.foreign import read_toml

ENGINE = ("plugins", "io.containerd.grpc.v1.cri", "containerd")
HEAD = 'version = 2\nroot = "/var/lib/containerd"\n\n[plugins]\n'
TABLE = '  [plugins."io.example.plugin.v1.number-{}"] # what it is for\n    key = "value"\n    list = [1, 2, 3]\n\n'
CRI = '[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n'


def spent_s(work: Callable[[], object]) -> float:
    tries = []
    for _ in range(3):
        began = time.process_time()
        work()
        tries.append(time.process_time() - began)
    return min(tries)


def main(sizes: list[int]) -> None:
    for lines in sizes:
        text = HEAD + "".join(TABLE.replace("{}", str(n)) for n in range(lines // 4)) + CRI
        want = copy.deepcopy(read_toml(text))
        table = want
        for key in ENGINE:
            table = table[key]
        table["default_runtime_name"] = "nvidia"
        table["runtimes"] = {"nvidia": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/x"}}}
        after = toml_text.rewrite("/x", text, want, ENGINE)
        parse = spent_s(lambda text=text: read_toml(text))  # type: ignore[misc]
        edit = spent_s(lambda text=text, want=want: toml_text.rewrite("/x", text, want, ENGINE))  # type: ignore[misc]
        diff = spent_s(lambda text=text, after=after: unified("/x", text, after))  # type: ignore[misc]
        print(
            f"{lines:7} lines, {len(text) / 1e6:5.2f} MB: parse {parse:6.3f} s, rewrite {edit:6.3f} s "
            f"({edit / parse:4.1f} x), diff {diff:6.3f} s ({diff / parse:4.1f} x)"
        )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1000, 5000, 20_000])
