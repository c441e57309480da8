"""The options that verbs share, as groups: a verb takes `hosts: HostOptions` and typer sees every flag of it.

A verb takes the smallest group whose every flag it reads: what it would ignore is then no option of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from gpunode.cli.typer_classes import GroupedCommand


def _option(*names: str, heading: str, help: str, metavar: str | None = None, count: bool = False) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, count=count, rich_help_panel=heading)


_host = partial(_option, heading="Hosts")
_wanted = partial(_option, heading="What is wanted")
_output = partial(_option, heading="Output")


@dataclass(frozen=True)
class LiveOptions:
    """Which host, where a recording has nothing to offer."""

    ssh: Annotated[
        list[str] | None,
        _host("--ssh", metavar="HOSTS", help="Hosts over SSH: h1,user@h2:22,gpu[01-64]. Repeatable."),
    ] = None
    identity: Annotated[
        list[Path] | None, _host("--identity", metavar="FILE", help="Private key for SSH. Repeatable.")
    ] = None
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


@dataclass(frozen=True)
class HostOptions(LiveOptions):
    """Which host, or a recording of one."""

    recorded: Annotated[
        Path | None, _host("--recorded", metavar="PATH", help="A recorded host, as `detect --record` saved it.")
    ] = None


# A flag that was not typed is None or False and keeps the value of the spec.
_Spec = Annotated[Path | None, _wanted("--spec", metavar="FILE", help="YAML; flags take precedence.")]
_Toolkit = Annotated[str | None, _wanted("--toolkit", metavar="auto|none|VERSION", help="NVIDIA container toolkit.")]
_CtkSet = Annotated[
    list[str] | None,
    _wanted("--ctk-set", metavar="KEY=VALUE", help="A setting of the toolkit's own config.toml. Repeatable."),
]
_Runtime = Annotated[
    str | None,
    _wanted("--runtime", metavar="auto|none|NAMES", help="docker,containerd,k3s,...: engines to configure."),
]
_NoDefault = Annotated[
    bool, _wanted("--no-default", help="Leave the default runtime: nvidia by RuntimeClass or CDI only.")
]
_Cdi = Annotated[bool, _wanted("--cdi", help="Enable CDI in the engines.")]


@dataclass(frozen=True)
class SpecOptions:
    """What setup makes of a host; a flag that was not typed is None and leaves the spec's value."""

    spec: _Spec = None
    driver: Annotated[
        str | None,
        _wanted("--driver", metavar="auto|none|BRANCH|VERSION", help="Driver: 580, or 580.178.04; none removes it."),
    ] = None
    flavour: Annotated[
        str | None,
        _wanted("--flavour", "--flavor", metavar="auto|open|proprietary", help="Kernel module type of the driver."),
    ] = None
    driver_source: Annotated[
        str | None, _wanted("--driver-source", metavar="auto|distro|cuda|local", help="Where the driver comes from.")
    ] = None
    toolkit: _Toolkit = None
    toolkit_channel: Annotated[
        str | None, _wanted("--toolkit-channel", metavar="stable|experimental", help="Its repository.")
    ] = None
    ctk_set: _CtkSet = None
    runtime: _Runtime = None
    no_default: _NoDefault = False
    cdi: _Cdi = False
    only: Annotated[
        str | None, _wanted("--only", metavar="PARTS", help="driver,toolkit,runtime,kubernetes: these parts only.")
    ] = None
    reboot: Annotated[
        str | None, _wanted("--reboot", metavar="never|if-needed", help="Reboot where a step needs it (default never).")
    ] = None
    hold: Annotated[bool | None, _wanted("--hold/--no-hold", help="Pin the packages' versions (default).")] = None
    cuda: Annotated[
        str | None, _wanted("--cuda", metavar="none|VERSION", help="CUDA toolkit in addition to the driver: 13.0.")
    ] = None
    mirror: Annotated[
        str | None,
        _wanted("--mirror", metavar="URL|DIRECTORY", help="A mirror of NVIDIA's repositories, or a local one."),
    ] = None
    trust_key: Annotated[
        list[str] | None,
        _wanted("--trust-key", metavar="FINGERPRINT", help="One more repository key, 40 hex digits. Repeatable."),
    ] = None
    proxy: Annotated[str | None, _wanted("--proxy", metavar="URL", help="For the package manager.")] = None
    allow_no_gpu: Annotated[bool, _wanted("--allow-no-gpu", help="No GPU required: building an image.")] = False
    allow_container_restart: Annotated[
        bool,
        _wanted("--allow-container-restart", help="Restart dockerd where it needs it, though its containers stop."),
    ] = False
    mig: Annotated[
        list[str] | None,
        _wanted("--mig", metavar="GPUS=PROFILES", help="all=1g.10gb:7, 2330=3g.40gb:2, all=off. Repeatable."),
    ] = None
    allow_gpu_in_use: Annotated[
        bool, _wanted("--allow-gpu-in-use", help="The driver may be replaced while programs use the GPUs.")
    ] = False


@dataclass(frozen=True)
class CheckOptions:
    """What a check holds a host to."""

    spec: _Spec = None
    toolkit: _Toolkit = None
    ctk_set: _CtkSet = None
    runtime: _Runtime = None
    no_default: _NoDefault = False
    cdi: _Cdi = False
    expect_gpus: Annotated[
        str | None, _wanted("--expect-gpus", metavar="N", help="A node with fewer GPUs fails its check.")
    ] = None


@dataclass(frozen=True)
class ResultOptions:
    """Where the result goes and in which format."""

    format: Annotated[
        str | None, _output("--format", metavar="text|json|jsonl", help="Of the result (default text).")
    ] = None
    json: Annotated[bool, _output("--json", help="The same as --format json.")] = False
    output: Annotated[Path | None, _output("--output", metavar="FILE", help="The result goes there.")] = None


@dataclass(frozen=True)
class QuietOptions(ResultOptions):
    """The same for a verb that prints more than its result."""

    quiet: Annotated[bool, _output("-q", "--quiet", help="The result only.")] = False


@dataclass(frozen=True)
class OutputOptions(QuietOptions):
    """The same for a verb whose text can have more detail."""

    verbose: Annotated[int, _output("-v", "--verbose", count=True, help="More detail.")] = 0


GROUPS = (LiveOptions, HostOptions, SpecOptions, CheckOptions, ResultOptions, QuietOptions, OutputOptions)


def typed(group: Any) -> list[str]:
    """The flags of a group that were typed: ["--ssh"]."""
    return [f"--{f.name.replace('_', '-')}" for f in fields(group) if getattr(group, f.name) != f.default]


def verb(app: typer.Typer, name: str, *, help: str, examples: tuple[str, ...]) -> Callable[[Callable[..., int]], None]:
    """Register a function as a verb; its parameters that are option groups are spread into their flags."""

    def register(function: Callable[..., int]) -> None:
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
        app.command(name, cls=GroupedCommand, help=help, epilog=epilog)(spread(function))

    return register


def spread(function: Callable[..., int]) -> Callable[..., int]:
    """`function` with each option group in its signature replaced by the group's fields."""
    hints = {name: _with_metadata(hint) for name, hint in get_type_hints(function, include_extras=True).items()}
    groups = {name: kind for name, kind in hints.items() if kind in GROUPS}
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()]
    parameters = [
        p.replace(kind=p.KEYWORD_ONLY) for p in own if p.name not in groups and p.kind is not p.POSITIONAL_ONLY
    ]
    for kind in groups.values():
        parameters += _flags(kind)

    @wraps(function)
    def spread_out(**values: Any) -> int:
        built = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        return function(**values, **built)

    spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    spread_out.__annotations__ = {p.name: p.annotation for p in parameters}
    return spread_out


def _with_metadata(hint: Any) -> Any:
    """Python 3.10 puts an Optional around what has None as its default, and typer looks no deeper (bpo-46195)."""
    return next((inner for inner in get_args(hint) if hasattr(inner, "__metadata__")), hint)


def _flags(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(kind)
    ]
