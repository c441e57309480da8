"""Events of the kernel's log as values. The lines have the form of those in public reports of such machines."""

from __future__ import annotations

import pytest

from gpunode.facts.kernel_log import MOST, parse_kernel_log, parse_kernel_state
from gpunode.model.kernel_log import AerCounters, KernelLog, LinkLosses, LoggedAer, LoggedSxid, LoggedXid

UNCONTAINED = "[ 9120.551201] NVRM: Xid (PCI:0000:1a:00): 95, pid=4120, name=python3, Uncontained: FBHUB. RST: Yes\n"
LINES: tuple[tuple[str, str, KernelLog], ...] = (
    ("an Xid with its time", UNCONTAINED, KernelLog((LoggedXid(95, "0000:1a:00", 1, 9120),))),
    ("the same by journalctl", UNCONTAINED.replace("NVRM", "gpu07 kernel: NVRM"),
     KernelLog((LoggedXid(95, "0000:1a:00", 1, 9120),))),
    ("again and again", UNCONTAINED + UNCONTAINED.replace("9120", "9999"),
     KernelLog((LoggedXid(95, "0000:1a:00", 2, 9999),))),
    ("of a kernel without times", UNCONTAINED.partition("] ")[2], KernelLog((LoggedXid(95, "0000:1a:00", 1, None),))),
    ("older drivers name no bus", "NVRM: Xid (0000:04:00): 31, Ch 00000019, engmask 00000101\n",
     KernelLog((LoggedXid(31, "0000:04:00"),))),
    ("a MIG instance", "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 31, pid=7, Ch 0\n",
     KernelLog((LoggedXid(31, "0000:01:00"),))),
    ("fallen off, and the process is not known any more",
     "[81211.412402] NVRM: Xid (PCI:0000:1c:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
     KernelLog((LoggedXid(79, "0000:1c:00", 1, 81211),))),
    ("NVLink 5: fatal, and its link",
     "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)\n",
     KernelLog((LoggedXid(149, "0018:01:00", fatal=True, link=9),))),
    ("NVLink 5: not fatal", "NVRM: Xid (PCI:0008:01:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x1)\n",
     KernelLog((LoggedXid(145, "0008:01:00", fatal=False, link=17),))),
    ("the driver asks for a reset",
     "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n",
     KernelLog((LoggedXid(154, "0008:01:00", recovery="Reset"),))),
    ("and was given one",
     "[ 5.1] NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)\n"
     "[ 9.1] NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x2 (OS Reboot) to 0x0 (None)\n",
     KernelLog((LoggedXid(154, "0008:01:00", 2, 9, recovery="None"),))),
    ("an NVSwitch, whose further lines are the same error",
     "[ 1108.858286] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error\n"
     "[ 1108.858290] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Severity 1 Engine instance 28\n"
     "[ 1108.858291] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Data {0x00100000, 0x00100000}\n",
     KernelLog(sxids=(LoggedSxid(24007, "0000:c3:00.0", 1, 1108, True, 28),))),
    ("a switch's error that is not fatal",
     "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)\n",
     KernelLog(sxids=(LoggedSxid(12028, "0000:05:00.0", fatal=False, link=32),))),
    ("PCIe errors of a GPU",
     "[ 7.5] nvidia 0000:41:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
     "[ 8.5] nvidia 0000:41:00.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer\n"
     "[ 9.5] nvidia 0000:41:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer\n",
     KernelLog(aer=tuple(LoggedAer("0000:41:00.0", how, 1, s)
                         for how, s in (("corrected", 7), ("nonfatal", 8), ("fatal", 9))))),
    ("links that were lost; a cable that is pulled gives two lines",
     "[ 50.2] mlx5_core 0000:1a:00.0: Port module event: module 0, Cable unplugged\n"
     "[ 50.9] mlx5_core 0000:1a:00.0 ens1f0np0: Link down\n[ 60.9] mlx5_core 0000:1a:00.0 ens1f0np0: Link up\n"
     "[ 90.1] mlx5_core 0000:1a:00.0 ens1f0np0: Link down\n[ 91.1] bnxt_en 0000:3b:00.1 ens2f1np1: NIC Link is Down\n",
     KernelLog(links_lost=(LinkLosses("0000:1a:00.0", (50, 90)), LinkLosses("0000:3b:00.1", (91,))))),
    ("a link that was lost, without times", "mlx5_core 0000:1a:00.0 ib0: Link down\n" * 2,
     KernelLog(links_lost=(LinkLosses("0000:1a:00.0", (None, None)),))),
    ("when the driver was loaded last",
     "[ 3.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build\n"
     "[ 99.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build\n",
     KernelLog(driver_since_s=99)),
    ("machine checks",
     "[ 5.0] mce: [Hardware Error]: Machine check events logged\n[ 6.0] {1}[Hardware Error]: event severity: fatal\n"
     "[ 7.0] EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0\n",
     KernelLog(machine_checks=3)),
    ("tasks that hang, one of them in the driver",
     "[  500.1] INFO: task kworker/1:2:77 blocked for more than 120 seconds.\n"
     "[  900.1] INFO: task nvidia-smi:1234 blocked for more than 122 seconds.\n"
     "[  900.2]  os_acquire_rwlock_write+0x35/0x50 [nvidia]\n",
     KernelLog(hung_tasks=2, hung_last_s=900, hung_in_driver=1)),
    ("links that the driver did not find, after it was loaded again",
     "[  4.1] NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!\n"
     "[ 99.1] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build\n"
     "[100.1] NVRM: GPU2 knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!\n"
     "[100.2] NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!\n"
     "[100.3] NVRM: Xid (PCI:0000:41:00): 13, pid=1, name=Failed to update Rx Detect Link mask!, x\n",
     KernelLog(xids=(LoggedXid(13, "0000:41:00", last_s=100),), driver_since_s=99, links_undetected=2)),
    ("the kernel keeps who wrote a line, and dmesg shows it",
     "[80000.1] [   T1234] NVRM: Xid (PCI:0000:41:00): 95, pid=4120, name=python3, Uncontained: FBHUB. RST: Yes\n"
     "[80001.1][  C12] mce: [Hardware Error]: Machine check events logged\n"
     "[80002.1] [x] NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.\n",
     KernelLog(xids=(LoggedXid(95, "0000:41:00", last_s=80000),), machine_checks=1)),
    ("a fault of all links of a GPU",
     "[ 89.1] NVRM: Xid (PCI:0000:41:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)\n",
     KernelLog(xids=(LoggedXid(149, "0000:41:00", last_s=89, fatal=True),))),
    ("a log whose beginning is gone",
     "begins=8630\n[ 9000.1] INFO: task kworker/1:2:77 blocked for more than 120 seconds.\n",
     KernelLog(begins_s=8630, hung_tasks=1, hung_last_s=9000)),
    ("firmware that is not there",
     "nvidia 0000:41:00.0: Direct firmware load for nvidia/595.91.07/gsp_ga10x.bin failed with error -2\n",
     KernelLog(firmware_missing=("nvidia/595.91.07/gsp_ga10x.bin",))),
)  # fmt: skip


@pytest.mark.parametrize(("text", "says"), [pytest.param(*row[1:], id=row[0]) for row in LINES])
def test_events(text: str, says: KernelLog) -> None:
    assert parse_kernel_log(text) == says


HOSTILE = (
    "[ 5.1] app[77]: NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.",
    "[ 5.1] INFO: NVRM: Xid (PCI:0000:1a:00): 79, x",
    "[ 5.1] audit: comm=\"NVRM: Xid (PCI:0000:1a:00): 79, \"",
    "[ 5.1] NVRM: Xid (PCI:0000:1a:00): 999999999999, x",
    "[ 5.1] NVRM: Xid (PCI:0000:1a:00): -79, x",
    "[ 5.1] NVRM: Xid (PCI:0000:1a:00): \u0667\u0669, x",
    "[ 5.1] NVRM: Xid (PCI:zzzz:1a:00): 79, x",
    "[ 5.1] NVRM: Xid (PCI:\x1b[31m0000:1a:00): 79, x",
    "[ 5.1] NVRM: Xid (PCI:0000:1a:00",
    "[" + "9" * 5000 + ".1] NVRM: Xid (PCI:0000:1a:00): 79, x",
    "[ 5.1] nvidia-nvswitch0: SXid (PCI:0000:c3:00.9): 20034, Fatal",
    "[ 5.1] nvidia 0000:41:00.0: Direct firmware load for ../../x failed with error -2",
    "[ 5.1] app: mlx5_core 0000:1a:00.0 ib0: Link down",
    "[ 5.1] mlx5_core 0000:1a:00.0 \x1b[31m: Link down",
    "[ 5.1] e1000e 0000:1a:00.0 eth0: NIC Link is Down",
    "[ 5.1] overlayfs: option \u2028NVRM: Xid (PCI:0000:1a:00): 79, x",
    "\udcff\x00",
)  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_a_line_that_only_looks_like_an_event_is_none(line: str) -> None:
    assert parse_kernel_log(f"{line}\n") == KernelLog()


def test_nothing_of_a_line_but_numbers_addresses_and_the_kernels_words_is_kept() -> None:
    name = "name=\x1b]0;pwned\x07"
    log = parse_kernel_log(UNCONTAINED.replace("name=python3", name).replace("Uncontained", name))
    assert "pwned" not in repr(log)


def test_a_log_of_a_thousand_different_events_gives_so_many_and_no_more() -> None:
    text = "".join(
        f"NVRM: Xid (PCI:0000:{n % 256:02x}:00): {n}, x\nnvidia-nvswitch0: SXid (PCI:0000:00:00.0): {n}, Fatal\n"
        f"nvidia 0000:{n % 256:02x}:00.{n % 8}: PCIe Bus Error: severity=Corrected, x\n"
        f"mlx5_core 0000:{n % 256:02x}:00.0 ib0: Link down\n[ {2 * n}.1] mlx5_core 0000:00:00.0 ib0: Link down\n"
        for n in range(1000)
    )
    log = parse_kernel_log(text)
    assert (len(log.xids), len(log.sxids), len(log.aer), len(log.links_lost)) == (MOST, MOST, MOST, MOST)
    assert [len(one.at_s) for one in log.links_lost if one.address == "0000:00:00.0"] == [MOST], "the newest"


STATE = """uptime=81233.10
taint=12289
pstore_read=1
pstore=dmesg-efi-171
pstore=\x1b[31mdmesg
aer=0000:1a:00.0 3 - 0
aer=../../etc 1 1 1
edac=4 0
edac=1 2
"""


def test_what_the_kernel_counts() -> None:
    state = parse_kernel_state(STATE)
    assert state is not None
    assert (state.uptime_s, state.taint, state.crashes) == (81233, 12289, ("dmesg-efi-171",))
    assert state.aer == {"0000:1a:00.0": AerCounters(3, None, 0)}
    assert (state.memory_corrected, state.memory_uncorrected) == (5, 2)


@pytest.mark.parametrize("odd", ["-1", "[N/A]", "1e9", "9" * 5000, "\u0663", "-"])
def test_a_counter_that_is_no_number_is_not_known(odd: str) -> None:
    text = f"uptime={odd}\ntaint={odd}\naer=0000:1a:00.0 {odd} {odd} {odd}\nedac={odd} {odd}\n"
    state = parse_kernel_state(text)
    assert state is not None
    assert (state.uptime_s, state.taint, state.crashes) == (None, None, None)
    assert state.aer["0000:1a:00.0"] == AerCounters()
    assert (state.memory_corrected, state.memory_uncorrected) == (None, None)


def test_a_recording_without_counters_has_none() -> None:
    assert parse_kernel_state("") is None
