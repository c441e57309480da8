"""Objects of the Kubernetes API as the YAML that `kubectl apply -f -` takes. The one place that writes YAML.

Objects are mappings that functions built, never text that was filled in: no value becomes a key or a second object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Object = Mapping[str, object]


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
            return self.represent_scalar(
                "tag:yaml.org,2002:str", text, style="|" if "\n" in text and text.isascii() else None
            )

    Plain.add_representer(str, Plain.represent_text)
    texts = (yaml.dump(one, Dumper=Plain, sort_keys=False, width=1000) for one in objects)
    return _comment(head) + "---\n".join(texts)


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
