"""Debian and Ubuntu: apt-get, apt-mark and dpkg."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpunode import resources
from gpunode.model.action import Run
from gpunode.model.files import FileFacts
from gpunode.model.packages import PackageVersion
from gpunode.packages import scripts
from gpunode.packages.base import Backend, Part, Repository, Wanted
from gpunode.packages.listings import dpkg_held, dpkg_residue, parse_dpkg
from gpunode.regex import regex

# needrestart (Ubuntu 22.04 and later) asks and restarts daemons by itself otherwise; `l` only lists them.
ENV = (("DEBIAN_FRONTEND", "noninteractive"), ("NEEDRESTART_MODE", "l"), ("LC_ALL", "C.UTF-8"))
# apt waits for dpkg's lock (unattended-upgrades holds it for minutes) instead of exiting 100 at once.
LOCK = ("-o", "DPkg::Lock::Timeout=300")
# A mirror that takes connections and sends nothing: apt asks twice for a file, and by itself 30 s long, with three more
# tries (2.3.2 and later), which makes four minutes. The limit is on silence, not on the whole of a download.
SILENCE = ("-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20", "-o", "Acquire::Retries=0")
# Keep the admin's config files without asking.
CONFFILES = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
CONFIGURE = "dpkg --configure -a --force-confdef --force-confold"
# The lock on the lists has no timeout option in apt 2.6: try again after these pauses.
PAUSES_S = (5.0, 15.0, 30.0)
DIRECTORY = "/run/gpunode"

# linux-image-generic, not linux-image-6.8.0-51-generic
META_IMAGE = regex(r"linux-image-(?!\d|unsigned-|extra-)(.+)")
LIST = r"""find_tool dpkg-query || return 127
row='${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\n'
"$TOOL" -W -f "$row" || return $?
# dpkg does not flush configuration files: a power cut leaves them empty below a package that is configured.
"$TOOL" -W -f "$row\${Conffiles}\n" '*nvidia*' 'cuda*' 2>/dev/null |
  while IFS= read -r line; do
    case $line in
      ' '*d41d8cd98f00b204e9800998ecf8427e*) ;; # packaged empty
      ' /'*)
        path=${line# }
        [ -f "$R${path%% *}" ] && [ ! -s "$R${path%% *}" ] || continue
        case $package in *?ii\ | *?hi\ ) printf '%sE\n' "${package% }" ;; esac
        ;;
      ?*) package=$line ;;
    esac
  done
return 0
"""
# Without those of which nothing is on the disk (dpkg-query(1), "Package status").
NAMES = r"""all=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n') &&
  printf '%s\n' "$all" | sed -n 's/^.[^nc][^ ]* *//p'
"""


class Apt(Backend):
    """unattended-upgrades does not change what apt-mark holds, so it needs no setting of its own."""

    name = "apt"
    source_directory = "/etc/apt/sources.list.d"
    key_directory = "/etc/apt/keyrings"
    key_suffix = ".asc"  # apt takes armoured keys by this ending
    key_tools: tuple[str, ...] = ("gnupg", "curl", "ca-certificates")
    hold_tools: tuple[str, ...] = ()
    names_version = False
    package_format = "deb"
    vendor_release = "-*"  # "-1", and later "-1ubuntu1": apt takes what begins so
    preferences = "/etc/apt/preferences.d"
    bundle_file = "/etc/apt/sources.list.d/gpunode-bundle.sources"
    erase_resumes = True
    # 100 where two entries are at odds, which would keep all of apt from working.
    reads_lists = (
        Run(("apt-get", "indextargets", "--format", "$(SITE)"), description="apt-get indextargets", read_only=True),
    )
    fails_with_build = True
    not_found = 100  # among others
    tools = ("apt-get", "dpkg-query")
    listing = "dpkg"
    list_script = LIST
    names_script = NAMES
    proxy_files = ("/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*")
    source_files = (
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d/*",
        "/etc/apt/preferences",
        "/etc/apt/preferences.d/*",
    )
    key_files = ("/etc/apt/keyrings/*", "/etc/apt/trusted.gpg.d/*")
    lock_files = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")
    directories = ("/etc/apt/",)
    commands = MappingProxyType(
        {
            "install": ("apt-get", "install"),
            "remove": ("apt-get", "remove"),
            "purge": ("apt-get", "purge"),
            "owner": ("dpkg", "-S"),
            "repair": ("dpkg", "--configure", "-a"),
            "search": ("apt-cache", "search"),
        }
    )

    def installed(self, listing: str) -> Mapping[str, PackageVersion]:
        return parse_dpkg(listing)

    def held(self, listing: str, files: Mapping[str, FileFacts]) -> frozenset[str]:
        return dpkg_held(listing)

    def residue(self, listing: str) -> frozenset[str]:
        return dpkg_residue(listing)

    def auto_upgrades(
        self, settings: str, installed: Mapping[str, PackageVersion], services: Mapping[str, str]
    ) -> bool:
        """The switch is on and unattended-upgrades is there.

        APT::Periodic::Unattended-Upgrade "1";
        """
        switches = re.findall(r'Unattended-Upgrade\s+"([^"]*)"', settings)
        return bool(switches) and switches[-1] not in ("0", "") and "unattended-upgrades" in installed

    def kernel_headers(self, installed: Collection[str]) -> tuple[tuple[str, str], ...]:
        images = sorted(n for n in installed if META_IMAGE.fullmatch(n) and not n.endswith("-dbg"))
        return tuple((image, image.replace("linux-image-", "linux-headers-", 1)) for image in images)

    def source_file(self, repository: Repository) -> tuple[str, str]:
        text = resources.render(
            "repo/apt.sources.j2", title=repository.title, url=repository.url, keyring=repository.keyring
        )
        return f"{self.source_directory}/{repository.id}.sources", text

    def bundle_files(self, sha256: str, parts: Sequence[Part], keyring: str) -> Mapping[str, str]:
        """One more source, and what prefers it to a network's: apt goes on without the others by itself."""
        archives = [
            {
                "url": part.url.replace("file://", "file:", 1),
                "suite": part.suite,
                "components": " ".join(part.components),
            }
            for part in parts
        ]
        source = resources.render("repo/bundle.sources.j2", sha256=sha256, archives=archives, keyring=keyring)
        preference = resources.template_text("repo/bundle.pref.j2")
        return {self.bundle_file: source, f"{self.preferences}/gpunode-bundle.pref": preference}

    def bundle_indexes(self, parts: Sequence[Part]) -> tuple[Repository, ...]:
        return (Repository("", "", "", "", path=self.bundle_file),) if parts else ()

    def refresh(self, repositories: Sequence[Repository]) -> Run:
        # --error-on=any: without it apt-get update exits 0 when a repository is unreachable or signed by another key
        # (seen with apt 2.6 to 3.0). Limited to one file, so that another broken repository is no failure of gpunode;
        # List-Cleanup=0 keeps the other indexes.
        limit: tuple[str, ...] = ()
        if len(repositories) == 1:
            path = repositories[0].path or self.source_file(repositories[0])[0]
            limit = (
                "-o",
                f"Dir::Etc::sourcelist={path}",
                "-o",
                "Dir::Etc::sourceparts=-",
                "-o",
                "APT::Get::List-Cleanup=0",
            )
        argv = ("apt-get", "update", "--error-on=any", *LOCK, *SILENCE, *limit)
        return scripts.refresh(argv, "apt-get update", ENV, sources=self.source_files)

    def refresh_all(self) -> Run:
        """Fetch every index; what cannot be fetched is left to the install that needs it."""
        return scripts.refresh_all(
            ("apt-get", "update", *LOCK, *SILENCE), ENV, ok_codes=(0, 100), sources=self.source_files
        )

    def simulate(self, packages: Sequence[Wanted], mine: Sequence[str], *, downgrade: bool = False) -> Run:
        return scripts.simulate(
            self.name, resources.script("packages/apt_resolve"), (*_switches(downgrade), *_named(packages)), mine, ENV
        )

    def simulate_removal(self, names: Sequence[str], mine: Sequence[str]) -> Run | None:
        return scripts.simulate(self.name, resources.script("packages/apt_resolve_removal"), names, mine, ENV)

    def fetch(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = ("apt-get", "install", "--download-only", *_switches(downgrade), *LOCK, *SILENCE, *_named(packages))
        description = "download " + " ".join(_named(packages))
        return scripts.fetch(argv, f"apt-get update {shlex.join(SILENCE)}", description, ENV, sources=self.source_files)

    def install(self, packages: Sequence[Wanted], *, downgrade: bool = False) -> Run:
        argv = ("apt-get", "install", *_switches(downgrade), *LOCK, *SILENCE, *CONFFILES, *_named(packages))
        touched, description = tuple(p.name for p in packages), "apt-get install " + " ".join(_named(packages))
        return scripts.transaction(argv, "", touched, description, ENV)

    def reinstall(self, packages: Sequence[Wanted]) -> Run:
        run = self.install(packages)
        argv = ("apt-get", "install", "--reinstall", *run.argv[2:])
        return replace(run, argv=argv, description="apt-get install --reinstall " + " ".join(_named(packages)))

    def with_config(self, install: Run) -> Run:
        # dpkg takes a removed configuration file for the admin's wish, and gpunode removes old pins itself.
        at = install.argv.index(CONFFILES[-1]) + 1
        return replace(install, argv=(*install.argv[:at], "-o", "Dpkg::Options::=--force-confmiss", *install.argv[at:]))

    def led_by(self, module: str, names: Sequence[str], runs: Sequence[Run]) -> tuple[Run, ...]:
        lead = Run(
            ("sh", "-s", "--", module, DIRECTORY, *names),
            env=ENV,
            stdin=resources.script("packages/apt_module_first"),
            files=(f"{DIRECTORY}/module.conf", f"{DIRECTORY}/module.pref"),
            description=f"prefer the packages of {module}'s version",
        )
        return (lead, *(replace(run, env=(*run.env, ("APT_CONFIG", f"{DIRECTORY}/module.conf"))) for run in runs))

    def remove(self, names: Sequence[str]) -> Run:
        return self._without("remove", names)

    def purge(self, names: Sequence[str]) -> Run:
        return self._without("purge", names)

    def _without(self, verb: str, names: Sequence[str]) -> Run:
        # After a dpkg that was killed (its own journal holds updates then) apt refuses everything until dpkg has
        # finished its packages. Only then: a package whose script fails would be tried again for nothing.
        script = (
            f'set -- apt-get {verb} -y --allow-change-held-packages {" ".join(LOCK)} "$@"\n'
            "for update in /var/lib/dpkg/updates/[0-9]*; do\n"
            f'    [ ! -e "$update" ] || {CONFIGURE}\n'
            "    break\n"
            "done\n"
            'exec "$@"\n'
        )
        description = f"apt-get {verb} " + " ".join(names)
        argv = ("sh", "-s", "--", *names)
        return scripts.transaction(argv, script, names, description, ENV)

    def erase(self, names: Sequence[str], inventory: str) -> Run:
        """What is not in the inventory, came along and is needed by nothing else goes too, with its configuration."""
        argv = ("sh", "-s", "--", inventory or "-", *names)
        came_along = f"{' '.join(names)}, and what came with them" if names else "what an interrupted removal left"
        description = f"apt-get remove {came_along}"
        script = resources.script("packages/apt_erase")
        return scripts.transaction(argv, script, names, description, ENV)

    def hold(self, names: Sequence[str]) -> Run:
        return Run(("apt-mark", "hold", *names), env=ENV, retry=PAUSES_S)

    def unhold(self, names: Sequence[str]) -> Run:
        return Run(("apt-mark", "unhold", *names), env=ENV, retry=PAUSES_S)

    def same_version(self, lead: str, patterns: Sequence[str], *, hold: bool) -> Run:
        return scripts.same_version(
            resources.script("packages/dpkg_versions"), 'apt-mark hold "$@"' if hold else "", lead, patterns, ENV
        )

    def repair(self, names: Sequence[str]) -> Run:
        description = "dpkg --configure -a; apt-get install --fix-broken"
        script = resources.script("packages/apt_repair")
        return scripts.transaction(("sh", "-s", "--", *names), script, (), description, ENV)

    def trust(self, keyring: str, url: str) -> Run | None:
        """Nothing to import: the source names its key."""
        return None

    def distrust(self, keyring: str, url: str) -> Run | None:
        return None

    def forget(self, keys: Sequence[str]) -> Run | None:
        return None


def _switches(downgrade: bool) -> tuple[str, ...]:
    # --allow-change-held-packages: gpunode pins what it installed, and only what is named here changes.
    down = ("--allow-downgrades",) if downgrade else ()
    return ("-y", "--no-install-recommends", "--allow-change-held-packages", *down)


def _named(packages: Sequence[Wanted]) -> tuple[str, ...]:
    return tuple(f"{p.name}={p.version}" if p.version else p.name for p in packages)
