"""YAML -> Spec, and flags -> Spec by the same table."""

from gpunode.specfile.document import LONGEST
from gpunode.specfile.file import SpecFile, load_file, load_spec, parse_file, parse_spec, spec_text
from gpunode.specfile.keys import KEYS, put, put_all
from gpunode.specfile.layers import layer_in_file, layer_of
from gpunode.specfile.snapshot import expectation_text, load_expectation, parse_expectation

__all__ = [
    "KEYS", "LONGEST", "SpecFile", "expectation_text", "layer_in_file", "layer_of", "load_expectation", "load_file",
    "load_spec", "parse_expectation", "parse_file", "parse_spec", "put", "put_all", "spec_text",
]  # fmt: skip
