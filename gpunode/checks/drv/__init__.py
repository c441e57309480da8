"""The kernel driver: is it loaded, is it the one on disk, does it fit the cards, will it be there after a reboot?"""
