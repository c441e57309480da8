"""What holds a GPU's clocks down: heat, the power supply, a limit that is not its equals'.

Idle clocks and a software power cap are how a GPU works: neither is a finding. What slows a laptop's GPU down, its
battery and its fans, is that of its maker.
"""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.catalog.thresholds import threshold
from gpunode.checks.health.seen import READS, SMI, about, address, flagged, is_laptop, known, named, quoted, unlike
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import Remedy, RepairAction

COOLING = Remedy(RepairAction.REPLACE, "inspect its fans, the air flow and the temperature of the room")
SUPPLY = Remedy(
    RepairAction.REPLACE,
    "inspect the power supplies and their cables, and the power limit that the BMC sets",
)
HEAT, BRAKE = "hw_thermal_slowdown", "hw_power_brake_slowdown"


@check(
    "health.temp-gpu",
    Severity.WARNING,
    title="no GPU is so hot that it halves its clocks",
    reads=READS.format("gpu_temp, gpu_temp_tlimit and their limits"),
    remedy=COOLING,
    needs=SMI,
)
def temp_gpu(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is at the temperature at which it halves its clocks to protect itself. The limit is the GPU's own."""
    hot = flagged(host, _is_hot, "temperature with its limit")
    if not isinstance(hot, list):
        return hot
    seen = hot[0].health.temperatures
    margin = f"gpu_temp_tlimit {seen.margin} C, gpu_temp_slow_tlimit_threshold {seen.slowdown_margin} C"
    degrees = f"gpu_temp {seen.gpu} C, gpu_temp_slow_threshold {seen.slowdown} C"
    return Finding(
        f"{named(hot)} is so hot that it slows down",
        evidence=quoted(hot[0], degrees if None in (seen.margin, seen.slowdown_margin) else margin),
        remedy=COOLING,
        entities=about(hot),
    )


@check(
    "health.temp-memory",
    Severity.WARNING,
    title="the memory of every GPU is below its highest temperature",
    reads=READS.format("memory_temp and gpu_temp_max_mem_threshold"),
    remedy=COOLING,
    needs=SMI,
)
def temp_memory(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's memory is hotter than it may be. Newer drivers give no limit that could be compared with."""
    hot = flagged(host, _has_hot_memory, "temperature of the memory with its limit")
    if not isinstance(hot, list):
        return hot
    seen = hot[0].health.temperatures
    return Finding(
        f"the memory of {named(hot)} is hotter than it may be",
        evidence=quoted(hot[0], f"memory_temp {seen.memory} C, gpu_temp_max_mem_threshold {seen.memory_max} C"),
        remedy=COOLING,
        entities=about(hot),
    )


@check(
    "health.clock-hw-slowdown",
    Severity.WARNING,
    title="neither heat nor the power supply halves a GPU's clocks",
    reads=READS.format("clocks_event_reasons (clocks_throttle_reasons before 535)"),
    remedy=SUPPLY,
    needs=SMI,
)
def clock_hw_slowdown(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU runs at half its clocks or less: it is too hot, or the power supply has pulled the brake.

    hw_slowdown alone is none: nvidia-smi reports it at a change of clocks too.
    """
    slowed = flagged(host, lambda gpu: bool(_slowed_by(gpu)) if _reasons(gpu) else None, "reasons for its clocks")
    if not isinstance(slowed, list):
        return slowed
    untold = [gpu for gpu in slowed if not _is_hot(gpu) or BRAKE in _slowed_by(gpu)]
    if not untold:
        return NotApplicable("it is heat that slows it down (health.temp-gpu)")
    reasons = _slowed_by(untold[0])
    return Finding(
        f"{named(untold)} runs at half its clocks or less",
        evidence=quoted(untold[0], listing(f"{reason} Active" for reason in reasons)),
        remedy=SUPPLY if BRAKE in reasons else COOLING,
        entities=about(untold),
    )


@check(
    "health.clock-sw",
    Severity.WARNING,
    title="the driver lowers no GPU's clocks because of heat",
    reads=READS.format("sw_thermal_slowdown of clocks_event_reasons"),
    remedy=COOLING,
    needs=SMI,
)
def clock_sw(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU or its memory is above its highest operating temperature, and the driver lowers its clocks.

    Its power cap (sw_power_cap) is no fault: a GPU that has work to do runs at its power limit.
    """
    warm = flagged(host, lambda gpu: _reason(gpu, "sw_thermal_slowdown"), "software thermal slowdown")
    if not isinstance(warm, list):
        return warm
    untold = [gpu for gpu in warm if not _is_hot(gpu) and not _slowed_by(gpu)]
    if not untold:
        return NotApplicable("the hardware slows it down already (health.temp-gpu, health.clock-hw-slowdown)")
    return Finding(
        f"the driver lowers the clocks of {named(untold)} because of heat",
        evidence=quoted(untold[0], "sw_thermal_slowdown Active"),
        remedy=COOLING,
        entities=about(untold),
    )


@check(
    "health.clock-counters",
    Severity.WARNING,
    title="heat and the power supply have hardly slowed a GPU down since the driver was loaded",
    reads=READS.format("clocks_event_reasons_counters (575 and newer)"),
    remedy=COOLING,
    needs=SMI,
)
def clock_counters(host: HostFacts, context: Context) -> CheckOutcome:
    """Heat or the power supply have held a GPU at half its clocks for a minute or more since the driver was loaded."""
    held = flagged(host, _was_held, "time at lowered clocks")
    if not isinstance(held, list):
        return held
    untold = [gpu for gpu in held if not _is_hot(gpu) and not _slowed_by(gpu)]
    if not untold:
        return NotApplicable("it is slowed down now (health.temp-gpu, health.clock-hw-slowdown)")
    heat, brake = ((us or 0) // 1_000_000 for us in _held_us(untold[0]))
    return Finding(
        f"{named(untold)} has been at half its clocks or less since the driver was loaded",
        evidence=quoted(untold[0], f"{heat} s because of heat, {brake} s because of the power supply"),
        remedy=SUPPLY if brake > heat else COOLING,
        entities=about(untold),
    )


@check(
    "health.power-cap",
    Severity.WARNING,
    title="every GPU has the power limit that was asked for, and its equals have",
    reads=READS.format("gpu_power_readings (power_readings before 535)"),
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-smi -i its address -pl WATTS sets the limit"),
    needs=SMI,
)
def power_cap(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is held below the power limit that was set, or below its default when others of its model are not.

    A limit that all GPUs of a model share was chosen by somebody. A laptop's moves by itself.
    """
    limits = known(host, _power, "power limit")
    if isinstance(limits, NotApplicable):
        return limits
    held = [gpu for gpu, (limit, requested, _) in limits if requested is not None and limit < requested - 1]
    if held:
        power = held[0].health.power
        return Finding(
            f"{named(held)} is held below the power limit that was set",
            evidence=quoted(held[0], f"limit in force {power.limit} W, requested {power.requested} W"),
            remedy=SUPPLY,
            entities=about(held),
        )
    odd = unlike((gpu, round(limit - default)) for gpu, (limit, _, default) in limits)
    lowered = [gpu for gpu, (limit, _, default) in limits if limit < default - 1 and gpu.name in {o.name for o in odd}]
    if not lowered:
        return None
    power = lowered[0].health.power
    command = typed("nvidia-smi", "-i", address(lowered[0]), "-pl", f"{power.default:g}")
    return Finding(
        f"the power limit of {named(lowered)} was lowered, and that of other GPUs of the model was not",
        evidence=quoted(lowered[0], f"limit {power.limit} W, default {power.default} W"),
        remedy=Remedy(RepairAction.CONFIGURE, f"{command} sets its default; nothing keeps it over a reboot"),
        entities=about(lowered),
    )


@check(
    "health.app-clocks",
    Severity.WARNING,
    title="GPUs of a model have the same application clocks",
    reads=READS.format("applications_clocks (until 580)"),
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-smi -i its address -rac sets its default"),
    needs=SMI,
)
def app_clocks(host: HostFacts, context: Context) -> CheckOutcome:
    """The clocks of one GPU were set lower than those of its equals, which then wait for it."""
    clocks = known(host, lambda gpu: gpu.health.clocks.application_mhz, "application clocks")
    if isinstance(clocks, NotApplicable):
        return clocks
    names = {gpu.name for gpu in unlike(clocks)}
    low = [g for g, mhz in clocks if g.name in names and mhz < (g.health.clocks.application_default_mhz or 0)]
    if not low:
        return None
    seen = low[0].health.clocks
    return Finding(
        f"the application clocks of {named(low)} were lowered, and those of other GPUs of the model were not",
        evidence=quoted(low[0], f"{seen.application_mhz} MHz, default {seen.application_default_mhz} MHz"),
        remedy=Remedy(
            RepairAction.CONFIGURE, f"{typed('nvidia-smi', '-i', address(low[0]), '-rac')} sets its default clocks"
        ),
        entities=about(low),
    )


def _is_hot(gpu: SmiGpu) -> bool | None:
    """At the temperature of its slowdown: 28 C against 90 C, or a margin of 59 C against -2 C. None: no limit."""
    seen = gpu.health.temperatures
    if seen.slowdown_margin is not None and seen.margin is not None:
        return seen.margin <= seen.slowdown_margin
    if seen.gpu is not None and seen.slowdown is not None:
        return seen.gpu >= seen.slowdown
    return False if seen.margin is not None and seen.margin > 0 else None


def _has_hot_memory(gpu: SmiGpu) -> bool | None:
    seen = gpu.health.temperatures
    return None if seen.memory is None or seen.memory_max is None else seen.memory > seen.memory_max


def _reasons(gpu: SmiGpu) -> dict[str, bool]:
    """The two that halve the clocks, as far as nvidia-smi says of them; of a laptop's the heat alone."""
    names = (HEAT,) if is_laptop(gpu) else (HEAT, BRAKE)
    return {name: gpu.health.clocks.reasons[name] for name in names if name in gpu.health.clocks.reasons}


def _slowed_by(gpu: SmiGpu) -> list[str]:
    return [name for name, active in _reasons(gpu).items() if active]


def _reason(gpu: SmiGpu, name: str) -> bool | None:
    active = gpu.health.clocks.reasons.get(name)
    return False if active and is_laptop(gpu) else active


def _held_us(gpu: SmiGpu) -> tuple[int | None, int | None]:
    return gpu.health.clocks.hw_thermal_us, None if is_laptop(gpu) else gpu.health.clocks.hw_power_brake_us


def _was_held(gpu: SmiGpu) -> bool | None:
    times = [us for us in _held_us(gpu) if us is not None]
    return any(us >= threshold("hardware-slowdown") * 1_000_000 for us in times) if times else None


def _power(gpu: SmiGpu) -> tuple[float, float | None, float] | None:
    """(in force, requested, default); None of a laptop too."""
    power = gpu.health.power
    if power.limit is None or power.default is None or is_laptop(gpu):
        return None
    return power.limit, power.requested, power.default
