"""Throw-away machines for end-to-end tests: real systemd, sshd, apt, dockerd and containerd; only NVIDIA is a stub.

A host is a systemd-nspawn container on an overlay of a Debian image (images/), with a fake PCI tree that the real
lspci reads (hardware/), stub vendor packages in signed repositories (stubs/, repositories.py) and a lab internet
that answers under the vendor's real names (dns.py, web.py, authority.py). gpunode needs no hook for any of it.

    tests/lab/images/build.sh bookworm trixie sid      # once, minutes
    tests/lab/images/kubernetes.sh                     # once, minutes: API server and kubelet 1.20.2 (control_plane.py)
    tests/lab/run.sh python -m pytest tests/lab        # in a network namespace of its own: nothing can leave
    scripts/test --real                                # tests/lab/real: Debian's true driver instead of the stubs; slow
"""

from .host import Host
from .lab import Lab, why_not

__all__ = ["Host", "Lab", "why_not"]
