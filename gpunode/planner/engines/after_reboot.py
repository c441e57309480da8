"""What a reboot of gpunode's would leave stopped."""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.engines.kubernetes.at_boot import off_at_boot
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Kept


def gone_after_reboot(host: HostFacts) -> tuple[Kept, ...]:
    """A warning of engines and of a kubelet that somebody started by hand: whether they start is for them to say."""
    off = off_at_boot(host)
    if not off:
        return ()
    text = (
        f"{listing(off)}: {'it runs' if len(off) == 1 else 'they run'} now, and nothing starts "
        f"{'it' if len(off) == 1 else 'them'} after the reboot; {typed('systemctl', 'enable', *off)} sees to that"
    )
    return (Kept("reboot.engines", text, beware=True),)
