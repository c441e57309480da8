"""Rootless Docker: when it is meant, and what it needs in the toolkit's config, which is the whole host's."""

from __future__ import annotations

from dataclasses import replace

from gpunode.advice import named as quoted
from gpunode.engines.registry import engine
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import TOOLKIT_CONFIG, Spec, ToolkitConfig

DIRECTORY = TOOLKIT_CONFIG.rpartition("/")[0]


def named(host: HostFacts, name: str) -> tuple[RuntimeFacts, ...]:
    """The engines that `name` means: all of one kind, or the one of a label ("docker@ann").

    A user's own one is meant by its kind only where it is the only one. Raises UnsupportedHost where several
    users have one, and none is the host's.
    """
    found = tuple(e for e in host.runtimes if e.label == name or (e.name == name and not e.user))
    users = tuple(e for e in host.runtimes if e.name == name and e.user)
    if found or len(users) < 2:
        return found or users
    labels = [e.label for e in users]
    raise UnsupportedHost(
        f"{host.target} has {len(users)} {name}s, each a user's own",
        evidence=f"they are {', '.join(labels)}",
        remedy=f"name the one, or all of them: --runtime {quoted(','.join(labels))}",
    )


def wanted_toolkit_config(host: HostFacts, spec: Spec) -> ToolkitConfig:
    """What is asked of the toolkit's config.toml, with no-cgroups where rootless Docker is to be set up.

    Raises UnsupportedHost where engines that run as root would lose their GPUs by it, unless the
    spec sets no-cgroups.
    """
    chosen = spec.runtimes or () if "runtime" in spec.only else ()
    users = [e for name in chosen for e in named(host, name) if e.user]
    if not users or spec.toolkit_config.no_cgroups is not None:
        return spec.toolkit_config
    rooted = [e.label for e in host.runtimes if _needs_cgroups(host, e)]
    if rooted:
        raise UnsupportedHost(
            f"{users[0].label} needs no-cgroups, and {' and '.join(rooted)} must not have it",
            evidence=f"no-cgroups in {TOOLKIT_CONFIG} applies to the whole host: containers of an engine that runs as "
            "root then get no device rules, and so no GPUs",
            remedy="--ctk-set no-cgroups=true sets it nevertheless, --ctk-set no-cgroups=false leaves it off (its "
            "containers then get GPUs by CDI only); or stop the engine that is not used",
        )
    return replace(spec.toolkit_config, no_cgroups=True)


def restart_words(facts: RuntimeFacts) -> str:
    """The commands that its user must run before it sees the toolkit's config; "" when it does."""
    if not facts.user or facts.sees_toolkit or not facts.active:
        return ""
    unit = engine(facts.name).users_unit
    return (
        f"{facts.label} made its copy of /etc before {DIRECTORY} was there, and sees it once it is started again. "
        f"Until then images that ask for GPUs do not start in it. As {quoted(facts.user)}: "
        f"systemctl --user restart {unit}   (its containers stop unless live-restore is on)"
    )


def _needs_cgroups(host: HostFacts, facts: RuntimeFacts) -> bool:
    """Whether it runs containers as root through nvidia-container-runtime; a containerd for docker alone is idle."""
    return not facts.user and facts.active and bool(facts.unit) and engine(facts.name).idle(host, facts) is None
