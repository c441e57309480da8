"""The catalog's rows about engines, for rooms that do not see the catalog; imports nothing heavy."""

from __future__ import annotations

from gpunode.catalog.runtimes import Carrier as Carrier
from gpunode.catalog.runtimes import carriers as carriers
