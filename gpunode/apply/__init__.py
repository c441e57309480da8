"""Carry a plan out on a host: files, commands, journal, lock, reboot.

Together with facts/collect.py the only caller of Transport.run.
"""
