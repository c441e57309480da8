"""What GPUs did with work that they were given: a kernel through libcuda, DCGM's diagnosis. Each is asked for."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.drv.choices import excluded
from gpunode.checks.registry import Context, check
from gpunode.checks.smoke import asked
from gpunode.model import entities
from gpunode.model.active import CudaFacts, CudaGpu, DcgmResult
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

CUDA = asked("--cuda", lambda a: a.cuda)
DIAGNOSE = Remedy(RepairAction.REPLACE, "drain the node; NVIDIA's Field Diagnostic decides whether it is replaced")
XIDS = "journalctl -k -b | grep Xid shows what the driver says of it"
# CUresult (cuda.h): what is missing around a GPU that is well.
NOT_READY, MISMATCH, KERNEL_TOO_OLD = 802, 803, (209, 218, 222)
# cuDeviceGetCount counts no other than the first (NVIDIA's MIG user guide, "CUDA Device Enumeration").
ONE_INSTANCE = "with MIG, libcuda offers a process one instance: the others were not tested"
CONFIG = 5  # DCGM_ERROR_CONFIG of dcgm_errors.h: a setting of the host, and no fault of a GPU


def _cuda(host: HostFacts) -> CudaFacts:
    return (host.active.cuda if host.active else None) or CudaFacts(unknown="it was not run")


@check(
    "smoke.cuda",
    Severity.ERROR,
    title="every GPU runs a CUDA kernel, and computes right (--cuda)",
    reads="a vector addition through libcuda, by this host's python3",
    remedy=Remedy(RepairAction.SUPPORT, XIDS),
    needs=(CUDA, needs.gpu, needs.host_driver),
)
def cuda(host: HostFacts, context: Context) -> CheckOutcome:
    """A CUDA program does not run on a GPU, or computes wrong sums."""
    seen = _cuda(host)
    bad = [gpu for gpu in seen.gpus if gpu.failed or gpu.sums not in ("", "ok")]
    if bad:
        return _failed(bad)
    if seen.unknown:
        return NotApplicable(seen.unknown)
    if not any(gpu.sums for gpu in seen.gpus):
        return NotApplicable("libcuda has no device")
    if _divided(host):
        return NotApplicable(ONE_INSTANCE)
    return _left_out(host, seen) if _untested(host, seen) else None


def _divided(host: HostFacts) -> bool:
    return any(gpu.mig_mode == "Enabled" for gpu in (host.driver.smi.gpus if host.driver.smi else ()))


def _untested(host: HostFacts, seen: CudaFacts) -> list[str]:
    """GPUs of this driver that libcuda did not offer, without as many as an option of the module keeps from it."""
    tested = {gpu.address for gpu in seen.gpus}
    missing = [d.address for d in host.gpus if d.driver == "nvidia" and d.address not in tested]
    return missing if len(missing) > len(excluded(host)) else []


def _left_out(host: HostFacts, seen: CudaFacts) -> CheckOutcome:
    missing = _untested(host, seen)
    if not set(missing) & set(host.driver.gpus):
        return NotApplicable(f"{listing(missing)} was not tested: the driver does not have it (pci.count-vs-driver)")
    return Finding(
        f"CUDA does not see {listing(missing)}",
        evidence=f"bound to nvidia, and not among the {len(seen.gpus)} devices of libcuda: {listing(missing)}",
        remedy=Remedy(RepairAction.SUPPORT, XIDS),
        entities=entities.pci(*missing),
    )


def _failed(bad: list[CudaGpu]) -> CheckOutcome:
    first = bad[0]
    if all(gpu.code in KERNEL_TOO_OLD for gpu in bad):
        return NotApplicable(f"the driver does not compile gpunode's kernel for this GPU: {first.failed}")
    return Finding(
        f"a CUDA program does not run on {listing(gpu.address or 'any GPU' for gpu in bad)}"
        if first.failed
        else f"{listing(gpu.address for gpu in bad)} computes wrong sums",
        evidence=listing(
            (f"{gpu.address or 'libcuda'}: {gpu.failed or f'sums {gpu.sums}'}" for gpu in bad), between="; "
        ),
        remedy=_remedy(first),
        entities=entities.pci(*(gpu.address for gpu in bad if gpu.address)),
    )


def _remedy(gpu: CudaGpu) -> Remedy:
    if gpu.code == NOT_READY:
        unit = "nvidia-fabricmanager"
        return Remedy(
            RepairAction.RESTART_SERVICE,
            f"GPUs with NVSwitch wait for it: systemctl status {unit}; systemctl restart {unit}",
        )
    if gpu.code == MISMATCH:
        return Remedy(RepairAction.REBOOT, "reboot: the libraries are of another driver than the loaded module")
    if not gpu.failed:
        return DIAGNOSE
    return Remedy(RepairAction.SUPPORT, XIDS)


@check(
    "health.smoke-memtest",
    Severity.ERROR,
    title="what is written to a GPU's memory comes back (--cuda)",
    reads="three patterns in 64 MiB of each GPU's memory, through libcuda",
    remedy=DIAGNOSE,
    needs=(CUDA, needs.gpu, needs.host_driver),
)
def memtest(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU's memory gives back something else than was written, and no counter of errors has to tell of it."""
    seen = _cuda(host)
    if bad := [gpu for gpu in seen.gpus if gpu.memory_wrong]:
        first = bad[0]
        return Finding(
            f"the memory of {listing(gpu.address for gpu in bad)} does not keep what is written to it",
            evidence=f"{first.address}: {first.memory_wrong} of 3 patterns ({first.memory_bytes >> 20} MiB each) "
            "came back otherwise",
            remedy=DIAGNOSE,
            entities=entities.pci(*(gpu.address for gpu in bad)),
        )
    untested = [gpu.address or "libcuda" for gpu in seen.gpus if not gpu.memory_bytes]
    untested += _untested(host, seen) if seen.gpus and not seen.unknown else []
    if _divided(host) and not untested:
        return NotApplicable(ONE_INSTANCE)
    if seen.unknown or untested or not seen.gpus:
        return NotApplicable(seen.unknown or f"no memory of {listing(untested) or 'any GPU'} was tested (smoke.cuda)")
    return None


@check(
    "smoke.dcgm",
    Severity.ERROR,
    title="DCGM's diagnosis finds nothing (--dcgm)",
    reads="dcgmi diag -r 1 -j; --dcgm-level chooses another",
    remedy=Remedy(RepairAction.SUPPORT, "dcgmi diag shows it again; its log is /var/log/nvidia-dcgm/nvvs.log"),
    needs=(asked("--dcgm", lambda a: a.dcgm is not None), needs.gpu, needs.host_driver),
)
def dcgm(host: HostFacts, context: Context) -> CheckOutcome:
    """DCGM's own diagnosis fails on a GPU. What it calls a setting of the host is a warning."""
    seen = host.active.dcgm if host.active else None
    if seen is None or seen.unknown:
        return NotApplicable(seen.unknown if seen else "it was not run")
    failed = [one for one in seen.results if one.status == "fail"]
    warned = [one for one in seen.results if one.status.startswith("warn")]
    if not failed and not warned:
        passed = any(one.status == "pass" for one in seen.results)
        return None if passed else NotApplicable("every test of the diagnosis was skipped")
    grave = [one for one in failed if one.severities != {CONFIG}]
    shown = [*grave, *(one for one in failed if one not in grave), *warned]
    return Finding(
        f"DCGM's diagnosis (level {seen.level}) {'fails' if failed else 'warns'}: "
        f"{listing(dict.fromkeys(one.test for one in shown))}",
        evidence=listing(map(_told, shown), 8, between="; "),
        remedy=Remedy(
            RepairAction.SUPPORT if grave else RepairAction.CONFIGURE,
            f"what DCGM says of it is the remedy; dcgmi diag -r {seen.level} shows it again",
        ),
        severity=Severity.ERROR if grave else Severity.WARNING,
    )


def _told(one: DcgmResult) -> str:
    where = f" ({one.where})" if one.where else ""
    return f"{one.test}{where}: {one.status}{', ' if one.said else ''}{' '.join(one.said)}"
