"""What a person wants, parsed once from what they typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import Literal, get_args

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.masking import masked
from gpunode.model.driver import ModuleFlavour
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.values import dataclass


@dataclass(frozen=True)
class DriverRequest:
    """auto | none | a branch (580) | an exact version (580.178.04). At most one of branch and exact is set."""

    kind: Literal["auto", "none", "branch", "exact"]
    branch: int | None = None
    exact: str | None = None

    @classmethod
    def parse(cls, text: str) -> DriverRequest:
        """Raises UsageError naming the four forms."""
        word = text.strip().lower()
        if word == "auto":
            return cls("auto")
        if word == "none":
            return cls("none")
        if re.fullmatch(r"[0-9]{3}", word):
            return cls("branch", branch=int(word))
        if re.fullmatch(r"[0-9]{3}(\.[0-9]{2,3}){1,2}", word):
            return cls("exact", branch=int(word[:3]), exact=word)
        raise UsageError(
            f"--driver {text!r} is not a driver",
            evidence=meant(text, ("auto", "none"))
            + "the forms are: auto, none, a branch such as 580, a version such as 580.178.04",
            remedy=Remedy(
                RepairAction.NONE,
                "choose one of the four forms; ",
                gpunode("catalog branches", ssh=False),
                " lists the branches",
            ),
        )

    def __str__(self) -> str:
        return self.exact or (str(self.branch) if self.branch else self.kind)


class Flavour(str, Enum):
    AUTO = "auto"
    OPEN = "open"
    PROPRIETARY = "proprietary"


class DriverSource(str, Enum):
    AUTO = "auto"
    CUDA = "cuda"  # NVIDIA's CUDA repository
    DISTRO = "distro"  # the distribution's own archive
    LOCAL = "local"


class RebootPolicy(str, Enum):
    NEVER = "never"  # the plan ends with the remedy
    IF_NEEDED = "if-needed"


# Seen with dockerd 20.10, 26 and 28, containerd 1.6, 1.7 and 2.1, and podman 5.4, which take other characters too.
HANDLER_NAME, HANDLER_FORMS = r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, dots, hyphens and underscores"
TOOLKIT = "nvidia-container-runtime"  # not an engine, but a file of its own that people configure the same way
PARTS = ("driver", "toolkit", "runtime", "kubernetes")


@dataclass(frozen=True)
class RuntimeSpec:
    """How one engine shall run: which handler is added and whether it becomes the default."""

    default: bool = True  # nvidia becomes the default runtime
    cdi: bool = False  # CDI enabled in the engine
    handler: str = "nvidia"
    path: str | None = None  # of its program, where one was named: it replaces the path that an entry has
    # containerd: the file that is added beside its config.toml. None: what suits the daemon's version; "none": nothing
    # is added, the file that takes precedence is edited; else an absolute path.
    drop_in: str | None = None

    @property
    def program(self) -> str:
        """What an entry without a program of its own gets."""
        return self.path or "/usr/bin/nvidia-container-runtime"


KubernetesMode = Literal["device-plugin", "dra"]
KUBERNETES_MODES: tuple[KubernetesMode, ...] = get_args(KubernetesMode)


@dataclass(frozen=True)
class KubernetesSpec:
    """How the cluster gives out this node's GPUs."""

    mode: KubernetesMode | None = None  # None: nobody said


@dataclass(frozen=True)
class ToolkitConfig:
    """What nvidia-container-runtime's own config.toml shall say; None leaves the file's word."""

    mode: str | None = None  # one of TOOLKIT_MODES
    no_cgroups: bool | None = None  # true for engines that run without root, and for no other
    accept_envvar_when_unprivileged: bool | None = None  # false: NVIDIA_VISIBLE_DEVICES gives GPUs to privileged only
    accept_volume_mounts: bool | None = None  # GPUs are asked for by mounts below /var/run/nvidia-container-devices
    runtimes: tuple[str, ...] | None = None  # low-level runtimes in the order they are looked for
    log_level: str | None = None
    runtime_debug: str | None = None  # absolute path of the runtime's log; "": none
    cli_debug: str | None = None  # absolute path of nvidia-container-cli's log; "": none


TOOLKIT_MODES = ("auto", "legacy", "cdi", "csv", "jit-cdi")
TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
# Names in it that checks and plans ask for.
TOOLKIT_MODE = "nvidia-container-runtime.mode"
TOOLKIT_NO_CGROUPS = "nvidia-container-cli.no-cgroups"
TOOLKIT_ROOT = "nvidia-container-cli.root"
TOOLKIT_LDCONFIG = "nvidia-container-cli.ldconfig"
# Where each field stands in config.toml, as `nvidia-ctk config --set` names it.
TOOLKIT_SETTINGS: dict[str, tuple[str, ...]] = {
    "mode": ("nvidia-container-runtime", "mode"),
    "no_cgroups": ("nvidia-container-cli", "no-cgroups"),
    "accept_envvar_when_unprivileged": ("accept-nvidia-visible-devices-envvar-when-unprivileged",),
    "accept_volume_mounts": ("accept-nvidia-visible-devices-as-volume-mounts",),
    "runtimes": ("nvidia-container-runtime", "runtimes"),
    "log_level": ("nvidia-container-runtime", "log-level"),
    "runtime_debug": ("nvidia-container-runtime", "debug"),
    "cli_debug": ("nvidia-container-cli", "debug"),
}


def toolkit_field(name: str) -> str:
    """The field for "nvidia-container-runtime.mode", or for "mode" alone where one setting is called so.

    Raises UsageError that lists the names.
    """
    dotted = {".".join(keys): field for field, keys in TOOLKIT_SETTINGS.items()}
    short = [field for field, keys in TOOLKIT_SETTINGS.items() if keys[-1] == name]
    if name in dotted or len(short) == 1:
        return dotted.get(name) or short[0]
    both = [".".join(TOOLKIT_SETTINGS[field]) for field in short]
    names = [*dotted, *(keys[-1] for keys in TOOLKIT_SETTINGS.values())]
    raise UsageError(
        f"--ctk-set {name!r} is " + (f"both {' and '.join(both)}" if both else "not a setting gpunode makes"),
        evidence=f"{'' if both else meant(name, names)}the settings are {', '.join(sorted(dotted))}",
        remedy="name one of them; nvidia-ctk config --set makes the others",
    )


@dataclass(frozen=True)
class ToolkitRequest:
    """auto | none | an exact version (1.20.0)."""

    kind: Literal["auto", "none", "exact"] = "auto"
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> ToolkitRequest:
        word = text.strip().lower()
        if word == "auto":
            return cls("auto")
        if word == "none":
            return cls("none")
        if re.fullmatch(r"[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}", word):
            return cls("exact", word)
        raise UsageError(
            f"--toolkit {text!r} is not a toolkit version",
            evidence=f"{meant(text, ('auto', 'none'))}the forms are: auto, none, a version such as 1.20.0",
            remedy="choose one of the three forms",
        )


_PROFILE = regex(r"[0-9]g\.[0-9]{1,5}gb(\+me|\+gfx|\+me\.all|-me)?")  # as nvidia-smi mig -lgip names them


@dataclass(frozen=True)
class MigLayout:
    """How GPUs of one kind are cut: "all=1g.10gb:7", "2330=3g.40gb:2,1g.10gb:1", "h100 pcie=off"."""

    gpus: str  # "all", a PCI device id, or a GPU's name in lower case
    profiles: tuple[tuple[str, int], ...] = ()  # (profile, how many); (): MIG off

    @classmethod
    def parse(cls, text: str) -> MigLayout:
        """Raises UsageError showing the form."""
        gpus, equals, shape = text.strip().lower().partition("=")
        parts = [part.strip().partition(":") for part in shape.split(",")]
        right = all(_PROFILE.fullmatch(name) and re.fullmatch(r"[1-9]?", count) for name, _, count in parts)
        if not equals or not gpus.strip() or not (shape.strip() == "off" or right):
            raise UsageError(
                f"--mig {text!r} is not a layout",
                evidence="the form is GPUS=PROFILE:COUNT,... or GPUS=off; GPUS is all, a PCI id, or a GPU's name",
                remedy="for example --mig all=1g.10gb:7, or --mig 2330=3g.40gb:2",
            )
        if shape.strip() == "off":
            return cls(gpus.strip())
        return cls(gpus.strip(), tuple((name, int(count or 1)) for name, _, count in parts))

    def __str__(self) -> str:
        return f"{self.gpus}={','.join(f'{n}:{c}' for n, c in self.profiles) or 'off'}"


def parse_mig(text: str) -> tuple[MigLayout, ...]:
    """Layouts joined by commas; a word without "=" belongs to the layout before it. Raises UsageError, for two layouts
    of the same GPUS too: layout_named has one for each.
    """
    layouts: list[str] = []
    for word in text.split(","):
        if "=" in word or not layouts:
            layouts.append(word)
        else:
            layouts[-1] += f",{word}"
    parsed = tuple(MigLayout.parse(layout) for layout in layouts)
    for place, layout in enumerate(parsed):
        if any(layout.gpus == other.gpus for other in parsed[:place]):
            raise UsageError(
                f"--mig has two layouts for {layout.gpus[:80]!r}",
                evidence="GPUs have one layout, and the other would be ignored",
                remedy="leave one of them out, or join their profiles with a comma: all=3g.40gb:1,1g.10gb:1",
            )
    return parsed


def layout_named(layouts: Iterable[MigLayout], *names: str) -> MigLayout | None:
    """The layout for the first of these names that one is given for: of a PCI id, a GPU's name, "all"."""
    by_name = {layout.gpus: layout for layout in reversed(tuple(layouts))}
    return next((by_name[name] for name in names if name in by_name), None)


@dataclass(frozen=True)
class Expectation:
    """What a check may hold the host to; None: nothing is expected. Their forms are in model/expectation.py."""

    gpus: int | None = None  # how many GPUs must be there
    model: tuple[str, ...] | None = None  # names or PCI device ids; each is there, and no other
    driver: str | None = None  # "580" or "580.178.04"
    flavour: ModuleFlavour | None = None
    cuda: str | None = None  # that the driver runs: "13.0", "12.8+"
    toolkit: str | None = None
    engines: tuple[str, ...] | None = None  # that run: "docker", "docker=28.5.2"
    handler: str | None = None  # that every engine has
    default_runtime: tuple[str, ...] | None = None  # "nvidia" for every engine, "docker=nvidia"
    mig: tuple[MigLayout, ...] | None = None
    cdi: tuple[str, ...] | None = None  # whether engines have CDI enabled: "on" for every engine, "docker=off"
    packages: tuple[str, ...] | None = None  # "nvidia-open=595.91.07-1": each is installed in this version
    vbios: tuple[str, ...] | None = None  # of the GPUs, by PCI device id: "2330=96.00.A5.00.03"
    nics: tuple[str, ...] | None = None  # RDMA ports: "8", or active ones by their rate in Gb/s, "8x400"
    nvswitches: int | None = None
    numa: tuple[str, ...] | None = None  # GPUs at each NUMA node: "0=4"
    os: str | None = None  # "ubuntu 24.04"
    kernel: str | None = None


@dataclass(frozen=True)
class Spec:
    """Everything that is wanted of a host. Whole, immutable, and the same for every host of a fleet."""

    driver: DriverRequest = DriverRequest("auto")
    flavour: Flavour = Flavour.AUTO
    driver_source: DriverSource = DriverSource.AUTO
    toolkit: ToolkitRequest = ToolkitRequest()
    toolkit_channel: Literal["stable", "experimental"] = "stable"
    toolkit_config: ToolkitConfig = ToolkitConfig()
    runtimes: tuple[str, ...] | None = None  # None: every engine found (auto); (): none
    runtime: RuntimeSpec = RuntimeSpec()
    kubernetes: KubernetesSpec = KubernetesSpec()
    only: tuple[str, ...] = PARTS
    reboot: RebootPolicy = RebootPolicy.NEVER
    hold: bool = True
    cuda: str | None = None  # CUDA toolkit beside the driver, "13.0"; None: none is managed
    mirror: str | None = None  # https or file URL that stands for NVIDIA's repositories, or holds a local one
    trust_keys: tuple[str, ...] = field(default=())  # full fingerprints, 40 upper-case hex digits
    proxy: str | None = None  # for the package manager; may carry a password, so never printed
    allow_no_gpu: bool = False
    allow_container_restart: bool = False
    allow_gpu_in_use: bool = False  # a driver may be replaced below processes that use it
    mig: tuple[MigLayout, ...] | None = None  # None: leave the GPUs as they are
    expect: Expectation = Expectation()
    site_checks: str | None = None  # absolute path of a directory with the site's own checks


def parse_cuda(text: str) -> str | None:
    """'none' -> None, '13.0' -> '13.0'; raises UsageError for anything else."""
    word = text.strip().lower()
    if word == "none":
        return None
    if re.fullmatch(r"[0-9]{2}\.[0-9]", word):
        return word
    raise UsageError(
        f"--cuda {text!r} is not a CUDA toolkit",
        evidence="the forms are: none, a version with its minor number such as 13.0",
        remedy=Remedy(
            RepairAction.NONE,
            "choose one of the two forms; ",
            gpunode("catalog cuda", ssh=False),
            " lists the versions",
        ),
    )


def parse_mirror(text: str) -> str:
    """An https or file URL; '/srv/nvidia' -> 'file:///srv/nvidia'. Raises UsageError for anything else."""
    word = text.strip()
    url = f"file://{word}" if word.startswith("/") else word
    if re.fullmatch(r"(https://[^\s/?#@]+|file:///[^\s/?#]+)(/[^\s?#]*)?", url):
        return url
    hidden = masked(text)  # a password in it stays out of the message
    raise UsageError(
        f"--mirror {hidden!r} is not of the right form",
        evidence="it is an https:// URL, or a directory on the host: /srv/nvidia or file:///srv/nvidia",
    )


def parse_fingerprint(text: str) -> str:
    """40 upper-case hex digits; spaces and case are forgiven, short key ids are not."""
    digits = re.sub(r"[\s:]", "", text).upper().removeprefix("0X")
    if re.fullmatch(r"[0-9A-F]{40}", digits):
        return digits
    raise UsageError(
        f"--trust-key {text!r} is not a full fingerprint",
        evidence=f"it has {len(digits)} characters; a full one has 40 hex digits, and short key ids can be forged",
        remedy="gpg --show-keys --with-fingerprint FILE prints the full one",
    )


def parse_runtimes(text: str, kinds: Mapping[str, str | None]) -> tuple[str, ...] | None:
    """'auto' -> None, 'none' -> (), 'docker,containerd' -> both; raises UsageError for anything else.

    `kinds`: the engines that gpunode configures, each with how a label of its is told (None: it has none).
    """
    word = text.strip().lower()
    if word == "auto":
        return None
    if word == "none":
        return ()
    # A label may follow: "docker@Ann" is the one that the user Ann runs without root.
    names = tuple(_labelled(n.strip()) for n in text.split(",") if n.strip())
    unknown = [n for n in names if not _is_runtime(n, kinds)]
    if unknown or not names:
        proposed = meant(unknown[0].partition("@")[0], (*kinds, "auto", "none")) if unknown else ""
        raise UsageError(
            f"--runtime {text!r}: {', '.join(unknown) or 'nothing'} is not a container runtime gpunode configures",
            evidence=", and ".join((f"{proposed}it configures {', '.join(kinds)}", *filter(None, kinds.values()))),
            remedy="name one or more of them with commas, or auto, or none",
        )
    return names


def _labelled(word: str) -> str:
    kind, at, label = word.partition("@")
    return f"{kind.lower()}{at}{label}"


def _is_runtime(name: str, kinds: Mapping[str, str | None]) -> bool:
    kind, at, label = name.partition("@")
    has_labels = kinds.get(kind) is not None
    return kind in kinds and (not at or (has_labels and bool(re.fullmatch(r"[\w.@$+-]+", label))))


def parse_only(text: str) -> tuple[str, ...]:
    """'driver,toolkit' -> parts in the order gpunode works; raises UsageError for anything else."""
    names = {n.strip().lower() for n in text.split(",") if n.strip()}
    unknown = sorted(names - set(PARTS))
    if unknown or not names:
        raise UsageError(
            f"--only {text!r}: {', '.join(unknown) or 'nothing'} is not a part of setup",
            evidence=f"{meant(unknown[0], PARTS) if unknown else ''}the parts are {', '.join(PARTS)}",
            remedy="name one or more of them with commas",
        )
    return tuple(p for p in PARTS if p in names)
