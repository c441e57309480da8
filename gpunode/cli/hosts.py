"""--ssh, --recorded or this machine -> hosts, each with its transport."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpunode.advice import meant
from gpunode.cli.options.groups import CheckedHostOptions, HostOptions, LiveOptions
from gpunode.errors import UsageError
from gpunode.fleet.host import Host

if TYPE_CHECKING:
    import threading

    from gpunode.model.report import FleetReport, HostOutcome


@contextmanager
def open_hosts(options: LiveOptions, *, as_root: bool = False) -> Iterator[tuple[Host, ...]]:
    """The hosts that were named; nothing is dialled yet. Raises UsageError.

    `as_root`: the verb is root's, so this machine is refused at its first script where the user cannot become root.
    Over SSH every verb is.
    """
    hosts = _hosts(options, as_root=as_root)
    try:
        yield hosts
    finally:
        for host in hosts:
            host.transport.close()


def _hosts(options: LiveOptions, *, as_root: bool) -> tuple[Host, ...]:
    recorded = options.recorded if isinstance(options, HostOptions) else None
    inject = options.inject or () if isinstance(options, CheckedHostOptions) else ()
    if inject and not recorded:
        raise UsageError("--inject is for a recording: on a host nothing is broken", remedy="name one with --recorded")
    if options.ssh and recorded:
        raise UsageError("--ssh and --recorded exclude each other", remedy="name hosts, or one recording")
    one_of("--host-key", options.host_key, ("strict", "accept-new"))
    if options.ssh:
        return _over_ssh(options, options.ssh)
    if only_ssh := _first(_typed_for_ssh(options)):
        raise UsageError(f"{only_ssh} is for hosts over SSH", remedy="name them with --ssh")
    if recorded:
        if for_sudo := _first(_typed_for_sudo(options)):
            raise UsageError(f"{for_sudo} is for hosts, and --recorded asks none", remedy="leave it out")
        return _fleet_of(options, recorded) or (_recorded(recorded, inject),)
    from gpunode.cli.options.passwords import become_password
    from gpunode.transport.local import Local

    become: Literal["always", "auto"] = "always" if as_root and os.geteuid() != 0 else "auto"
    return (Host(Local(password=become_password(options), become=become), local=True),)


def _fleet_of(options: LiveOptions, path: Path) -> tuple[Host, ...]:
    """The recorded hosts in a directory, for a check; () where it is a host itself, or another verb asks."""
    if not isinstance(options, CheckedHostOptions):
        return ()
    from gpunode.fleet.recordings import recorded_fleet

    hosts = recorded_fleet(path)
    if hosts and options.inject:
        raise UsageError("--inject is for one recording", remedy=f"name one of those in {path} with --recorded")
    return hosts


def _recorded(path: Path, inject: Sequence[str]) -> Host:
    from gpunode.facts.collect import load_recording
    from gpunode.transport.recorded import Recorded

    name = path.parent.name if path.name == "facts.txt" else path.stem if path.is_file() else path.resolve().name
    stream = load_recording(path)
    if inject:
        from gpunode.facts.inject import injected

        stream = injected(stream, inject)
    return Host(Recorded(stream, name), recorded=True)


def _over_ssh(options: LiveOptions, values: Sequence[str]) -> tuple[Host, ...]:
    from gpunode.cli.options.passwords import become_password, login_password, unlock_keys
    from gpunode.fleet.inventory import parse_ssh_targets
    from gpunode.transport.ssh import Ssh
    from gpunode.transport.ssh_config import SshOptions

    deadline_s(options)  # refused here where it is no number
    timeout = whole_number("--connect-timeout", options.connect_timeout, 1, 3600)
    settings = SshOptions(
        user=options.user,
        port=whole_number("--port", options.port, 1, 65535),
        identities=tuple(options.identity or ()),
        jump=options.jump,
        accept_new=options.host_key == "accept-new",
        connect_timeout_s=float(timeout) if timeout else None,
        password=login_password(options),
        become_password=become_password(options),
    )
    targets = parse_ssh_targets(values)
    unlock_keys(options, targets, settings)
    return tuple(Host(Ssh(target, settings)) for target in targets)


def _typed_for_ssh(options: LiveOptions) -> dict[str, object]:
    return {
        "--identity": options.identity,
        "--key-pass-file": options.key_pass_file,
        "--ask-pass": options.ask_pass,
        "--user": options.user,
        "--port": options.port,
        "--jump": options.jump,
        "--host-key": options.host_key,
        "--connect-timeout": options.connect_timeout,
        "--forks": options.forks,
        "--deadline": options.deadline,
    }


# Of LiveOptions, what reaches the same hosts once more. None of it is a secret: passwords are asked for, or in a file.
_CONNECTION = (
    *("identity", "user", "port", "jump", "ask_become_pass", "become_pass_file"),
    *("host_key", "connect_timeout", "forks", "key_pass_file", "ask_pass", "deadline"),
)
_PATHS = ("identity", "become_pass_file", "key_pass_file")
_SWITCHES = ("ask_become_pass", "ask_pass")


def typed_connection(options: LiveOptions) -> dict[str, object]:
    """{"user": "root", "identity": ["/root/.ssh/gpu"]}: what was typed of it, in JSON's types."""
    found: dict[str, object] = {}
    for name in _CONNECTION:
        value = getattr(options, name)
        if value is not None and value is not False:
            texts = [os.path.abspath(one) if name in _PATHS else one for one in _list(value)]
            found[name] = texts if isinstance(value, list) else texts[0]
    return found


def connected_as(options: HostOptions, kept: Mapping[str, object]) -> HostOptions:
    """`options`, and for what was not typed of it what an earlier run was typed with. Raises UsageError.

    Each value is read again as if it were typed now.
    """
    values: dict[str, Any] = {}
    for name in _CONNECTION:
        value, typed = kept.get(name), getattr(options, name)
        if value is None or (typed is not None and typed is not False):
            continue
        right = value is True if name in _SWITCHES else all(isinstance(one, str) for one in _list(value))
        if not right or isinstance(value, list) != (name == "identity"):
            raise UsageError(
                f"the record of the run has no option of SSH in {name}", remedy="type the hosts with --ssh"
            )
        paths = [Path(one) if name in _PATHS else one for one in _list(value)]
        values[name] = paths if isinstance(value, list) else paths[0]
    if options.ask_become_pass or options.become_pass_file:  # either is typed in place of the other
        values = {name: value for name, value in values.items() if name not in ("ask_become_pass", "become_pass_file")}
    return replace(options, **values)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _typed_for_sudo(options: LiveOptions) -> dict[str, object]:
    return {"--ask-become-pass": options.ask_become_pass, "--become-pass-file": options.become_pass_file}


def _first(flags: dict[str, object]) -> str:
    """The first that was typed, even with no text behind it; "" for none."""
    return next((flag for flag, value in flags.items() if value is not None and value is not False and value != []), "")


def forks(options: LiveOptions) -> int:
    from gpunode.fleet.run import DEFAULT_FORKS

    return whole_number("--forks", options.forks, 1, 1000) or DEFAULT_FORKS


def deadline_s(options: LiveOptions) -> int | None:
    return whole_number("--deadline", options.deadline, 1, 604_800)


def whole_number(flag: str, text: str | None, least: int, most: int) -> int | None:
    """None when not typed. Raises UsageError that names the range."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text) and least <= int(text) <= most:
        return int(text)
    raise UsageError(
        f"{flag} {text!r} is not a whole number from {least} to {most}", remedy=f"give {flag} such a number"
    )


def one_of(flag: str, text: str | None, choices: tuple[str, ...]) -> None:
    """None when not typed. Raises UsageError that lists the choices."""
    if text is not None and text not in choices:
        raise UsageError(
            f"{flag} {text!r} is not a choice",
            evidence=f"{meant(text, choices)}the choices are {', '.join(choices)}",
            remedy=f"choose one of them with {flag}",
        )


def on_each(
    hosts: Sequence[Host],
    options: LiveOptions,
    work: Callable[[Host], HostOutcome],
    on_done: Callable[[HostOutcome], None],
    stop: threading.Event | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> FleetReport:
    """`work` on every host side by side. One host's failure stays its own: it becomes that host's outcome."""
    from gpunode.fleet.run import run_fleet

    return run_fleet(hosts, work, forks=forks(options), on_done=on_done, stop=stop, on_stop=on_stop)
