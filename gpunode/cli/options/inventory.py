"""--ssh or --inventory, --limit, --exclude and --shard -> the hosts of a run, each as it is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gpunode.advice import listing
from gpunode.cli.options.connection import reaching_words
from gpunode.cli.options.groups import LiveOptions
from gpunode.errors import UsageError
from gpunode.fleet.host import Host
from gpunode.fleet.inventory import parse_ssh_targets
from gpunode.fleet.inventory.choice import Shard, chosen
from gpunode.fleet.inventory.members import Member, members
from gpunode.fleet.inventory.tree import Tree, of_targets
from gpunode.render.remedy_text import hosts_are_named_by
from gpunode.transport.base import Transport
from gpunode.transport.ssh_config import SshOptions, SshTarget

MOST_NOTES = 8
Dial = Callable[[SshTarget, SshOptions], Transport]


def named_hosts(options: LiveOptions, settings: SshOptions, dial: Dial) -> tuple[tuple[Host, ...], list[str]]:
    """The hosts that were chosen, () where the shard has none, and what is to be said of them beforehand.

    Nothing is dialled yet. Raises UsageError.
    """
    if options.ssh and options.inventory:
        raise UsageError(
            "--ssh and --inventory exclude each other", remedy="--limit picks hosts of an inventory by their names"
        )
    filtered = _filtering(options.where) if options.where else Host
    shard = Shard.parse(options.shard) if options.shard is not None else None
    tree = _read(options.inventory) if options.inventory else of_targets("--ssh", parse_ssh_targets(options.ssh or ()))
    names = chosen(tree, options.limit or (), options.exclude or (), shard)
    found = members(tree, names)
    notes = _notes(tree)
    if shard and not names:
        notes.append(f"of {len(tree.hosts)} hosts, none is in shard {options.shard}: nothing to do")
    # What a list has of a host, --ssh can say as well; another inventory is named again.
    inventory = str(options.inventory) if options.inventory and tree.dialect != "list" else ""
    hosts_are_named_by(inventory, reaching_words(options))
    hosts = (
        replace(filtered(dial(_target(member, options), _settings(member, settings, options))), layer=member.layer)
        for member in found
    )
    return tuple(hosts), notes


def _read(path: Path) -> Tree:
    from gpunode.fleet.inventory.reading import read_inventory  # late: --ssh needs no reader of files

    return read_inventory(path)


def _filtering(values: Sequence[str]) -> Callable[[Transport], Host]:
    """A host with the filter of --where. Raises UsageError."""
    from gpunode.fleet.inventory.where import FactFilter, parse_where  # late: it loads what reads facts
    from gpunode.transport.kept_answer import KeptAnswer

    conditions = parse_where(values)

    def filtered(transport: Transport) -> Host:
        kept = KeptAnswer(transport)
        return Host(kept, only=FactFilter(conditions, kept))

    return filtered


def _target(member: Member, options: LiveOptions) -> SshTarget:
    """What was typed outweighs the inventory: --user and --port are for every host of it.

    A list is no more than words of --ssh: there a word has its own user and port, and keeps them.
    """
    target = member.target
    if not target.name:
        return target
    return replace(
        target, user=None if options.user else target.user, port=None if options.port is not None else target.port
    )


def _settings(member: Member, settings: SshOptions, options: LiveOptions) -> SshOptions:
    identities: tuple[Path, ...] = settings.identities
    if member.identity and not options.identity:
        identities = (member.identity,)
    jump = settings.jump or member.jump
    if identities == settings.identities and jump == settings.jump:
        return settings
    return replace(settings, identities=identities, jump=jump)


def _notes(tree: Tree) -> list[str]:
    """What the inventory says and nobody reads: it could be what a person counts on."""
    said = listing(tree.notes, MOST_NOTES, between="; ", what="more notes")
    return [f"{tree.source}: {said}"] if said else []
