"""gpunode whose patience can be cut, as a program: `python -m tests.lab.impatient setup ...`.

A host that is lost in a transaction is looked for during some seconds in place of ten minutes. From SIGUSR1 on a host
that reboots has 15 seconds in place of 15 minutes. Everything else is the product.
"""

from __future__ import annotations

import signal
import sys

from gpunode import converge
from gpunode.apply.commands import detached
from gpunode.cli.app import main

RECONNECT_S = (1.0, 2.0, 5.0)
REBOOT_WAIT_S = 15.0


def _cut(number: int, frame: object) -> None:
    converge.REBOOT_WAIT_S = REBOOT_WAIT_S


if __name__ == "__main__":
    detached.RECONNECT_S = RECONNECT_S  # type: ignore[assignment]
    signal.signal(signal.SIGUSR1, _cut)
    sys.exit(main())
