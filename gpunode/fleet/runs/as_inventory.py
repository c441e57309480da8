"""A run as an inventory of Ansible: how each host ended is its group, so that a playbook takes up what a run left.

Values of an inventory are templates to Ansible, and names with brackets are ranges; a record of another controller is
not to be believed. So what has other characters than a name, an address or a path needs is refused.
Source: Ansible's guide "How to build your inventory"; what its yaml plugin reads (ansible-core 2.14 and newer).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpunode.errors import ExitCode, UsageError
from gpunode.model.run_record import HostState, MergedRuns, PastHost, RunHeader
from gpunode.regex import regex
from gpunode.transport.ssh_config import SshTarget, parse_target

HEAD = """\
# The hosts of {runs}, by how they ended. For gpunode's and for ansible's -i: what reaches a host of a run that had an
# inventory is in that one, so name it as well, before this.
"""
NOT_DONE = "gpunode_not_done"  # all groups but that of the hosts that ended well
_PLAIN = regex(r"[A-Za-z0-9_][A-Za-z0-9_.:%@-]*")
_PORT = regex(r"[0-9]{1,5}")
_PATH = regex(r"/[A-Za-z0-9_./@+=-]*")
_LOCAL = {"ansible_connection": "local"}

Vars = dict[str, object]


def as_inventory(merged: MergedRuns) -> str:
    """YAML. Raises UsageError for a name that is none of a host of Ansible's."""
    import yaml

    headers = {target: header for header in merged.headers for target in header.hosts}
    names = _names(merged.hosts, headers)
    groups: dict[str, dict[str, Vars | None]] = {}
    for host in merged.hosts:
        name, found = names[host.target]
        groups.setdefault(_group(host), {})[name] = found or None
    children: dict[str, Any] = {
        group: {"hosts": groups[group]} for group in sorted(groups) if group == _group_of(ExitCode.DONE)
    }
    left = {group: {"hosts": hosts} for group, hosts in sorted(groups.items()) if group not in children}
    if left:
        children[NOT_DONE] = {"children": left}
    head = HEAD.format(runs="run " + ", ".join(header.id for header in merged.headers))
    return head + yaml.safe_dump({"all": {"children": children}}, sort_keys=False, allow_unicode=True)


def _group(host: PastHost) -> str:
    if host.outcome is not None:
        return _group_of(host.outcome.code)
    return "gpunode_at_work" if host.state is HostState.BEGUN else "gpunode_not_begun"


def _group_of(code: ExitCode) -> str:
    return f"gpunode_{code.name.lower()}"


def _names(hosts: Sequence[PastHost], headers: Mapping[str, RunHeader]) -> dict[str, tuple[str, Vars]]:
    """Target -> its name in the inventory, and what reaches it."""
    if any(header.connection.get("inventory") is not None for header in headers.values()):
        return {host.target: (_plain(host.target, host.target), {}) for host in hosts}
    found = {host.target: parse_target(host.target) for host in hosts}
    often = Counter(target.host for target in found.values())
    return {
        name: (_own_name(name, target, often[target.host]), _reached(name, target, headers.get(name)))
        for name, target in found.items()
    }


def _own_name(name: str, target: SshTarget, often: int) -> str:
    """Two ways to one machine are two hosts."""
    return _plain(target.host if often == 1 else re.sub(r"[^A-Za-z0-9_.-]", "_", str(target)), name)


def _reached(name: str, target: SshTarget, header: RunHeader | None) -> Vars:
    """The words of the target before those of the command line, as gpunode takes them."""
    if header is not None and not header.over_ssh:
        return dict(_LOCAL)
    typed: Mapping[str, object] = header.connection if header is not None else {}
    found: Vars = {"ansible_host": _plain(target.host, name)}
    if user := target.user or typed.get("user"):
        found["ansible_user"] = _plain(user, name)
    if port := target.port or typed.get("port"):
        found["ansible_port"] = int(_plain(str(port), name, _PORT))
    if isinstance(keys := typed.get("identity"), list) and keys:
        found["ansible_ssh_private_key_file"] = _plain(keys[0], name, _PATH)
    if jump := typed.get("jump"):
        hops = ",".join(_plain(hop, name) for hop in str(jump).split(","))
        found["ansible_ssh_common_args"] = f"-o ProxyJump={hops}"
    return found


def _plain(value: object, name: str, form: re.Pattern[str] = _PLAIN) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise UsageError(
            f"{name}: an inventory of Ansible cannot hold {str(value)[:80]!r}",
            evidence="Ansible takes it for a template or a range of names",
            remedy="use --format json",
        )
    return value
