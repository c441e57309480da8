"""Ansible's variables that say how a host is reached: read, refused by name, or said to be unread.

Source: the options of Ansible's connection plugins ssh and paramiko_ssh and of its become plugins (ansible-core 2.19).
"""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.fleet.inventory.ansible_ssh_args import read_ssh_args
from gpunode.fleet.inventory.tree import Said, Tree
from gpunode.regex import regex

_SETTING = {
    "ansible_host": "address",
    "ansible_ssh_host": "address",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_private_key_file": "identity",
    "ansible_ssh_private_key_file": "identity",
}
_SSH_ARGS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_OVER_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh")
_BECOME_METHODS = ("sudo", "doas")
# Variables that have to be one of these, or else somebody else is reached, or the host otherwise.
_ONLY = {
    "ansible_connection": (_OVER_SSH, "gpunode reaches hosts over SSH; --exclude leaves this one out"),
    "ansible_become_method": (_BECOME_METHODS, "gpunode becomes root by sudo or doas"),
    "ansible_become_user": (("root",), "gpunode works as root"),
    "ansible_sudo_user": (("root",), "gpunode works as root"),
    "ansible_shell_type": (("sh", "bash", "csh", "fish"), "gpunode's hosts have a POSIX shell"),
}
_REFUSED = {
    "ansible_paramiko_proxy_command": "write ProxyCommand into ~/.ssh/config, or name a jump host with --jump",
    "ansible_ssh_executable": "gpunode has its own SSH, and runs no other",
}
_UNREAD = {
    "ansible_become_exe": "sudo or doas is the one in the host's PATH",
    "ansible_become_flags": "sudo's and doas' flags are gpunode's own",
    "ansible_sudo_exe": "sudo or doas is the one in the host's PATH",
    "ansible_sudo_flags": "sudo's and doas' flags are gpunode's own",
    "ansible_ssh_timeout": "--connect-timeout is for that",
    "ansible_timeout": "--connect-timeout is for that",
}
_UNREAD_WHERE_FALSE = {
    "ansible_become": "gpunode becomes root all the same",
    "ansible_host_key_checking": "host keys are always checked",
    "ansible_ssh_host_key_checking": "host keys are always checked",
}
_READ = {*_SETTING, *_SSH_ARGS, *_ONLY, *_REFUSED, *_UNREAD, *_UNREAD_WHERE_FALSE}
_SECRET = regex(r"ansible_(?:\w{1,60}_)?(?:pass|password|passphrase|private_key)")
_FALSE = ("false", "no", "off", "0", "n", "f")
VAULT = "gpunode asks for no vault's password; keep it in group_vars, of which gpunode reads how hosts are reached"


def is_read(name: str) -> bool:
    return name in _READ


def is_secret(name: str) -> bool:
    """Whether it holds a password, or a private key itself."""
    return _SECRET.fullmatch(name) is not None


def keep(tree: Tree, name: str, said: Said, *, vault: bool, into: dict[str, Said], whose: str) -> None:
    """Put a variable into `into` where it is one that counts; a secret is a fault, and so is a vault's."""
    if is_secret(name) and not said.unset:
        tree.fault(
            said.line, f"{whose}: {name} is a secret, and gpunode takes none from an inventory ({_instead(name)})"
        )
    elif vault:
        tree.fault(said.line, f"{whose}: {name[:80]} is encrypted by ansible-vault ({VAULT})")
    elif is_read(name):
        into[name] = said


def _instead(name: str) -> str:
    if "become" in name or "sudo" in name:
        return "--ask-become-pass or --become-pass-file is for that"
    return "a key of the agent, or of ansible_ssh_private_key_file, is for that"


def login_of(variables: Mapping[str, Said], tree: Tree, whose: str) -> dict[str, Said]:
    """The settings in a host's variables; what is wrong goes to the tree's faults, what is not read to its notes."""
    found: dict[str, Said] = {}
    for name, said in variables.items():
        if said.unset:
            continue
        if "{{" in said.text or "{%" in said.text:
            tree.fault(said.line, f"{whose}: {name} is a template ({said.text[:80]!r}), and gpunode evaluates none")
        elif name in _SETTING:
            _put(found, _SETTING[name], said, tree, f"{whose}: {name}")
        elif name in _SSH_ARGS:
            _ssh_args(found, name, said, tree, whose)
        else:
            _judge(name, said, tree, whose)
    return found


def _judge(name: str, said: Said, tree: Tree, whose: str) -> None:
    if name in _ONLY:
        allowed, why = _ONLY[name]
        if said.text.lower().rpartition(".")[2] not in allowed:
            tree.fault(said.line, f"{whose}: {name} is {said.text[:80]!r} ({why})")
    elif name in _REFUSED:
        tree.fault(said.line, f"{whose}: {name} is nothing that gpunode can do ({_REFUSED[name]})")
    elif name in _UNREAD or said.text.lower() in _FALSE:
        tree.notes[f"{name} is not read: {_UNREAD.get(name) or _UNREAD_WHERE_FALSE[name]}"] = None


def _ssh_args(found: dict[str, Said], name: str, said: Said, tree: Tree, whose: str) -> None:
    args = read_ssh_args(said.text)
    for word in args.unread:
        tree.notes[f"{word} of {name} is not read: gpunode's SSH has its own"] = None
    for word in args.refused:
        tree.fault(
            said.line, f"{whose}: {name} has {word[:120]!r}, which gpunode cannot honour (write it into ~/.ssh/config)"
        )
    if args.jump is not None:
        _put(found, "jump", Said(args.jump, said.line), tree, f"{whose}: {name}")


def _put(found: dict[str, Said], key: str, said: Said, tree: Tree, which: str) -> None:
    """Two variables may say the same thing: ansible_host and ansible_ssh_host."""
    before = found.setdefault(key, said)
    if before.text != said.text:
        tree.fault(said.line, f"{which} is {said.text[:80]!r}, where another variable has {before.text[:80]!r}")
