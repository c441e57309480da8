"""Which existing entry is the vendor's repository: address, options and keys are checked, never a part of its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from gpunode.model.key_pins import CHECKSUM
from gpunode.model.packages import PackageFacts
from gpunode.packages.entries import Entry
from gpunode.packages.openpgp import inline_key, primary_fingerprints
from gpunode.values import dataclass

DEB_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DEFAULT_PORTS = {"http": 80, "https": 443}
# Options of apt's entries that do not concern trust. An entry with any other one is not managed by gpunode: trusted,
# allow-insecure, allow-weak, check-date ... (sources.list(5)), and whatever a later apt may add.
HARMLESS = {"signed-by", "arch", "architectures", "lang", "languages", "target", "targets", "pdiffs", "by-hash"}
HARMLESS |= {"components", "description"}
YES, NO = ("1", "yes", "true", "on"), ("0", "no", "false", "off")
SYSTEM_DIRECTORIES = ("/etc/", "/usr/")  # where only root writes


@dataclass(frozen=True)
class Claim:
    """A vendor's repository as an entry must name it to count."""

    title: str  # "NVIDIA's CUDA repository"
    url: str  # with apt's $(ARCH) or dnf's $basearch in it
    pinned: frozenset[str]  # primary fingerprints, of which its keyring holds one or more, no other; or its sum
    machine: str  # uname -m
    signed_index: bool = True  # the host's manager can be relied on to check the signature of an index

    def concerns(self, entry: Entry) -> bool:
        """It names this very directory of this very host, by whatever scheme, and however little it can be trusted."""
        wanted = self._place(self.url)
        return any(self._place(address) == wanted for address in entry.addresses)

    def fault(self, entry: Entry, packages: PackageFacts) -> str | None:
        """Why an entry that names this repository is not to be believed; None when it is right."""
        faults = self._rpm(entry) if "rpm" in entry.kinds else self._apt(entry)
        first = next((fault for fault in (*self._common(entry), *faults)), None)
        return first or self._key_fault(entry, packages)

    def owns(self, keyring: str, packages: PackageFacts) -> bool:
        """This key file holds what is pinned, and nothing else."""
        return self._file_fault(keyring, packages) is None

    def _common(self, entry: Entry) -> Iterator[str]:
        if entry.doubled:
            yield f"it has {entry.doubled[0]} more than once"
        wanted = urlsplit(self.url).scheme
        for address in entry.addresses:
            if self._place(address) == self._place(self.url) and urlsplit(address).scheme != wanted:
                yield f"it is fetched over {urlsplit(address).scheme}, not {wanted}"

    def _apt(self, entry: Entry) -> Iterator[str]:
        if "deb" not in entry.kinds:
            yield "it offers sources (deb-src) and no packages"
        if not entry.flat:
            yield "its suite is not the repository's directory"
        for name in entry.options:
            if name not in HARMLESS and not name.startswith("x-"):
                yield f"it sets {name}={entry.options[name]}"
        wanted = entry.options.get("arch", entry.options.get("architectures", ""))
        if wanted and self._architecture not in wanted.replace(",", " ").split():
            yield f"it is for {wanted} alone"

    def _rpm(self, entry: Entry) -> Iterator[str]:
        options = {name: value.strip().lower() for name, value in entry.options.items()}
        if "mirrorlist" in options or "metalink" in options:
            yield "whoever serves its list of mirrors decides where packages come from"
        if len(entry.addresses) > 1:
            yield "it names more than one address"
        for name in ("sslverify", "gpgcheck", "repo_gpgcheck", "pkg_gpgcheck"):
            if options.get(name, "1") not in (*YES, *NO):
                yield f"it sets {name}={options[name]}"
        if options.get("sslverify") in NO:
            yield "it does not check the server's certificate (sslverify=0)"
        # Some value of its own: the default for all is dnf.conf's, and anybody's guess.
        checks = ("gpgcheck", "repo_gpgcheck") if self.signed_index else ("gpgcheck",)
        if not any(options.get(name) in YES for name in checks):
            yield f"it checks no signature ({' and '.join(checks)} are not switched on)"

    def _key_fault(self, entry: Entry, packages: PackageFacts) -> str | None:
        named = entry.options.get("gpgkey" if "rpm" in entry.kinds else "signed-by", "")
        if "BEGIN PGP PUBLIC KEY BLOCK" in named:
            return self._foreign(_checked(inline_key(named)))
        paths = named.replace(",", " ").split()
        if not paths:
            return "it names no key, so every key of this host would do"
        for path in paths:
            if "rpm" in entry.kinds and not path.startswith("file:///"):
                return f"its key is fetched from {path}: whoever serves that address decides what is trusted"
            plain = path.removeprefix("file://")
            if not plain.startswith(SYSTEM_DIRECTORIES) or ".." in plain.split("/"):
                return f"its key {path} is not a file of this system"
            if plain not in packages.primaries:
                return f"its key file {plain} is not there, or cannot be read and believed"
            fault = self._file_fault(plain, packages)
            if fault:
                return f"{plain}: {fault}"
        return None

    def _file_fault(self, path: str, packages: PackageFacts) -> str | None:
        keys = packages.primaries.get(path, ())
        whole = keys and f"{CHECKSUM}{packages.keys.get(path)}" in self.pinned
        return None if whole else self._foreign(keys)

    def _foreign(self, found: Iterable[str]) -> str | None:
        keys = frozenset(found)
        if not keys:
            return "its key cannot be read"
        foreign = sorted(keys - self.pinned)
        return f"it trusts key {foreign[0]}, which is not the expected one" if foreign else None

    @property
    def _architecture(self) -> str:
        return DEB_ARCHITECTURES.get(self.machine, self.machine)

    def _place(self, url: str) -> tuple[str, int | None, tuple[str, ...]] | None:
        """Host, port and directory; None for what is no address. A user's name before the host does not make it one."""
        filled = url.replace("$(ARCH)", self._architecture)
        for name in ("$basearch", "${basearch}"):
            filled = filled.replace(name, self.machine)
        try:
            parts = urlsplit(filled)
            port = parts.port
        except ValueError:
            return None
        if not parts.scheme or parts.query or parts.fragment or not (parts.hostname or parts.scheme == "file"):
            return None
        port = None if port == DEFAULT_PORTS.get(parts.scheme) else port
        directories = tuple(piece for piece in unquote(parts.path).split("/") if piece not in ("", "."))
        return (parts.hostname or "").lower(), port, directories


def _checked(keyring: bytes) -> frozenset[str]:
    try:
        return primary_fingerprints(keyring)
    except ValueError:
        return frozenset()
