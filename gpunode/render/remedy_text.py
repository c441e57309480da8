"""The one place where a remedy becomes words: as it is typed on this host, or where gpunode runs over SSH."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.remedy import Remedy
from gpunode.render.wording import fold_hosts

_named_by = [""]  # the inventory of this command line, which has one; "": its hosts are words of --ssh
_reached_by: list[tuple[str, ...]] = [()]  # options of this command line that its hosts are reached by as well
HOSTS = 28  # columns for the hosts of one finding; more of them are counted there and named below


def hosts_are_named_by(inventory: str, reach: tuple[str, ...] = ()) -> None:
    """From now on remedies name hosts by this file and --limit; "": by --ssh.

    `reach`: the words that say how to connect to them, ("--user", "ann").
    """
    _named_by[0], _reached_by[0] = inventory, reach


def hosts_are_in() -> str:
    """The inventory of this command line; "": its hosts are words of --ssh."""
    return _named_by[0]


def remedy_text(remedy: Remedy, hosts: Sequence[str] = ()) -> str:
    """Its words; with `hosts`, gpunode's own commands for them: `gpunode setup --ssh gpu[01-03] --only driver`.

    Many hosts without a range in common would make it unreadable: it has HOSTS then, and a line above names them.
    """
    if not hosts:
        return remedy.text
    names = fold_hosts(hosts).replace(", ", ",")
    word = names if len(names) <= HOSTS or len(hosts) == 1 else "HOSTS"
    return remedy.over_ssh(word, _named_by[0], _reached_by[0]).text
