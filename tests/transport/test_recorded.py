from __future__ import annotations

import pytest

from gpunode.errors import GpunodeError
from gpunode.transport.recorded import PROBE_MARK, Recorded


def test_the_probe_gets_the_recording() -> None:
    host = Recorded(b"@gpunode-facts 1\n@end\n", "gpu07")
    assert host.run(f"echo '{PROBE_MARK}'", timeout_s=1).stdout == b"@gpunode-facts 1\n@end\n"


def test_every_other_script_is_refused_with_a_sentence() -> None:
    with pytest.raises(GpunodeError, match="gpu07 is a recorded host"):
        Recorded(b"", "gpu07").run("rm -rf /", timeout_s=1)
