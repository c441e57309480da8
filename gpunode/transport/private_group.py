"""Groups that are one user's alone, as Debian and Ubuntu make one for each user: their ssh_config(5), FILES."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable, Sequence


def is_private(
    group: int,
    user: int,
    group_of: Callable[[int], grp.struct_group] = grp.getgrgid,
    accounts_of: Callable[[], Sequence[pwd.struct_passwd]] = pwd.getpwall,
) -> bool:
    """Whether `group` (a gid) has `user` (a uid) in it, and no other account, be it as its own group or as one more.

    Source: Debian's openssh, user-group-modes.patch (secure_permissions).
    """
    try:
        added = set(group_of(group).gr_mem)
    except KeyError:
        return False
    accounts = accounts_of()
    owners = {account.pw_uid for account in accounts if account.pw_gid == group}
    names = {account.pw_name for account in accounts if account.pw_uid == user}
    return bool(owners or added) and owners <= {user} and added <= names
