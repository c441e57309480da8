# Shared by demo, test and check: one virtual environment in the checkout, made once, refreshed when
# pyproject.toml changes. POSIX sh; sourced, so it only defines functions and two variables.

ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
VENV=${GPUNODE_VENV:-$ROOT/.venv}

say() { printf '%s\n' "$*" >&2; }
die() { say "$0: $*"; exit 1; }

# System packages, by name, only as root on an apt system and only those that are missing; says what it does.
system_packages() {
    missing=
    for package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing system packages:$missing"
    export DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes
    # shellcheck disable=SC2086  # a list of names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; }
}

# What the tests use of the system, as COMMAND:PACKAGE of Debian.
TEST_TOOLS="busybox:busybox-static curl:curl dash:dash fish:fish gpg:gnupg mandoc:mandoc ssh:openssh-client sshd:openssh-server ps:procps
shellcheck:shellcheck tcsh:tcsh xmllint:libxml2-utils zsh:zsh"

# The packages of those that are not there.
missing_tools() {
    for tool in $TEST_TOOLS; do
        PATH=$PATH:/usr/sbin command -v "${tool%%:*}" >/dev/null 2>&1 || printf ' %s' "${tool#*:}"
    done
}

# Chromium, in which tests open the page of a fleet (80 MB, and what it needs). Not among the tools above: Ubuntu has it as a
# snap only. A test that finds none is skipped and says so; GPUNODE_BROWSER_REQUIRED=1 makes that a failure.
install_chromium() {
    command -v chromium >/dev/null 2>&1 || system_packages chromium ||
        say "no chromium: apt-get install chromium failed"
}

# promtool for the environment, where no prometheus is installed: from Debian's package, unpacked, because to install it
# starts a server. A test that finds none is skipped and says so.
fetch_promtool() {
    command -v promtool >/dev/null 2>&1 && return 0
    [ ! -x "$VENV/bin/promtool" ] && command -v apt-get >/dev/null 2>&1 || return 0
    say "fetching promtool for $VENV (from the package prometheus, 20 MB)"
    fetched=$(mktemp -d)
    { (cd "$fetched" && apt-get -qq download prometheus 2>/dev/null && dpkg-deb --extract prometheus_*.deb .) &&
        mv "$fetched/usr/bin/promtool" "$VENV/bin/promtool"; } || say "no promtool: apt-get download prometheus failed"
    rm -rf "$fetched"
}

# NVIDIA's own nvidia-smi and NVML of three branches for the environment, from Debian's packages (non-free), unpacked, by an
# apt whose files are all in a directory of its own. A test that finds none is skipped and says so.
fetch_nvidia_smi() {
    lacking=
    for suite in bullseye bookworm trixie; do [ -d "$VENV/nvidia-smi/$suite" ] || lacking="$lacking $suite"; done # 470, 535, 550
    [ -n "$lacking" ] && command -v apt-get >/dev/null 2>&1 && [ "$(dpkg --print-architecture)" = amd64 ] || return 0
    mirror=$(apt-get indextargets --format '$(CREATED_BY)|$(LABEL)|$(REPO_URI)' 2>/dev/null | sed -n '/^Packages|Debian|/{s///p;q;}')
    [ -n "$mirror" ] || { say "no nvidia-smi: apt knows no mirror of Debian"; return 0; }
    say "fetching nvidia-smi of 470, 535 and 550 for $VENV (packages of 1 MB, and lists)"
    mkdir -p "$VENV/nvidia-smi"
    for suite in $lacking; do
        fetched=$(mktemp -d)
        (cd "$fetched" && unpack_nvidia_smi "$mirror" "$suite") && mv "$fetched/new" "$VENV/nvidia-smi/$suite" ||
            say "no nvidia-smi of Debian $suite: apt-get download failed"
        rm -rf "$fetched"
    done
}

# Into ./new.
unpack_nvidia_smi() {
    mkdir -p new state/lists/partial cache/archives/partial
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s non-free\n' "$1" "$2" >list
    set -- -qq -o "Dir::State=$PWD/state" -o "Dir::Cache=$PWD/cache" -o "Dir::Etc::sourcelist=$PWD/list" \
        -o Dir::Etc::sourceparts=- -o Acquire::Check-Valid-Until=false \
        -o Acquire::Languages=none -o APT::Sandbox::User=root
    apt-get "$@" update && apt-get "$@" download nvidia-smi libnvidia-ml1 &&
        for package in *.deb; do dpkg-deb --extract "$package" . || return 1; done &&
        cp usr/lib/nvidia/current/nvidia-smi usr/lib/*/nvidia/current/libnvidia-ml.so.1 new/
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# The virtual environment with gpunode (editable); "dev" adds what tests and linters need. What runs in it may keep its compiled
# files: thousands of gpunode's are started, and each would compile itself anew, as each worker of pytest would all tests.
environment() {
    unset PYTHONDONTWRITEBYTECODE
    wanted="$1 $(cksum <"$ROOT/pyproject.toml") $(cksum <"$ROOT/gpunode/__init__.py")"
    [ "$(cat "$VENV/.gpunode-ready" 2>/dev/null)" = "$wanted" ] && "$VENV/bin/python" -c 'import gpunode' 2>/dev/null && return 0
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
            die "$(python3 --version) is too old: gpunode needs Python 3.10 or newer"
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        can_install || die "python3 or its venv module is missing: apt-get install python3-venv, or run this as root"
        system_packages python3-venv ca-certificates
    fi
    [ -x "$VENV/bin/python" ] || { say "making the environment in $VENV"; python3 -m venv "$VENV"; }
    case $1 in dev) target="${ROOT}[dev]" ;; *) target=$ROOT ;; esac
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$target"
    printf '%s\n' "$wanted" >"$VENV/.gpunode-ready"
}
