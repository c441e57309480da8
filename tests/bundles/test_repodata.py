"""The index of an rpm repository, as createrepo_c writes it, and what no index should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.bundles.index_dates import date_of, iso
from gpunode.bundles.repodata import index_files, listed
from gpunode.errors import GpunodeError

A, B, C = "a" * 64, "b" * 64, "c" * 128
REPOMD = f"""<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo" xmlns:rpm="http://linux.duke.edu/metadata/rpm">
  <revision>1795000000</revision>
  <data type="filelists">
    <checksum type="sha512">{C}</checksum>
    <open-checksum type="sha256">{B}</open-checksum>
    <location href="repodata/{C[:20]}-filelists.xml.gz"/>
    <timestamp>1795000003</timestamp>
    <size>10</size>
  </data>
  <data type="primary">
    <checksum type="sha256">{A}</checksum>
    <location href="repodata/{A}-primary.xml.gz"/>
    <timestamp>1795000001.5</timestamp>
  </data>
  <data type="other">
    <checksum type="sha256">{B}</checksum>
    <location href="repodata/{B}-other.xml.gz"/>
  </data>
  <data type="primary_db">
    <checksum type="sha256">{B}</checksum>
    <location href="repodata/{B}-primary.sqlite.bz2"/>
  </data>
</repomd>
"""
PRIMARY = f"""<metadata xmlns="http://linux.duke.edu/metadata/common" packages="2">
<package type="rpm">
  <name>nvidia-open</name>
  <arch>x86_64</arch>
  <version epoch="3" ver="595.91.07" rel="1"/>
  <checksum type="sha256" pkgid="YES">{A}</checksum>
  <location href="nvidia-open-595.91.07-1.x86_64.rpm"/>
</package>
<package type="rpm">
  <name>dkms</name>
  <version epoch="0" ver="3.0.10" rel="1.el9"/>
  <checksum type="sha256" pkgid="YES">{B}</checksum>
  <location xml:base="http://elsewhere.example.org" href="dkms.rpm"/>
</package>
<package type="rpm">
  <name>gcc</name>
  <version epoch="0" ver="11.5.0" rel="5.el9"/>
  <checksum type="sha256" pkgid="YES">{C[:64]}</checksum>
  <location href="Packages/g/gcc-11.5.0-5.el9.x86_64.rpm"/>
</package>
</metadata>
"""


def test_the_list_of_packages_comes_first_and_copies_and_changelogs_are_left_out() -> None:
    assert index_files(REPOMD, "here") == (
        (f"repodata/{A}-primary.xml.gz", A),
        (f"repodata/{C[:20]}-filelists.xml.gz", C),
    )


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (f"repodata/{A}-primary.xml.gz", "../../etc/passwd"),
        (f"repodata/{A}-primary.xml.gz", "primary.xml.gz"),
        (f"repodata/{A}-primary.xml.gz", "http://elsewhere/primary.xml.gz"),
        (f'<checksum type="sha256">{A}', f'<checksum type="sha">{A[:40]}'),
        ('type="primary"', 'type="first"'),
        ('type="filelists"', 'type="primary"'),
    ],
)
def test_an_index_that_leads_elsewhere_or_has_no_such_hash_is_refused(was: str, becomes: str) -> None:
    assert REPOMD.count(was)
    with pytest.raises(GpunodeError, match="the index of here"):
        index_files(REPOMD.replace(was, becomes), "here")


def test_a_package_is_found_by_its_hash(tmp_path: Path) -> None:
    primary = tmp_path / "primary"
    primary.write_text(PRIMARY)
    found = listed(primary, A)
    assert found is not None
    assert (found.name, found.version, found.path) == (
        "nvidia-open", "3:595.91.07-1", "nvidia-open-595.91.07-1.x86_64.rpm",
    )  # fmt: skip
    gcc = listed(primary, C[:64])
    assert gcc is not None
    assert (gcc.version, gcc.path) == ("11.5.0-5.el9", "Packages/g/gcc-11.5.0-5.el9.x86_64.rpm")
    assert listed(primary, "d" * 64) is None
    assert listed(primary, B) is None, "one that lies elsewhere is not the next one's file"


def test_its_date_is_that_of_its_newest_list_and_it_never_ends() -> None:
    date = date_of(REPOMD, "Date")
    assert date is not None
    assert iso(date) == "2026-11-18T11:06:43Z"
    assert date_of(REPOMD + "\nValid-Until: Thu, 03 Dec 2020 10:00:00 UTC\n", "Valid-Until") is None
    assert date_of("<repomd></repomd>", "Date") is None
    assert date_of(f"<repomd><timestamp>{'9' * 11}</timestamp>", "Date") is not None
