"""Objects of the Kubernetes API as the YAML that `kubectl apply -f -` takes. The one place that writes YAML.

Objects are mappings that functions built, never text that was filled in: no value becomes a key or a second object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpunode.regex import regex

Object = Mapping[str, object]

# What YAML 1.2 and Go's reader (sigs.k8s.io/yaml, which kubectl has) take for something else, and PyYAML, of YAML 1.1,
# for a text. Go leaves underscores out first, wherever they stand.
_OTHERWISE = regex(
    r"[yYnN]"
    r"|[-+]?0[xX][0-9a-fA-F]+"
    r"|[-+]?0[oO][0-7]+"
    r"|[-+]?0[bB][-+]?[01]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?",
    re.ASCII,
)


def documents(objects: Sequence[Object], head: str = "") -> str:
    """One document for each object, in their order. `head`: a comment above them, line by line."""
    import yaml  # 50 ms, and most verbs write none

    class Plain(yaml.SafeDumper):
        """No anchors, lists below their key by two, long texts as they stand."""

        def ignore_aliases(self, data: object) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def represent_text(self, text: str) -> yaml.Node:
            """Several lines as a block, as people write a file into a ConfigMap."""
            style = "|" if "\n" in text and text.isascii() else "'" if _reads_otherwise(text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Plain.add_representer(str, Plain.represent_text)
    texts = (yaml.dump(one, Dumper=Plain, sort_keys=False, width=1000) for one in objects)
    return _comment(head) + "---\n".join(texts)


def _reads_otherwise(text: str) -> bool:
    return _OTHERWISE.fullmatch(text.replace("_", "")) is not None


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
