"""What containerd starts on and its CRI does not load with is found before a restart, by file and line.

tests/lab/test_containerd_cases.py puts the same rows to the daemons themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpunode.errors import ConfigFileError
from gpunode.model.spec import RuntimeSpec
from tests.engines.test_containerd import PATH, V2, rewrite

V16, V17, V21 = "1.6.20", "1.7.24", "2.1.9"
VERSIONS = (V16, V17, V21)


@dataclass(frozen=True)
class Row:
    claim: str
    text: str  # after the line that says version = 2
    line: int
    dies: tuple[str, ...] = VERSIONS  # in these CRI does not load
    default: bool = True  # nvidia becomes the default
    mended: bool = False  # they do not load, and gpunode's own change puts it right

    @property
    def whole(self) -> str:
        return f"version = 2\n{self.text}"


CRI = f'[plugins."{V2}"'
RUNC = f'{CRI}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
PATHS = 'config_path = "/etc/containerd/certs.d"\n'
MIRROR = f'{CRI}.registry.mirrors."docker.io"]\nendpoint = ["https://mirror.example"]\n'
ROWS = (
    Row("no duration", f'{CRI}]\nstream_idle_timeout = "soon"\n', 3),
    Row("a number without its unit", f'{CRI}]\n# s?\nstream_idle_timeout = "30"\n', 4),
    Row("a good duration", f'{CRI}]\nstream_idle_timeout = "1h0.5m"\n', 0, ()),
    Row("no duration at all", f'{CRI}]\nstream_idle_timeout = ""\n', 0, ()),
    Row("no drain time", f'{CRI}]\ndrain_exec_sync_io_timeout = "x"\n', 3, (V17, V21)),
    Row("no pull time", f'{CRI}]\nimage_pull_progress_timeout = "x"\n', 3, (V17, V21)),
    Row("mirrors together with a path", f"{CRI}.registry]\n{PATHS}{MIRROR}", 4),
    Row("mirrors alone", MIRROR, 0, ()),
    Row("a path alone", f"{CRI}.registry]\n{PATHS}", 0, ()),
    Row(
        "certificates together with a path",
        f'{CRI}.registry]\n{PATHS}{CRI}.registry.configs."r.example".tls]\ninsecure_skip_verify = true\n',
        4,
        (V16, V17),
    ),
    Row(
        "a password together with a path",
        f'{CRI}.registry]\n{PATHS}{CRI}.registry.configs."r.example".auth]\nusername = "me"\n',
        0,
        (),
    ),
    Row("the old cgroup switch", f"{CRI}]\nsystemd_cgroup = true\n", 3, (V16, V17)),
    Row("the old cgroup switch is off", f"{CRI}]\nsystemd_cgroup = false\n", 0, ()),
    Row("the old shim's engine", f'{RUNC}runtime_engine = "/usr/bin/crun"\n', 4, (V16, V17)),
    Row("the old shim's root", f'{RUNC}runtime_root = "/run/crun"\n', 4, (V16, V17)),
    Row(
        "an unknown default",
        f'{RUNC}{CRI}.containerd]\ndefault_runtime_name = "crun"\n',
        5,
        default=False,
    ),
    Row("an unknown default, replaced", f'{RUNC}{CRI}.containerd]\ndefault_runtime_name = "crun"\n', 0, mended=True),
)


def refused(row: Row, version: str) -> str | None:
    try:
        rewrite(row.whole, version, RuntimeSpec(default=row.default))
    except ConfigFileError as error:
        return error.problem
    return None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.claim)
def test_what_cri_does_not_load_with_is_refused_with_its_place(row: Row, version: str) -> None:
    said = refused(row, version)
    if version in row.dies and not row.mended:
        assert said is not None
        assert said.startswith(f"{PATH}:{row.line}: ")
    else:
        assert said is None


def test_the_file_that_sets_it_is_named() -> None:
    other = "/etc/containerd/conf.d/10-site.toml"
    files = {PATH: f'version = 2\nimports = ["{other}"]\n', other: ROWS[0].whole}
    with pytest.raises(ConfigFileError, match=f"^{other}:3: "):
        rewrite(files[PATH], V21, files=files)


@pytest.mark.parametrize(("version", "refuses"), [(V16, True), (V17, True), (V21, False)])
def test_a_name_that_containerd_1_reads_letter_by_letter_is_refused(version: str, refuses: bool) -> None:
    """Seen with 1.6.20 and 1.7.24: the file's runc is not among their handlers then."""
    row = Row("an escape", RUNC.replace("runtimes.runc", r'runtimes."r\u0075nc"'), 2)
    assert (f"{PATH}:2: " in (refused(row, version) or "")) is refuses
