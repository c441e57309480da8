"""YAML -> Spec, and flags -> Spec by the same table."""

from gpunode.specfile.document import LONGEST
from gpunode.specfile.file import SpecFile, key_texts, load_file, load_spec, parse_file, parse_spec, spec_text
from gpunode.specfile.keys import IDLE, KEYS, idle_keys, put, put_all
from gpunode.specfile.layers import layer_in_file, layer_of
from gpunode.specfile.lock import Lock, load_expectation, load_lock, lock_of, lock_text, parse_lock
from gpunode.specfile.rules import rules_text
from gpunode.specfile.snapshot import expectation_text, parse_expectation

__all__ = [
    "IDLE", "KEYS", "LONGEST", "Lock", "SpecFile", "expectation_text", "idle_keys", "key_texts", "layer_in_file",
    "layer_of", "load_expectation", "load_file", "load_lock", "load_spec", "lock_of", "lock_text", "parse_expectation",
    "parse_file", "parse_lock", "parse_spec", "put", "put_all", "rules_text", "spec_text",
]  # fmt: skip
