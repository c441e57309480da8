"""The options that verbs share, as groups: a verb takes `hosts: HostOptions` and typer sees every flag of it.

A verb takes the smallest group whose every flag it reads: what it would ignore is then no option of it.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gpunode.values import dataclass


class Option:
    """How a flag is typed and what its help says; cli/options/verb.py makes typer's of it, where typer is asked."""

    def __init__(
        self, names: tuple[str, ...], heading: str | None, help: str, metavar: str | None, *, count: bool
    ) -> None:
        self.names, self.heading, self.help, self.metavar, self.count = names, heading, help, metavar, count


def option(
    *names: str, heading: str | None = None, help: str, metavar: str | None = None, count: bool = False
) -> Option:
    """`heading`: that of a group; None: the verb's own."""
    return Option(names, heading, help, metavar, count=count)


_host = partial(option, heading="Hosts")
wanted = partial(option, heading="What is wanted")
_checks = partial(option, heading="Which checks")
_output = partial(option, heading="Output")


@dataclass(frozen=True)
class LiveOptions:
    """Which host, where a recording has nothing to offer."""

    ssh: Annotated[
        list[str] | None,
        _host("--ssh", metavar="HOSTS", help="Hosts over SSH: h1,user@h2:22,gpu[01-64],@FILE. Repeatable."),
    ] = None
    inventory: Annotated[
        Path | None,
        _host("--inventory", metavar="FILE", help="Hosts over SSH: YAML, Ansible's INI or YAML, a list; - is stdin."),
    ] = None
    limit: Annotated[
        list[str] | None,
        _host("--limit", metavar="NAMES", help="Only these: hosts, groups, gpu[01-04], gpu*. Repeatable."),
    ] = None
    exclude: Annotated[list[str] | None, _host("--exclude", metavar="NAMES", help="Not these. Repeatable.")] = None
    where: Annotated[
        list[str] | None,
        _host("--where", metavar="KEY=VALUE", help="Only hosts with this fact: gpu.arch=blackwell. Repeated: and."),
    ] = None
    shard: Annotated[str | None, _host("--shard", metavar="N/M", help="The Nth of M parts of the hosts.")] = None
    identity: Annotated[
        list[Path] | None, _host("--identity", metavar="FILE", help="Private key for SSH. Repeatable.")
    ] = None
    key_pass_file: Annotated[
        Path | None,
        _host("--key-pass-file", metavar="FILE", help="The passphrase of a key is this file's first line."),
    ] = None
    ask_pass: Annotated[bool, _host("--ask-pass", help="Ask once for the password of SSH, where no key does.")] = False
    user: Annotated[str | None, _host("--user", metavar="NAME", help="User for SSH.")] = None
    port: Annotated[str | None, _host("--port", metavar="N", help="Port for SSH.")] = None
    jump: Annotated[str | None, _host("--jump", metavar="HOST", help="Go through this host, or h1,h2 in order.")] = None
    ask_become_pass: Annotated[bool, _host("--ask-become-pass", help="Ask once for the password of sudo.")] = False
    become_pass_file: Annotated[
        Path | None,
        _host("--become-pass-file", metavar="FILE", help="The password of sudo is this file's first line."),
    ] = None
    host_key: Annotated[
        str | None,
        _host("--host-key", metavar="strict|accept-new", help="Unknown host keys: refuse (default), or remember."),
    ] = None
    connect_timeout: Annotated[
        str | None, _host("--connect-timeout", metavar="SECONDS", help="Limit for reaching a host (default 10).")
    ] = None
    forks: Annotated[str | None, _host("--forks", metavar="N", help="Hosts at once (default 50).")] = None
    deadline: Annotated[
        str | None,
        _host("--deadline", metavar="SECONDS", help="Limit for one host: a look is given up, no more steps begin."),
    ] = None


@dataclass(frozen=True)
class HostOptions(LiveOptions):
    """Which host, or a recording of one."""

    recorded: Annotated[
        Path | None, _host("--recorded", metavar="PATH", help="A recorded host, as `detect --record` saved it.")
    ] = None


@dataclass(frozen=True)
class CheckedHostOptions(HostOptions):
    """The same, and what a recording is to have met since."""

    inject: Annotated[
        list[str] | None,
        _host("--inject", metavar="xid=79,gpu=3", help="Show what this would look like on a recording. Repeatable."),
    ] = None


# A flag that was not typed is None or False and keeps the value of the spec.
SpecFlag = Annotated[Path | None, wanted("--spec", metavar="FILE", help="YAML; flags take precedence.")]
ToolkitFlag = Annotated[str | None, wanted("--toolkit", metavar="auto|none|VERSION", help="NVIDIA container toolkit.")]
CtkSetFlag = Annotated[
    list[str] | None,
    wanted("--ctk-set", metavar="KEY=VALUE", help="A setting of the toolkit's own config.toml. Repeatable."),
]
RuntimeFlag = Annotated[
    str | None,
    wanted("--runtime", metavar="auto|none|NAMES", help="docker,containerd,k3s,...: engines to configure."),
]
NoDefaultFlag = Annotated[
    bool, wanted("--no-default", help="Leave the default runtime: nvidia by RuntimeClass or CDI only.")
]
CdiFlag = Annotated[bool, wanted("--cdi", help="Enable CDI in the engines.")]
KubernetesModeFlag = Annotated[
    str | None,
    wanted("--kubernetes-mode", metavar="device-plugin|dra", help="What gives out this node's GPUs to pods."),
]


@dataclass(frozen=True)
class CheckOptions:
    """What a check holds a host to."""

    spec: SpecFlag = None
    toolkit: ToolkitFlag = None
    ctk_set: CtkSetFlag = None
    runtime: RuntimeFlag = None
    no_default: NoDefaultFlag = False
    cdi: CdiFlag = False
    kubernetes_mode: KubernetesModeFlag = None
    expect_gpus: Annotated[
        str | None, wanted("--expect-gpus", metavar="N", help="A node with fewer GPUs fails its check.")
    ] = None
    expect: Annotated[
        list[str] | None,
        wanted("--expect", metavar="KEY=VALUE", help="driver=580, model=2330, ...: else it fails. Repeatable."),
    ] = None
    site_checks: Annotated[
        Path | None, wanted("--site-checks", metavar="DIR", help="Checks of your own: YAML files and programs.")
    ] = None


_active = partial(option, heading="Active tests")


@dataclass(frozen=True)
class ActiveOptions:
    """Tests that do something on a host: none runs that is not typed."""

    smoke: Annotated[bool, _active("--smoke", help="Start a container with the GPU by every engine.")] = False
    survive_reload: Annotated[bool, _active("--survive-reload", help="The same, and reload systemd while it runs.")] = (
        False
    )
    cuda: Annotated[bool, _active("--cuda", help="Let every GPU add two vectors and check its memory.")] = False
    dcgm: Annotated[bool, _active("--dcgm", help="Run dcgmi diag, where it is installed.")] = False
    dcgm_level: Annotated[
        str | None, _active("--dcgm-level", metavar="1|2|3|4", help="Of dcgmi diag (default 1, the shortest).")
    ] = None
    allow_gpu_in_use: Annotated[
        bool, _active("--allow-gpu-in-use", help="Run these tests while programs use the GPUs.")
    ] = False


@dataclass(frozen=True)
class RuleOptions:
    """Which checks a node is held to."""

    only: Annotated[
        list[str] | None, _checks("--only", metavar="IDS", help="These checks or groups: drv,health.ecc-*. Repeatable.")
    ] = None
    skip: Annotated[list[str] | None, _checks("--skip", metavar="IDS", help="Not these. Repeatable.")] = None
    profile: Annotated[
        str | None,
        _checks("--profile", metavar="auto|NAME", help="docker, kubernetes, hgx, image or workstation."),
    ] = None
    against: Annotated[
        Path | None, _checks("--against", metavar="FILE", help="Only what differs from this snapshot, or lock.")
    ] = None


def _format(*names: str) -> Option:
    """--format with what its verb has: cli/results.py knows that too late for --help, and refuses what is not there."""
    return _output("--format", metavar="|".join(names), help="Of the result (default text).")


@dataclass(frozen=True)
class ResultOptions:
    """Where the result goes and in which format."""

    format: Annotated[str | None, _format("text", "json", "jsonl")] = None
    json: Annotated[bool, _output("--json", help="The same as --format json.")] = False
    output: Annotated[Path | None, _output("--output", metavar="FILE", help="The result goes there.")] = None


@dataclass(frozen=True)
class FileOptions:
    """Where a result goes that has one format: a file for another program."""

    output: Annotated[Path | None, _output("--output", metavar="FILE", help="The result goes there.")] = None


@dataclass(frozen=True)
class QuietOptions(ResultOptions):
    """The same for a verb that prints more than its result."""

    quiet: Annotated[bool, _output("-q", "--quiet", help="The result only.")] = False


@dataclass(frozen=True)
class OutputOptions(QuietOptions):
    """The same for a verb whose text can have more detail."""

    verbose: Annotated[int, _output("-v", "--verbose", count=True, help="More detail.")] = 0


@dataclass(frozen=True)
class CheckResultOptions(OutputOptions):
    """The same with the formats of a check."""

    format: Annotated[str | None, _format("text", "json", "jsonl", "junit", "prometheus", "nvsentinel", "html")] = None


@dataclass(frozen=True)
class LockResultOptions(QuietOptions):
    """A lock is one document: it has no lines."""

    format: Annotated[str | None, _format("text", "json")] = None


@dataclass(frozen=True)
class RunResultOptions(ResultOptions):
    """A run is an inventory as well."""

    format: Annotated[str | None, _format("text", "json", "jsonl", "ansible")] = None


def typed(group: Any) -> list[str]:
    """The flags of a group that were typed: ["--ssh"]."""
    return [f"--{f.name.replace('_', '-')}" for f in fields(group) if getattr(group, f.name) != f.default]
