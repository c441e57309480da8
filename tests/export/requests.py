"""What tests export: a stand-in for gpunode's bytes, which is no zipapp and runs as one (#! and the words it got)."""

from __future__ import annotations

from gpunode.export.files import Carried, Request

SPEC = 'driver: "580"\nmirror: "file:///srv/nvidia"\n'
STAND_IN = b"import sys\nprint('stand-in ran', *sys.argv[1:])\n"


def request(zipapp: bytes = STAND_IN, *words: str, spec: str = SPEC, **source: str) -> Request:
    return Request(spec, words, Carried(zipapp, **source), "0.0")
