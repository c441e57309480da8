"""`python -m tests.lab.prepare`: what the lab needs from the network, before it enters a namespace without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import images
from .site import build_site


def main() -> int:
    suites = tuple(images.SUITES.values())
    print(f"lab: images of {', '.join(suites)} (the first time takes minutes)", file=sys.stderr)
    build = Path(__file__).parent / "images" / "build.sh"
    subprocess.run(("bash", str(build), *suites), check=True)
    build_site()
    return 0


if __name__ == "__main__":
    sys.exit(main())
