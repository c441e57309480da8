"""Debian's own driver, built by Debian's own DKMS for Debian's own kernel: no stub below gpunode. Slow, and opt-in.

    scripts/test --real      # downloads once (1 GB), then builds two drivers: half an hour on two idle processors

An image of Debian with a kernel but without a GPU (no machine runs it: what image builders bake) meets the true
archive, which archive.py recorded while there was a network. What DKMS has built is then loaded by that very kernel,
under qemu (boot.py).
"""
