"""Which kernel GRUB starts next, and which module is there for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.kernel import parse_next_boot
from gpunode.model.facts import KernelTree
from tests.facts.hosts import make_root, run_probe

OLD, NEW = "6.8.0-52-generic", "6.8.0-60-generic"
TREES = tuple(KernelTree(release, True, True, None) for release in (OLD, NEW))
OF_BLS = f"saved_entry=0123456789abcdef0123456789abcdef-{OLD}\n"
OF_A_MENU = f"saved_entry=Advanced options for Ubuntu>Ubuntu, with Linux {OLD}\n"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("", NEW),
        ("GRUB_DEFAULT=0\n", NEW),
        ('GRUB_DEFAULT="1>2"\n', None),
        (OF_A_MENU, NEW),
        (f"{OF_A_MENU}GRUB_DEFAULT=0\n", NEW),
        (f'{OF_A_MENU}GRUB_DEFAULT="1>2"\n', None),
        (f"{OF_A_MENU}GRUB_DEFAULT=saved\n", OLD),
        (f"{OF_A_MENU}GRUB_DEFAULT=saved\nGRUB_DEFAULT=0\n", NEW),
        ("saved_entry=0\nGRUB_DEFAULT=saved\n", None),
        (OF_BLS, OLD),
        (f"{OF_BLS}GRUB_DEFAULT=saved\n", OLD),
        (f"{OF_BLS}GRUB_DEFAULT=0\n", NEW),
        (f"next_entry=Advanced options for Ubuntu>Ubuntu, with Linux {OLD}\nGRUB_DEFAULT=0\n", OLD),
        ("next_entry=2\nGRUB_DEFAULT=0\n", None),
        ("next_entry=\nGRUB_DEFAULT=0\n", NEW),
    ],
)
def test_what_was_saved_counts_where_grub_starts_what_was_saved(text: str, release: str | None) -> None:
    assert parse_next_boot(text, TREES) == release


def test_grubs_settings_are_read_from_its_directory_too(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    grub = root / "etc" / "default" / "grub"
    grub.parent.mkdir(exist_ok=True)
    grub.write_text("GRUB_DEFAULT=0\n")
    directory = grub.with_name("grub.d")
    directory.mkdir(exist_ok=True)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").kernel.next_boot == OLD
    (directory / "50-site.cfg").write_text('GRUB_DEFAULT="1>2"\n')
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").kernel.next_boot is None


@pytest.mark.parametrize("shell", [("sh",), ("busybox", "sh")], ids=lambda words: words[0])
def test_a_link_to_a_module_that_is_gone_is_no_module(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    modules = root / "lib" / "modules"
    module = modules / OLD / "extra" / "nvidia.ko.xz"
    module.parent.mkdir(parents=True, exist_ok=True)
    (root / "boot").mkdir(exist_ok=True)
    (root / "boot" / f"vmlinuz-{NEW}").touch()
    module.touch()
    (modules / NEW / "weak-updates").mkdir(parents=True)
    (modules / NEW / "weak-updates" / "nvidia.ko.xz").symlink_to(f"/lib/modules/{OLD}/extra/nvidia.ko.xz")

    def of_new() -> str | None:
        trees = assemble(run_probe(shell, root).stdout, "gpu07").kernel.trees
        return next(tree.nvidia_module for tree in trees if tree.release == NEW)

    assert of_new() == f"/lib/modules/{NEW}/weak-updates/nvidia.ko.xz"
    module.unlink()
    assert of_new() is None
