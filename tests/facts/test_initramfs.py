"""What dracut is told, what it made, and when the probe looks into an image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.initramfs import parse_drivers
from gpunode.model.initramfs import DracutFacts, InitramfsImage
from tests.facts.hosts import make_root, run_probe

KERNEL = "6.8.0-52-generic"
IMAGE = f"/boot/initrd.img-{KERNEL}"
MODULES = f"usr/lib/modules/{KERNEL}"
OURS = 'omit_drivers+=" nouveau nova_core nvidia nvidia_drm "\n'
# As `lsinitrd` of dracut 112 lists them.
LISTING = f"""#!/bin/sh
[ "${{1%{IMAGE}}}" != "$1" ] || exit 1
cat <<'END'
Image: /boot/initrd.img: 37M
-rw-r--r--   1 root     root           38 Nov 23 01:10 etc/modprobe.d/gpunode-nouveau.conf
-rw-r--r--   1 root     root         2344 Nov 12 09:30 {MODULES}/kernel/drivers/usb/typec/altmodes/typec_nvidia.ko.xz
-rw-r--r--   2 root     root         1924 Nov 23 01:09 {MODULES}/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz
-rw-r--r--   2 root     root         1924 Nov 23 01:09 {MODULES}/updates/dkms/nvidia.ko.xz
END
"""


@pytest.mark.parametrize(
    ("text", "omitted", "added"),
    [
        ("", set(), set()),
        ('/etc/dracut.conf.d/a.conf:omit_drivers+=" nvidia nvidia-drm "\n', {"nvidia", "nvidia_drm"}, set()),
        ("/etc/dracut.conf:  omit_drivers+='nvidia'\n/etc/dracut.conf.d/z.conf:omit_drivers=\"fd\"\n", {"fd"}, set()),
        ('/etc/dracut.conf.d/a.conf:force_drivers+=" nvidia "\n/etc/dracut.conf.d/a.conf:add_drivers+=" i915 "\n',
         set(), {"nvidia", "i915"}),
        ('/etc/dracut.conf.d/99-nvidia.conf:force_drivers+=" nvidia "\n'
         '/usr/lib/dracut/dracut.conf.d/99-nvidia.conf:omit_drivers+=" nvidia "\n', set(), {"nvidia"}),
    ],
    ids=["none", "hyphens are underscores", "a later = replaces", "asked for", "a namesake in /etc replaces"],
)  # fmt: skip
def test_what_dracut_is_told_about_drivers(text: str, omitted: set[str], added: set[str]) -> None:
    assert tuple(map(set, parse_drivers(text))) == (omitted, added)


def probed(tmp_path: Path, *, conf: str | None, image_first: bool = False, blacklist: bool = True) -> DracutFacts:
    root = make_root(tmp_path, {"dracut": "#!/bin/sh\n", "lsinitrd": LISTING})
    files = {f"boot/initrd.img-{KERNEL}": "an image"}
    files |= {"etc/dracut.conf.d/gpunode-nvidia.conf": conf} if conf else {}
    files |= {"etc/modprobe.d/gpunode-nouveau.conf": "blacklist nouveau\n"} if blacklist else {}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    later = 10**9 * (1 if image_first else 2)
    os.utime(root / f"boot/initrd.img-{KERNEL}", ns=(later * 10**3, later * 10**3))
    for name in ("etc/dracut.conf.d/gpunode-nvidia.conf", f"lib/modules/{KERNEL}/updates/dkms/nvidia.ko.zst"):
        if (root / name).exists():
            os.utime(root / name, ns=(15 * 10**11, 15 * 10**11))
    facts = assemble(run_probe(("dash",), root).stdout, "gpu07").kernel.dracut
    assert facts is not None
    return facts


def test_an_image_newer_than_what_omits_its_modules_is_not_opened(tmp_path: Path) -> None:
    facts = probed(tmp_path, conf=OURS)
    assert {"nouveau", "nvidia"} <= facts.kept_out
    assert facts.images == (InitramfsImage(KERNEL, IMAGE),)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads an image")
@pytest.mark.parametrize(
    ("conf", "image_first"),
    [(None, False), (OURS + 'add_drivers+=" nvidia "\n', False), (OURS, True)],
    ids=["nothing is omitted", "an omitted one is asked for", "older than the configuration"],
)
def test_an_image_in_doubt_is_looked_into(tmp_path: Path, conf: str | None, image_first: bool) -> None:
    image = probed(tmp_path, conf=conf, image_first=image_first).images[0]
    assert image.modules == frozenset({"nouveau", "nvidia"})
    assert image.blacklists
    assert ("module" in image.newer) == image_first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads an image")
def test_a_blacklist_that_the_host_does_not_have_is_not_believed(tmp_path: Path) -> None:
    assert not probed(tmp_path, conf=None, blacklist=False).images[0].blacklists


def test_a_host_without_dracut_has_no_facts_about_it(tmp_path: Path) -> None:
    assert assemble(run_probe(("dash",), make_root(tmp_path)).stdout, "gpu07").kernel.dracut is None
