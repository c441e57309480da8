from __future__ import annotations

import grp
import pwd

import pytest

from gpunode.transport.private_group import is_private

ANN, BOB, GROUP = 1000, 1001, 1000


def account(name: str, uid: int, gid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, gid, "", f"/home/{name}", "/bin/sh"))


def group_of(gid: int, members: list[str]) -> grp.struct_group:
    if gid != GROUP:
        raise KeyError(gid)
    return grp.struct_group(("ann", "x", gid, members))


@pytest.mark.parametrize(
    ("anns_group", "bobs_group", "members", "want"),
    [
        (GROUP, BOB, [], True),
        (GROUP, BOB, ["ann"], True),
        (100, BOB, ["ann"], True),
        (GROUP, BOB, ["ann", "bob"], False),
        (GROUP, BOB, ["bob"], False),
        (GROUP, BOB, ["carol"], False),
        (GROUP, GROUP, [], False),
        (100, BOB, [], False),
    ],
    ids=[
        "her own",
        "named as well",
        "only named",
        "another is named, too",
        "only another is named",
        "who has no account here",
        "another's own, too",
        "nobody's, as for programs",
    ],
)
def test_a_group_of_one_user(anns_group: int, bobs_group: int, members: list[str], want: bool) -> None:
    accounts = [account("ann", ANN, anns_group), account("bob", BOB, bobs_group)]
    assert is_private(GROUP, ANN, lambda gid: group_of(gid, members), lambda: accounts) is want


def test_a_group_that_nobody_named_is_not_private() -> None:
    assert not is_private(7, ANN, lambda gid: group_of(gid, []), lambda: [account("ann", ANN, 7)])
