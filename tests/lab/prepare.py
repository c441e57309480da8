"""`python -m tests.lab.prepare`: what the lab needs from the network, before it enters a namespace without one."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import ansible_core, images
from .site import build_site


def main() -> int:
    suites = tuple(images.SUITES.values())
    print(f"lab: images of {', '.join(suites)} (the first time takes minutes)", file=sys.stderr)
    first = images.SUITES["debian12"]
    build(images.BUILD, first)
    with ThreadPoolExecutor() as aside:  # it has the lowest priority; `scripts/test` may have begun it long ago
        kubernetes = aside.submit(build, images.BUILD_KUBERNETES)
        build(images.BUILD, *(suite for suite in suites if suite != first))
        build_site()
        ansible_core.build()
        kubernetes.result()
    return 0


def build(program: Path, *suites: str) -> None:
    subprocess.run(("bash", str(program), *suites), check=True)


if __name__ == "__main__":
    sys.exit(main())
