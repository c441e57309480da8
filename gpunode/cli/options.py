"""The options that verbs share, as groups: a verb takes `hosts: HostOptions` and typer sees every flag of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def _option(*names: str, help: str, metavar: str | None = None, panel: str = "") -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


@dataclass(frozen=True)
class HostOptions:
    """Which host."""

    ssh: Annotated[
        list[str] | None,
        _option("--ssh", metavar="HOSTS", help="Hosts over SSH: h1,user@h2:22,gpu[01-64]. Repeatable."),
    ] = None
    recorded: Annotated[
        Path | None, _option("--recorded", metavar="PATH", help="A recorded host, as `detect --record` saved it.")
    ] = None
    identity: Annotated[
        list[Path] | None, _option("--identity", metavar="FILE", help="Private key for SSH. Repeatable.")
    ] = None
    user: Annotated[str | None, _option("--user", metavar="NAME", help="User for SSH.")] = None
    port: Annotated[str | None, _option("--port", metavar="N", help="Port for SSH.")] = None
    jump: Annotated[str | None, _option("--jump", metavar="HOST", help="Go through this host, or h1,h2 in order.")] = (
        None
    )
    ask_become_pass: Annotated[bool, _option("--ask-become-pass", help="Ask once for the password of sudo.")] = False
    become_pass_file: Annotated[
        Path | None,
        _option("--become-pass-file", metavar="FILE", help="The password of sudo is this file's first line."),
    ] = None
    host_key: Annotated[
        str,
        _option("--host-key", metavar="strict|accept-new", help="Unknown host keys: refuse (default), or remember."),
    ] = "strict"
    connect_timeout: Annotated[
        str | None, _option("--connect-timeout", metavar="SECONDS", help="Limit for reaching a host (default 10).")
    ] = None
    forks: Annotated[str | None, _option("--forks", metavar="N", help="Hosts at once (default 50).")] = None


@dataclass(frozen=True)
class WantedOptions:
    """What is wanted; a flag that was not typed is None and leaves the spec's value."""

    spec: Annotated[Path | None, _option("--spec", metavar="FILE", help="YAML; flags win over it.")] = None
    driver: Annotated[
        str | None,
        _option("--driver", metavar="auto|none|BRANCH|VERSION", help="Driver: 580, or 580.178.04; none removes it."),
    ] = None
    flavour: Annotated[str | None, _option("--flavour", metavar="auto|open|proprietary", help="Kernel modules.")] = None
    driver_source: Annotated[
        str | None, _option("--driver-source", metavar="auto|distro|cuda|local", help="Where the driver comes from.")
    ] = None
    toolkit: Annotated[
        str | None, _option("--toolkit", metavar="auto|none|VERSION", help="NVIDIA container toolkit.")
    ] = None
    toolkit_channel: Annotated[
        str | None, _option("--toolkit-channel", metavar="stable|experimental", help="Its repository.")
    ] = None
    ctk_set: Annotated[
        list[str] | None,
        _option("--ctk-set", metavar="KEY=VALUE", help="A setting of the toolkit's own config.toml. Repeatable."),
    ] = None
    runtime: Annotated[
        str | None,
        _option("--runtime", metavar="auto|none|NAMES", help="docker,containerd,k3s,...: engines to configure."),
    ] = None
    no_default: Annotated[
        bool, _option("--no-default", help="Leave the default runtime: nvidia by RuntimeClass or CDI only.")
    ] = False
    cdi: Annotated[bool, _option("--cdi", help="Enable CDI in the engines.")] = False
    only: Annotated[
        str | None, _option("--only", metavar="PARTS", help="driver,toolkit,runtime,kubernetes: these parts only.")
    ] = None
    reboot: Annotated[
        str | None, _option("--reboot", metavar="never|if-needed", help="Reboot where a step needs it (default never).")
    ] = None
    hold: Annotated[
        bool | None, typer.Option("--hold/--no-hold", help="Keep the packages' versions (default).", show_default=False)
    ] = None
    cuda: Annotated[
        str | None, _option("--cuda", metavar="none|VERSION", help="CUDA toolkit beside the driver: 13.0.")
    ] = None
    mirror: Annotated[
        str | None, _option("--mirror", metavar="URL|FOLDER", help="A mirror of NVIDIA's repositories, or a local one.")
    ] = None
    trust_key: Annotated[
        list[str] | None,
        _option("--trust-key", metavar="FINGERPRINT", help="One more repository key, 40 hex digits. Repeatable."),
    ] = None
    proxy: Annotated[str | None, _option("--proxy", metavar="URL", help="For the package manager.")] = None
    allow_no_gpu: Annotated[bool, _option("--allow-no-gpu", help="No card is fine: an image is made.")] = False
    allow_container_restart: Annotated[
        bool, _option("--allow-container-restart", help="Containers may be restarted where an engine needs it.")
    ] = False
    mig: Annotated[
        list[str] | None,
        _option("--mig", metavar="CARDS=PROFILES", help="all=1g.10gb:7, 2330=3g.40gb:2, all=off. Repeatable."),
    ] = None
    allow_gpu_in_use: Annotated[
        bool, _option("--allow-gpu-in-use", help="The driver may be replaced while programs use the cards.")
    ] = False
    expect_gpus: Annotated[
        str | None, _option("--expect-gpus", metavar="N", help="A node with fewer cards fails its check.")
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """How it is shown."""

    format: Annotated[str, _option("--format", metavar="text|json|jsonl", help="Of the result (default text).")] = (
        "text"
    )
    json: Annotated[bool, _option("--json", help="The same as --format json.")] = False
    output: Annotated[Path | None, _option("--output", metavar="FILE", help="The result goes there.")] = None
    quiet: Annotated[bool, _option("-q", "--quiet", help="The result only.")] = False
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Say more.", show_default=False)] = 0


GROUPS = (HostOptions, WantedOptions, OutputOptions)


def verb(app: typer.Typer, name: str, *, help: str, examples: tuple[str, ...]) -> Callable[[Callable[..., int]], None]:
    """Register a function as a verb; its parameters that are option groups are spread into their flags."""

    def register(function: Callable[..., int]) -> None:
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
        app.command(name, help=help, epilog=epilog)(spread(function))

    return register


def spread(function: Callable[..., int]) -> Callable[..., int]:
    """`function` with each option group in its signature replaced by the group's fields."""
    hints = get_type_hints(function, include_extras=True)
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
