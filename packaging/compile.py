"""Makes Python's bytecode and the catalog's JSON once, at install: root's; other users can only read them."""

import compileall
import re
import sys

sys.path.insert(0, "/usr/lib/gpunode/lib")
compileall.compile_dir("/usr/lib/gpunode/lib", quiet=2, rx=re.compile(r"/rich/_emoji_codes"))

from gpunode.catalog.documents import read_all  # noqa: E402

read_all()
