"""Broken recordings, key files, plans, specs and config files through every verb, inside one process with limits.

    python -m tests.hostile.mutate FOLDER SEED COUNT

Every mutation is made from its own number, so one that failed is repeated with `FOLDER NUMBER 1`. Prints a line for
each failure, and last "done COUNT PEAK_MIB". Whatever the product opens for writing outside FOLDER, starts or connects
to is a failure of its own, found by an audit hook.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpunode.errors import ExitCode
from gpunode.facts.wire import Section, Sections, decode, encode, file_facts
from gpunode.packages.openpgp import primary_fingerprints
from tests.hostile.openpgp import Key, armored, packet

ROOT = Path(__file__).parent.parent.parent
HOSTS = sorted((ROOT / "examples" / "hosts").iterdir())
SPECS = sorted((ROOT / "examples" / "specs").iterdir())
CONFIGS = sorted(
    p for e in ("docker", "containerd", "crio", "toolkit_config") for p in (ROOT / "tests/engines" / e).rglob("*.*")
)
CODES = {int(code) for code in ExitCode}
MEMORY_BYTES, CPU_S = 3 << 30, 60  # one mutation may not need more than the second of them
ODD = (
    *(
        "",
        " ",
        "\0",
        "-1",
        "0",
        "²",
        "١",
        "1e999",
        "NaN",
        "-",
        "%s",
        "\\",
        '"',
        "'",
        "\ufeff",
        "\u202e",
        "\x1b[31m",
        "\r",
    ),
    *(
        "9" * 20,
        "9" * 5000,
        "x" * 70_000,
        "[" * 3000,
        "{" * 3000,
        '{"a":' * 3000,
        "null",
        "true",
        "[]",
        "{}",
        "../" * 50,
    ),
    *(
        '"\\ud800"',
        "\udcff",
        "0x",
        "0xzzzz",
        "1.2.3.4.5.6",
        "٥٨٠.١.٢",
        "580",
        "a b",
        "|",
        "@end",
        "@ os rc=0",
        "=",
        ":",
    ),
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    1e300,
    "",
    "x",
    "\0",
    "²",
    "\udcff",
    [],
    {},
    [[]],
    {"a": {}},
    "9" * 5000,
)


def main(directory: Path, seed: int, count: int) -> None:
    (directory / "state").mkdir(parents=True, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(directory / "state")
    os.environ["HOME"] = str(directory)
    os.chdir(directory)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    _run(["catalog", "gpus"])  # everything that is loaded once is loaded
    plans = _plans(directory)
    broken: list[str] = []
    sys.addaudithook(_watch(str(directory.resolve()), broken))
    for number in range(count):
        chance = random.Random(seed + number)
        argv = chance.choice(KINDS)(chance, directory, plans)
        _limit(f"{seed + number}: over {CPU_S} s of CPU: {argv}")
        code, said = _run(argv)
        faults = [*broken, *_faults(code, said)]
        broken.clear()
        for fault in faults:
            print(f"{seed + number}: {fault}: {argv}: {said[-300:]!r}")
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"done {count} {_peak_mib()}")


def _peak_mib() -> int:
    """VmHWM of proc(5). Not ru_maxrss, which starts with that of the process that forked this one."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def _faults(code: object, said: str) -> Iterator[str]:
    if code not in CODES:
        yield f"exit code {code!r}"
    for word in ("internal error", "Traceback (most recent"):
        if word in said:
            yield word


def _run(argv: list[str]) -> tuple[object, str]:
    """(exit code, everything printed) of one command line."""
    from gpunode.cli.app import main as gpunode

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _no_input():
        try:
            code: object = gpunode(argv)
        except BaseException as escaped:
            code = repr(escaped)
    printed = (stream.buffer.getvalue() for stream in (out, err))
    return code, "".join(text.decode("utf-8", "replace") for text in printed)


@contextlib.contextmanager
def _no_input() -> Iterator[None]:
    kept, sys.stdin = sys.stdin, io.StringIO()
    try:
        yield
    finally:
        sys.stdin = kept


def _limit(words: str) -> None:
    def stop(*_: object) -> None:
        os.write(1, f"{words}\n".encode())
        os._exit(1)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)


def _watch(directory: str, broken: list[str]) -> Callable[[str, tuple[Any, ...]], None]:
    """Notes what is written outside the directory, started or connected to."""
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    changes = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.chmod", "os.truncate")
    starts = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "socket.bind")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in starts:
            broken.append(f"{event} {arguments!r:.200}")
        elif event in changes or (event == "open" and isinstance(arguments[2], int) and arguments[2] & writes):
            path = arguments[0]
            if isinstance(path, (str, bytes)) and not _is_below(os.fsdecode(path), directory):
                broken.append(f"{event} {path!r:.200}")

    return hook


def _is_below(path: str, directory: str) -> bool:
    whole = os.path.abspath(path)
    return whole.startswith(f"{directory}/") or whole == os.devnull or "__pycache__" in whole


# ---- what is broken


def _recording(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    stream = (chance.choice(HOSTS) / "facts.txt").read_bytes()
    sections = decode(stream)
    for _ in range(chance.randint(1, 6)):
        sections = _odd_section(chance, sections)
    stream = encode(sections)
    if chance.random() < 0.3:
        stream = _odd_bytes(chance, stream)
    path = directory / "facts.txt"
    path.write_bytes(stream)
    words = [*chance.choice(READERS), "--recorded", str(path)]
    if words[0] in ("plan", "setup", "check") and chance.random() < 0.5:
        words += chance.choice(CHECK_WISHES if words[0] == "check" else WISHES)
    return [*words, *chance.choice(FORMS)]


def _key_file(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    """A keyring of the host, as the probe hands it over and as its entry of the vendor's repository holds it."""
    keyring = chance.choice(KEYRINGS)
    for _ in range(chance.randint(0, 4)):
        keyring = _odd_bytes(chance, keyring)
    with contextlib.suppress(ValueError):
        primary_fingerprints(keyring)
    line = f"{KEY_PATH} {base64.b64encode(keyring).decode()}\n"
    if chance.random() < 0.3:
        line = _ended(_odd_text(chance, line))
    inline = "".join(f"\n {line or '.'}" for line in keyring.decode("utf-8", "replace").split("\n"))
    entry = f"Types: deb\nURIs: {KEY_URL}\nSuites: /\nSigned-By: {chance.choice((KEY_PATH, inline))}\n"
    sections = decode((chance.choice(APT_HOSTS) / "facts.txt").read_bytes())
    commands = {**sections.commands, "sources": Section(f"{KEY_ENTRY}\n"), "keyring_bytes": Section(line)}
    path = directory / "facts.txt"
    path.write_bytes(encode(Sections(commands, {**sections.files, KEY_ENTRY: file_facts(KEY_ENTRY, entry)})))
    return [*chance.choice(READERS), "--recorded", str(path), *chance.choice(FORMS)]


VENDOR, STRANGER = Key("vendor"), Key("stranger")
KEYRINGS = (
    *(VENDOR.block, armored(VENDOR.block), VENDOR.block + VENDOR.subkey(STRANGER), b"x\n" + armored(VENDOR.block) * 2),
    bytes([0x99]) + len(VENDOR.public).to_bytes(2, "big") + VENDOR.public + packet(12, b"\0") + STRANGER.block,
)
KEY_PATH, KEY_ENTRY = "/usr/share/keyrings/cuda-archive-keyring.gpg", "/etc/apt/sources.list.d/cuda.sources"
KEY_URL = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"
APT_HOSTS = [host for host in HOSTS if host.name.startswith("debian12")]  # whose repository that is
READERS = (
    ["detect"],
    ["plan"],
    ["plan", "--explain"],
    ["check"],
    ["setup"],
    ["undo"],
    ["runtime", "show"],
    ["plan", "-v"],
)
CHECK_WISHES = (["--cdi"], ["--runtime", "docker,containerd"], ["--toolkit", "none"], ["--expect-gpus", "8"])
FORMS: tuple[list[str], ...] = ([], [], ["--json"], ["-v"], ["--format", "jsonl"], ["--output", "out.txt"])
WISHES = (
    ["--driver", "580"], ["--driver", "none"], ["--flavour", "open"], ["--mig", "all=1g.10gb:7"], ["--cuda", "13.0"],
    ["--cdi"], ["--runtime", "docker,containerd"], ["--driver-source", "distro"], ["--no-hold"],
    ["--ctk-set", "no-cgroups=true"], ["--only", "runtime"], ["--allow-no-gpu"], ["--reboot", "if-needed"],
)  # fmt: skip


def _odd_section(chance: random.Random, sections: Sections) -> Sections:
    commands, files = dict(sections.commands), dict(sections.files)
    if files and chance.random() < 0.35:
        path = chance.choice(sorted(files))
        files[path] = file_facts(path, _odd_text(chance, files[path].text or "{}\n"))
    else:
        name = chance.choice(sorted(commands))
        rc = chance.choice((0, 0, 0, 0, 1, 127, 124, 999_999_999))
        commands[name] = Section(_ended(_odd_text(chance, commands[name].text)), rc)
    return Sections(commands, files)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _odd_text(chance: random.Random, text: str) -> str:
    """One line of it, one word of a line, or all of it is something else."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    match chance.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        case 2:
            lines[at] = chance.choice(ODD)
        case 3:
            return chance.choice(ODD) * chance.choice((1, 1, 3))
        case 4:
            lines[at] = lines[at][: chance.randint(0, len(lines[at]))]
        case _:
            words = [word for sign in '=:|,/ \t"' for word in lines[at].split(sign) if word]
            if words:
                lines[at] = lines[at].replace(chance.choice(words), chance.choice(ODD), 1)
    return "\n".join(lines)


def _odd_bytes(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + chance.randbytes(chance.randint(1, 40)) + data[at:]
        case 2:
            return data[:at] + chance.choice(ODD).encode("utf-8", "surrogateescape") + data[at + chance.randint(0, 9) :]
        case _:
            end = min(len(data), at + chance.randint(1, 500))
            return data[:at] + data[end:]


def _plans(directory: Path) -> list[Path]:
    made = []
    for host in HOSTS[:: max(1, len(HOSTS) // 6)]:
        path = directory / f"{host.name}.json"
        _run(["plan", "--recorded", str(host), "--save", str(path)])
        if path.exists():
            made.append(path)
    return made


def _plan(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    source = chance.choice(plans)
    path = directory / "plan.json"
    if chance.random() < 0.3:
        path.write_bytes(_odd_bytes(chance, source.read_bytes()))
    else:
        data = json.loads(source.read_text())
        for _ in range(chance.randint(1, 3)):
            _odd_node(chance, data)
        path.write_text(json.dumps(data))
    host = ROOT / "examples" / "hosts" / source.stem
    return ["setup", "--plan", str(path), "--recorded", str(host), *chance.choice(FORMS)]


def _odd_node(chance: random.Random, data: Any) -> None:
    """Some value in the tree becomes another, goes, or gets a sibling."""
    node = data
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and chance.random() < 0.85:
            node = node[key]
            continue
        if chance.random() < 0.2:
            del node[key]
        else:
            node[key] = copy.deepcopy(chance.choice(VALUES))
        return


def _spec(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    text = chance.choice(SPECS).read_text()
    for _ in range(chance.randint(1, 4)):
        text = _odd_text(chance, text)
    path = directory / "spec.yaml"
    path.write_bytes(_odd_bytes(chance, text.encode("utf-8", "surrogateescape")) if chance.random() < 0.3 else
                     text.encode("utf-8", "surrogateescape"))  # fmt: skip
    return [chance.choice(("plan", "setup", "check")), "--recorded", str(chance.choice(HOSTS)), "--spec", str(path)]


def _config(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    source = chance.choice(CONFIGS)
    text = source.read_bytes().decode("utf-8", "surrogateescape")
    for _ in range(chance.randint(0, 4)):
        text = _odd_text(chance, text)
    data = text.encode("utf-8", "surrogateescape")
    engine = source.relative_to(ROOT / "tests" / "engines").parts[0]
    path = directory / "etc" / ("daemon.json" if engine == "docker" else "config.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_odd_bytes(chance, data) if chance.random() < 0.3 else data)
    name = "nvidia-container-runtime" if engine == "toolkit_config" else engine
    more = (
        ["--ctk-set", "no-cgroups=true"]
        if engine == "toolkit_config"
        else chance.choice(([], ["--no-set-as-default"], ["--cdi"]))
    )
    form = chance.choice(([], ["--diff"], ["--dry-run"], ["--json", "--diff"], ["--dry-run", "--diff"]))
    return ["runtime", "configure", name, "--config", str(path), *more, *form]


def _words(chance: random.Random, directory: Path, plans: list[Path]) -> list[str]:
    """A command line of odd words; none of them can reach a host."""
    odd = chance.choice(ODD).replace("\0", "\x01")
    host = str(chance.choice(HOSTS))
    lines = (
        ["plan", "--recorded", host, chance.choice(FLAGS), odd],
        ["check", "--recorded", host, chance.choice(FLAGS), odd],
        ["check", "--explain", odd],
        ["catalog", "gpus", "--id", odd],
        ["catalog", odd],
        ["runtime", "show", odd, "--recorded", host],
        ["runtime", "configure", "docker", "--config", str(directory / "etc" / "new.json"), "--name", odd],
        ["undo", "--recorded", host, "--run", odd],
    )
    return chance.choice(lines)


FLAGS = (
    *("--driver", "--toolkit", "--cuda", "--mig", "--runtime", "--only", "--mirror", "--trust-key", "--proxy"),
    *("--expect-gpus", "--ctk-set", "--flavour"),
)
KINDS = (_recording, _recording, _recording, _recording, _key_file, _plan, _spec, _config, _config, _words)

if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
