"""The kernel driver: is it loaded, is it the one on disk, does it fit the GPUs, will it be there after a reboot?"""
