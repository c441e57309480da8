"""What /usr/bin/gpunode starts: gpunode and the libraries it brings along come before those of the system."""

import sys

sys.path.insert(0, "/usr/lib/gpunode/lib")
sys.argv[0] = "/usr/bin/gpunode"  # so that what gpunode starts later (a timer, a resumed setup) starts it the same way

from gpunode.cli.app import run  # noqa: E402  # the path is set first

run()
