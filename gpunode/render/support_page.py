"""docs/support.md, made from the catalog: `gpunode catalog support` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpunode.model.key_pins import key_name

if TYPE_CHECKING:
    from gpunode.catalog.distros import Distro, OtherKernel, PackageSource
    from gpunode.catalog.gpus import Architecture
    from gpunode.catalog.load import Branch, Catalog

GRADES = {"documented": "", "inferred": " (inferred)", "unverified": " (unverified)"}

HOST_KINDS = (
    (
        "image-based: RHEL image mode (bootc), Fedora CoreOS and Silverblue, RHCOS (inferred)",
        "`/run/ostree-booted`",
        "the engines; keeps the image's driver and toolkit",
        "driver and toolkit: the image's build, `rpm-ostree install`, or the GPU Operator",
    ),
    (
        "openSUSE MicroOS, SLE Micro (inferred)",
        "/usr mounted read-only, transactional-update",
        "the engines; keeps the image's driver and toolkit",
        "driver and toolkit: `transactional-update shell`",
    ),
    (
        "other hosts with a read-only /usr",
        "/usr mounted read-only",
        "the engines; keeps the image's driver and toolkit",
        "driver and toolkit: the image's build, or a writable /usr",
    ),
    (
        "WSL2 (inferred)",
        "`/dev/dxg` and `/usr/lib/wsl/lib`",
        "toolkit and engines",
        "driver: NVIDIA's driver for Windows",
    ),
    (
        "Jetson Orin and Thor (inferred)",
        "`/etc/nv_tegra_release`",
        "toolkit and engines",
        "driver: JetPack's board support package (L4T)",
    ),
    (
        "derivatives without a row above: Zorin OS, Nobara (unverified)",
        "`ID_LIKE` names a distribution of a row, and its package manager is theirs",
        "toolkit and engines (`--only toolkit,runtime`)",
        "driver: the derivative's own archive",
    ),
    (
        "guests with a vGPU: AWS g6f, Azure NVadsA10 v5, VMware, KVM (inferred)",
        'the PCI capability 0x09 signed "VF"; PCI ids; the driver\'s name for it ("A10-24Q")',
        "toolkit and engines",
        "driver: the cloud's GRID driver, or NVIDIA's vGPU guest driver",
    ),
    (
        "running containers: LXC, LXD, Incus, systemd or engines in docker (inferred)",
        "a PID namespace of its own, and an init whose manager says so, an engine, or GPU devices",
        "toolkit and engines",
        "driver: the machine around it",
    ),
    (
        "images that are being built: chroot, docker build, buildah, mkosi",
        "another root than process 1's, or a PID namespace of its own without an init",
        "with `--allow-no-gpu` all for the image's own kernels; starts, loads and restarts nothing",
        "first boot: loading the driver, CDI specifications",
    ),
    (
        "nodes of NVIDIA's GPU Operator",
        "`/run/nvidia/driver` with a root in it; `/run/nvidia/toolkit` and `/usr/local/nvidia/toolkit`",
        "the driver, where the operator has none (`driver.enabled=false`)",
        "the rest: the operator",
    ),
)


def support_text(known: Catalog) -> str:
    """The page in Markdown, with a newline at its end."""
    dates = sorted(
        {d.checked for d in known.distros}
        | {b.checked for b in known.branches}
        | {a.checked for a in known.architectures}
    )
    parts = [
        "# What gpunode supports",
        "Made from the catalog by `gpunode catalog support`; do not edit. Facts were checked "
        + (f"on {dates[0]}" if len(dates) == 1 else f"between {dates[0]} and {dates[-1]}")
        + ".\n*Inferred* rows follow from a named source; *unverified* ones were recalled and not looked up again;\n"
        "`gpunode catalog distros`, `branches` and `gpus` show the source of every row.",
        "## GPUs",
        _table(("architecture", "capability", "modules", "branches", "`--driver auto`"), _models(known)),
        "Mixed boxes get one driver for all GPUs; a GPU that runs open modules only and one that runs proprietary "
        "modules only cannot share a host.\nThe fabric manager is planned where NVSwitches are really "
        "seen: on the bus, or by the functions that manage them (HGX B200 and B300, with nvlsm). GB200 and GB300 trays "
        "get nvidia-imex.\nA GPU that is neither listed nor in a known block of ids is called unknown: a newer one is "
        "given open modules of the default branch, which is said to be a guess;\nfor an older one the branch must be "
        "named with `--driver`.",
        "## Driver branches",
        _table(("branch", "kind", "support", "CUDA", "modules", "newest seen"), map(_branch, reversed(known.branches))),
        "## Distributions",
        _table(
            ("distribution", "packages by", "NVIDIA's repository", "own archive", "Secure Boot", "key"),
            [_distro(distro, known) for distro in known.distros],
        ),
        "Where no driver is supported, `--only toolkit,runtime` sets up toolkit and engines; the refusal names a way.",
        "*Key*: the repository's signing key is pinned by its full fingerprint, or by its file's checksum where NVIDIA "
        "publishes that alone.\nWhere neither is published, `--trust-key FINGERPRINT` names it; a key is never trusted "
        "unseen.",
        "## Kernels",
        "The headers of a distribution's own kernels are installed for every kernel that may boot. "
        "These kernels have other names for them:",
        _table(("distribution", "uname -r contains", "headers", "compiler"), _kernels(known)),
        "## Hosts whose driver is not gpunode's",
        _table(("host", "known by", "gpunode does", "left to whom"), (*HOST_KINDS, *_systems(known))),
        "## CUDA toolkits (`--cuda`)",
        _table(("version", "driver branch", "no longer builds for"), _cuda(known)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _models(known: Catalog) -> list[tuple[str, ...]]:
    return [_architecture(a, known) for a in known.architectures]


def _architecture(a: Architecture, known: Catalog) -> tuple[str, ...]:
    modules = {"either": "open or proprietary"}.get(a.flavour, f"{a.flavour} only")
    last = str(a.last_branch) if a.last_branch else "now"
    if a.refused:
        auto = f"refused; `--driver {a.opt_in}` asks for its ended branch" if a.opt_in else "refused"
    else:
        default = known.default("legacy" if a.last_branch else "current")
        auto = f"{default.branch} {default.flavour}"
    capability = ", ".join(a.compute_capability) or "?"
    return f"{a.title}{GRADES[a.grade]}", capability, modules, f"{a.first_branch} to {last}", auto


def _branch(b: Branch) -> tuple[str, ...]:
    ended = {"supported": "until", "ended": "ended", "dead": "dead since"}[b.status]
    support = f"{ended} {b.end}" if b.end else {"supported": "supported, end unknown"}.get(b.status, b.status)
    modules = "open" if b.open_only else "open, proprietary" if b.open else "proprietary"
    return f"{b.number}{GRADES[b.grade]}", b.kind, support, b.cuda or "?", modules, b.latest or "?"


def _distro(d: Distro, known: Catalog) -> tuple[str, ...]:
    name = f"{d.name}{GRADES[d.grade]}"
    if d.refused:
        return name, d.manager, f"not supported: {d.refused}", "-", "-", "-"
    signed = [s for source in (d.cuda, d.archive) if source for s in source.sets if s.signed]
    boot = "signed modules" if signed else "a key is enrolled at the console"
    named = key_name(d.key_pins, d.key_file or "") if d.key_pins else "--trust-key"
    key = f"`{named}`" if d.cuda else "-"
    machines = f" ({', '.join(d.machines)})" if d.cuda and len(d.machines) == 1 else ""
    return name, d.manager, _offers(d.cuda, known) + machines, _offers(d.archive, known), boot, key


def _offers(source: PackageSource | None, known: Catalog) -> str:
    if source is None:
        return "-"
    if source.rolling:
        return "its newest"
    words = []
    for names in source.sets:
        provided = [b.number for b in known.branches if names.carries(b.number)]
        span = ", ".join(map(str, provided)) if names.branches or len(provided) < 3 else f"{provided[0]} and newer"
        flavours = " and ".join(f for f in ("open", "proprietary") if names.of(f))
        words.append(f"{span} {flavours}")
    return "; ".join(words)


def _kernels(known: Catalog) -> list[tuple[str, ...]]:
    return [
        (d.name, f"`{k.release}`", ", ".join(f"`{name}`" for name in k.headers), _compiler(k))
        for d in known.distros
        for k in d.kernels
    ]


def _compiler(kernel: OtherKernel) -> str:
    return "DKMS is told the gcc toolset that built it" if kernel.toolset else "the default"


def _cuda(known: Catalog) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for toolkit in known.cuda.toolkits:
        major = known.cuda.major(toolkit.version)
        assert major is not None
        dropped = ", ".join(name.capitalize() for name in major.drops)
        rows.append((f"{toolkit.version}{GRADES[toolkit.grade]}", f"{major.first_driver} and newer", dropped))
    return rows


def _systems(known: Catalog) -> Iterable[tuple[str, ...]]:
    for system in known.systems:
        yield (
            f"{system.name}{GRADES[system.grade]}",
            f"`ID={system.id}`",
            "nothing",
            f"driver and toolkit: {system.way}",
        )
