"""`python -m tests.lab.images [SUITE...]`: build the images; without arguments all of them."""

from __future__ import annotations

import os
import sys

from . import BUILD, SUITES

os.execv(BUILD, [str(BUILD), *(sys.argv[1:] or SUITES.values())])
