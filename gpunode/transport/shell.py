"""How a script travels to a POSIX sh through whatever stands in the way: login shells, rc files, sudo or doas.

The script becomes one line of printable ASCII (`printf %b` escapes), because csh breaks at newlines and `!` inside
quotes, fish reads `\\\\` and `\\'` there, and `read -r` reads byte by byte in every sh. Marks before and after the
script's output say where it begins and ends (transport/answer.py); no begin mark means the script never started.
"""

from __future__ import annotations

from functools import lru_cache

from gpunode.regex import regex

ARGUMENT_LIMIT_BYTES = 100_000  # Linux allows 128 KiB an argument (MAX_ARG_STRLEN); the login shell gets the whole line

# Variables by which tools print otherwise than their parsers read, or do otherwise than they are told. /etc/environment
# holds such on real hosts, and PAM brings them back after sudo has cleaned. Proxies stay: they are the host's to set.
_MISLEADING = (
    *("QUOTING_STYLE", "TIME_STYLE", "LS_COLORS", "LS_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE", "DF_BLOCK_SIZE"),
    *("DU_BLOCK_SIZE", "TABSIZE", "COLUMNS", "LINES", "POSIXLY_CORRECT", "_POSIX2_VERSION"),  # coreutils
    *("GREP_OPTIONS", "GREP_COLOR", "GREP_COLORS", "AWKPATH", "TAR_OPTIONS", "GZIP", "XZ_OPT", "CDPATH"),
    *("PS_FORMAT", "PS_PERSONALITY", "CMD_ENV", "I_WANT_A_BROKEN_PS", "UNIX95"),  # ps
    *("DPKG_COLORS", "DPKG_FORCE", "DPKG_ADMINDIR", "DPKG_ROOT", "MODPROBE_OPTIONS", "RPM_CONFIGDIR"),
    *("SYSTEMD_COLORS", "SYSTEMD_URLIFY", "SYSTEMD_PAGER", "PAGER", "LESS", "CLICOLOR_FORCE"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_API_VERSION", "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE"),
    *("CONTAINER_HOST", "CONTAINER_RUNTIME_ENDPOINT"),  # of this host's daemons, none but the one meant is asked
    "TMPDIR",  # mktemp's
)

# The token is the host's own, new for every script, and in no argument list: a local user who could read it there
# might print an end mark into something that the script quotes. The kernel's uuid costs no process.
PREPARE = (
    # Non-interactive logins often lack sbin; LC_ALL=C so that tools print the language their parsers read.
    "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C; export PATH LC_ALL; "
    f"unset {' '.join(_MISLEADING)} gpunode_run "
    "gpunode_token gpunode_script gpunode_size gpunode_code GPUNODE_GZIP; "
    "{ read -r gpunode_token </proc/sys/kernel/random/uuid; } 2>/dev/null || "
    "gpunode_token=$(od -An -vtx1 -N16 /dev/urandom | tr -cd 0-9a-f); "
    r'printf "\036gpunode-begin %s\n" "$gpunode_token"; printf "\036gpunode-begin %s\n" "$gpunode_token" >&2; '
)


def evaluate(text: str) -> str:
    """The wrapper's end, `text` being the script as a word of sh.

    A shell of its own, so that exit, exec, a syntax error or a signal end the script and not what reports its end.
    """
    return (
        rf"(unset gpunode_token; eval {text}); gpunode_code=$?; "
        r'printf "\036gpunode-end %s %d\n" "$gpunode_token" "$gpunode_code" >&2; '
        r'printf "\036gpunode-end %s %d\n" "$gpunode_token" "$gpunode_code"; exit "$gpunode_code"'
    )


_EVALUATE = evaluate('"$(printf %b "$gpunode_script")"')
_FROM_ARGUMENT = PREPARE + "gpunode_script=$1; shift; " + _EVALUATE
# Lines that are not the script are skipped: an rc file may have eaten the first one, or only half of it.
FROM_MARKED_LINE = (
    "until IFS= read -r gpunode_script || exit 95; "
    "case $gpunode_script in gpunode-script:*) true;; *) false;; esac; do :; done; "
)
_FROM_STDIN = PREPARE + FROM_MARKED_LINE + "gpunode_script=${gpunode_script#gpunode-script:}; " + _EVALUATE
# `read` makes a system call for each byte, as it must where data follows: 90 ms for the probe under dash. Where nothing
# follows, a long script stands on the next line, and head(1) takes it at once; it may read too far. Whole, or not run.
_LONG_BYTES = 4096  # to read more than this takes longer than to start a process
_LONG_FROM_STDIN = (
    PREPARE
    + FROM_MARKED_LINE
    + "gpunode_size=${gpunode_script#gpunode-script:}; "
    + 'gpunode_script=$(/usr/bin/head -c "$gpunode_size" 2>/dev/null || /bin/head -c "$gpunode_size" 2>/dev/null) '
    + '|| IFS= read -r gpunode_script || exit 95; [ "${#gpunode_script}" -eq "$gpunode_size" ] || exit 95; '
    + _EVALUATE
)
# How sudo asks, with whose password it wants (%p) and who it takes us for (%u): rootpw and targetpw ask for another's.
QUESTION = "[gpunode] password of "
_PROMPT = f"{QUESTION}%p for %u: "
NOEXEC = "gpunode: this shell may start no other program"
# Where sudoers has NOEXEC all that follows would fail, each command with its own "Permission denied".
_BECAME = f"sh -c : 2>/dev/null; [ $? -ne 126 ] || {{ echo {NOEXEC} >&2; exit 126; }}; "
# sudo's messages in English (transport/refusals.py). A host has sudo, or doas, which reads passwords at terminals only.
_SUDO = "LC_ALL=C; export LC_ALL; command -v sudo >/dev/null 2>&1 && exec sudo "
_OR_DOAS = (
    '"$@"; command -v doas >/dev/null 2>&1 && exec doas -n "$@"; echo sudo: not found, doas: not found >&2; exit 127'
)
_BECOME = f"{_SUDO}-n {_OR_DOAS}"
_BECOME_ASKED = (
    rf'printf "[gpunode] process %d\n" $$ >&2; {_SUDO}-S -p "{_PROMPT}" {_OR_DOAS}'  # exec keeps the process id
)
# Where sudo wants a terminal (requiretty) it gets one that nothing goes through: script(1) of util-linux makes it, and
# the three streams pass it by, so that the answer stays exact. Nothing of it reaches the login shell's own quotes. The
# end of that terminal is no hangup for what the script left running: elsewhere there is none either.
NO_TERMINAL = "gpunode: there is no program script to make a terminal"
_IGNORES_HANGUPS = 'trap "" HUP; '
_AT_A_TERMINAL = (
    "gpunode_run=$3; SHELL=/bin/sh; export gpunode_run SHELL; exec 3<&0 4>&1 5>&2; "
    f"command -v script >/dev/null 2>&1 || {{ echo {NO_TERMINAL} >&2; exit 127; }}; "
    r'exec script -qec "{run} sh -c \"\$gpunode_run\" <&3 >&4 2>&5 3<&- 4>&- 5>&-" /dev/null </dev/null >/dev/null 2>&1'
)
_TERMINAL = _AT_A_TERMINAL.replace("{run}", "exec sudo -n")
_TERMINAL_ASKED = _AT_A_TERMINAL.replace(
    "{run}", rf"printf \"[gpunode] process %d\\n\" \$\$ >&5; exec sudo -S -p \"{_PROMPT}\""
)
_PROCESS = regex(rb"\[gpunode\] process (\d{1,10})\n")
_ASKED = QUESTION.replace("[", r"\[").replace("]", r"\]")
_OWNERS = regex(_ASKED + r"(\S{1,64}) for (\S{1,64}): ")
# sudo-rs has a frame around the prompt, with PAM's own: [sudo: PROMPT] Password:
_OURS = regex(rf"(\[sudo: )?{_ASKED}\S+ for \S+: (\] Password: )?|\[gpunode\] process \d+\n")
_PLAIN = bytes(range(ord(" "), ord("~") + 1))
# The backslash first, for the others are written with one. Most of what a script of ours has; the rest takes longer.
_COMMON = ((b"\\", b"\\0134"), (b"'", b"\\0047"), (b"!", b"\\0041"), (b"\n", b"\\n"), (b"\t", b"\\t"))


def encode(script: str) -> str:
    """The script as one line that is safe in single quotes in sh, bash, zsh, csh and fish; `printf %b` decodes it."""
    raw = script.encode("utf-8", "surrogateescape")
    for byte, written in _COMMON:
        raw = raw.replace(byte, written)
    for value in set(raw.translate(None, _PLAIN)):
        raw = raw.replace(bytes((value,)), b"\\0%03o" % value)
    return raw.decode("ascii")


class Delivery:
    """One script, ready to go: the command to start and what to write to its stdin."""

    def __init__(self, argv: tuple[str, ...], payload: bytes, *, asks: bool = False, packed: bool = False) -> None:
        self.argv = argv
        self.payload = payload
        # sudo may ask for the password first: nothing is written before it asked or the script began
        self.asks = asks
        self.packed = packed  # see packed.py

    @property
    def in_argument(self) -> bool:
        return not self.payload

    @property
    def line(self) -> str:
        """For a login shell. No argument holds a quote, a newline or `!`, so single quotes are enough everywhere."""
        return _line(self.argv)


@lru_cache(maxsize=2)  # the probe, which every host is sent
def _line(argv: tuple[str, ...]) -> str:
    import shlex  # what looks at this machine needs no line

    return " ".join(f"'{word}'" if shlex.quote(word) != word else word for word in argv)


def deliver(
    script: str,
    stdin: bytes,
    *,
    become: bool = False,
    password: bool = False,
    argument: bool = True,
    terminal: bool = False,
) -> Delivery:
    """Choose the way in: in the argument when nothing follows (saves a round trip), else on stdin.

    sudo writes its command line to the system log, so with sudo the script always goes over stdin. `argument` False:
    never in the argument, for a login shell that cuts long words. `terminal`: sudo is given one.
    """
    text = encode(script)
    if argument and not become and not stdin and len(text) <= ARGUMENT_LIMIT_BYTES:
        return Delivery(("sh", "-c", _FROM_ARGUMENT, "gpunode", text), b"")
    long = not stdin and len(text) > _LONG_BYTES
    line, wrapper = (f"{len(text)}\n{text}", _LONG_FROM_STDIN) if long else (text, _FROM_STDIN)
    payload = f"\ngpunode-script:{line}\n".encode("ascii") + stdin
    return deliver_line(wrapper, payload, become=become, password=password, terminal=terminal)


def deliver_line(
    wrapper: str, payload: bytes, *, become: bool, password: bool, terminal: bool, packed: bool = False
) -> Delivery:
    """`wrapper` finds the script on stdin, behind a line that begins with "gpunode-script:"."""
    if not become:
        return Delivery(("sh", "-c", wrapper), payload, packed=packed)
    argv: tuple[str, ...] = (*as_root(password=password), "sh", "-c", _BECAME + wrapper)
    if terminal:
        words = ("sh", "-c", _TERMINAL_ASKED if password else _TERMINAL, "gpunode")
        argv = (*words, "sh", "-c", _IGNORES_HANGUPS + _BECAME + wrapper)
    return Delivery(argv, payload, asks=password, packed=packed)


def reader_line() -> str:
    """The command that every script is started with of which data follows on stdin, and that needs no sudo."""
    return deliver("", b"data").line


def as_root(*, password: bool = False) -> tuple[str, ...]:
    """The words before a command that shall run as root."""
    return ("sh", "-c", _BECOME_ASKED if password else _BECOME, "gpunode")


def asking_process(stderr: bytes | bytearray) -> int | None:
    """The process id, on the host, of the sudo that asks for a password."""
    found = _PROCESS.search(stderr)
    return int(found[1]) if found else None


def password_owners(stderr: bytes | bytearray) -> list[tuple[str, str]]:
    """(whose password sudo asked for, for whom) of each question. Names with a space in them are not read."""
    return _OWNERS.findall(stderr.decode("utf-8", "replace"))


def without_our_words(text: str) -> str:
    """What the host said, without prompts, process ids and the script of ours that sudo quotes."""
    begin, end = _BECAME + PREPARE, _EVALUATE[_EVALUATE.index("); ") :]
    while (at := text.find(begin)) >= 0 and (to := text.find(end, at)) >= 0:
        text = f"{text[:at]}...{text[to + len(end) :]}"
    return _OURS.sub("", text)
