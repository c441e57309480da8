"""Commands that several backends share: scripts of shell/packages, with a manager's own settings put before them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpunode import resources
from gpunode.model.action import Run

INSTALL_S = 3600  # a DKMS build on a small host takes more than ten minutes
FETCH_S = 3600  # a driver is 400 MB, and mirrors can be slow
REFRESH_S = 900
ENDED = 75  # retry.sh's, of a download that was ended since no data came
# What apt, dnf, zypper and pacman print for a package that the index names and the mirror does not have (any more).
LAGS = (
    "404|[Hh]ash [Ss]um mismatch|[Ss]ize mismatch|unexpected size|Failed to fetch|No more mirrors|Status code"
    "|failed retrieving|not found on medium|[Cc]hecksum"
)
# apt's lock on its lists has no time-out option (apt 2.6). apt-daily has it for minutes when a fresh image first boots.
_LOCKED = "^E: (Could not get lock|Unable to lock)"
# A network may come back, too.
BUSY = (
    "Could not get lock|Unable to lock|Temporary failure|Could not (connect|resolve)|[Cc]onnection (failed|reset)"
    "|[Tt]imeout|[Tt]imed out|[Hh]ash [Ss]um mismatch|unexpected size|(HTTP/[0-9.]+ |Status code: | )50[0-9]"
)
Env = tuple[tuple[str, str], ...]


def same_version(versions: str, hold: str, lead: str, patterns: Sequence[str], env: Env) -> Run:
    """`versions`: sh that prints NAME UPSTREAM_VERSION of the installed packages that match "$@"; `hold`: sh that pins
    "$@", "" for none."""
    description = f"check that all packages are at {lead}'s version" + (", and pin them" if hold else "")
    before = f"versions() (\n{versions}\n)\n" + (f"hold() (\n{hold}\n)\n" if hold else "hold() { :; }\n")
    argv = ("sh", "-s", "--", lead, *patterns)
    return Run(
        argv,
        timeout_s=300,
        env=env,
        stdin=before + resources.script("packages/same_version"),
        description=description,
        record_output=True,
    )


def fetch(
    command: Sequence[str],
    refresh: str,
    description: str,
    env: Env,
    *,
    lags: str = LAGS,
    ok_codes: Sequence[int] = (0,),
    despite: str = "",
    sources: Sequence[str] = (),
    again: bool = True,
) -> Run:
    """A download that is tried again, after `refresh` (a shell line), while a mirror's packages and index differ.

    `lags`: how the manager reports that, as an extended regular expression; `ok_codes`: those that mean it is
    done; `despite`: what it prints of a failure that its exit code says nothing of, another expression; `sources`:
    patterns of the files that name its mirrors; `again` False: no mirror is asked, and a minute changes nothing.
    """
    words = (lags, "10 30 60" if again else "", refresh, *command)
    return Run(
        _AGAIN + words,
        timeout_s=FETCH_S,
        env=env,
        stdin=_again(ok_codes, sources, despite),
        detach=True,
        description=description,
        read_only=True,
    )


def refresh(
    command: Sequence[str],
    description: str,
    env: Env,
    *,
    busy: str = BUSY,
    ok_codes: Sequence[int] = (0,),
    sources: Sequence[str] = (),
) -> Run:
    """Indexes that are fetched again when a lock or the network stood in the way, not when their signature does.

    `busy`: how the manager reports that; `ok_codes` and `sources` as in `fetch`.
    """
    words = (busy, "5 15 30", ":", *command)
    return Run(
        _AGAIN + words,
        timeout_s=REFRESH_S,
        env=env,
        stdin=_again(ok_codes, sources),
        detach=True,
        description=description,
        read_only=True,
    )


def refresh_all(command: Sequence[str], env: Env, *, ok_codes: Sequence[int], sources: Sequence[str] = ()) -> Run:
    """Every index, once; what cannot be fetched (`ok_codes`) or sends nothing is left to the install that needs it.

    Lists that another apt has locked are waited for: without them that install would know of no package.
    """
    return Run(
        (*_AGAIN, _LOCKED, "5 15 30 60 60", ":", *command),
        timeout_s=REFRESH_S,
        ok_codes=tuple(dict.fromkeys((*ok_codes, ENDED))),
        env=env,
        stdin=_again((0,), sources, _LOCKED),
        detach=True,
        description=shlex.join(command),
    )


_AGAIN = ("sh", "-s", "--")


def _again(ok_codes: Sequence[int], sources: Sequence[str], despite: str = "") -> str:
    success = "" if tuple(ok_codes) == (0,) else " ".join(map(str, ok_codes))
    settings = {"success": success, "despite": despite, "sources": " ".join(sources)}
    lines = (f"{name}={shlex.quote(value)}\n" for name, value in settings.items() if value)
    return "".join(lines) + resources.script("packages/silence") + resources.script("packages/retry")


def hold_file(file: str, *, key: str = "", includer: str = "", section: str = "") -> str:
    """sh that pins or unpins: "$@" is the verb (hold, unhold) and names. For managers that read pins from a file.

    `key`: the file is one line "KEY = NAME ..."; "": a name a line. `includer`: the manager's own file, which is made
    to include this one in its [section].
    """
    words = (("key", key), ("includer", includer), ("section", section))
    settings = " ".join(f"{name}={shlex.quote(word)}" for name, word in words)
    return f'{settings}\nset -- {shlex.quote(file)} "$@"\n{resources.script("packages/hold_file")}'


def transaction(argv: Sequence[str], script: str, names: Sequence[str], description: str, env: Env) -> Run:
    """Packages installed, removed or repaired, `names` among them; `script` is fed to `argv`, "" for none."""
    return Run(
        tuple(argv),
        timeout_s=INSTALL_S,
        env=env,
        stdin=script,
        detach=True,
        packages=tuple(names),
        description=description,
    )


def simulate(manager: str, resolve: str, asked: Sequence[str], mine: Sequence[str], env: Env) -> Run:
    """Ask the resolver what an install or a removal would do, `asked`: its words.

    Fails (65) when it would remove a package that matches none of `mine`. The answer is one line a package: install |
    upgrade | downgrade | remove, name, version. Changes nothing. `resolve`: sh that gets it from the manager
    (simulate.sh).
    """
    argv = ("sh", "-s", "--", manager, str(len(mine)), *mine, *asked)
    description = f"ask {manager} what it would change"
    script = f"resolve() (\n{resolve})\n" + resources.script("packages/simulate")
    return Run(argv, timeout_s=300, env=env, stdin=script, description=description, record_output=True, read_only=True)
