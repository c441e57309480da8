"""docs/reference/json.md, made from the dataclasses: `gpunode catalog schema` prints it."""

from __future__ import annotations

import json
from typing import Any

from gpunode.model.fix import ByHand
from gpunode.remedy import RepairAction
from gpunode.render.json_schema import json_schema
from gpunode.render.machine import RESULTS

HEAD = """# JSON

What `--json` and `--format jsonl` print. Made by `gpunode catalog schema`; edits here are lost.

| printed by | `schema` | each host has |
|---|---|---|
"""
HOSTS = {
    "detect": "`facts`",
    "plan": "`plan`",
    "setup": "`plan` or `run`",
    "undo": "`plan` or `run`",
    "check": "`checks`",
    "fix": "`checks` and `plan` or `run`; after a run `findings_before` and `gone`",
}
TYPED = {"fix": "check --fix"}
RULES = """
- `--json` prints one document with `hosts` and `seconds_s`; `--format jsonl` one line a host, with `schema` in it.
  `detect` and `check` print it into a pipe as soon as that host has ended; a run that is stopped lacks the rest.
- `setup` and `undo` with `--format jsonl` print into a pipe what happens as it happens: `event` lines, and each host's
  result as soon as it has ended. `schema` says which a line is. With `--output` the file has the results alone.
- Every host has `target` and `code` ([exit codes](exit-codes.md)), and `problem`, `evidence`, `remedy` if it failed.
  `check_id` with them is the check that it fails, where it was not reached
  ([which](check-outputs.md#several-hosts-in-one-run)). One that `--where` left out has `left_out_why`, and code 0.
- A `remedy` is `text` for the user, `action` for a program, and `command`, the words of gpunode's own command in it, as
  typed on the host itself (`[]` where gpunode has none). `text` is "" where nothing is to be done. The actions:
ACTIONS
- A check that passes has `evidence` where it found something worth knowing, as `os.cpu-governor` does.
- A finding's `fix` is what `check --fix` does about it: `safe`, with the `setup` and the `steps` of its plan; or not,
  with the reason in `by_hand` and in words in `why`. The reasons:
REASONS
- null is "not known" or "there is none", never "fine". A name ends in `_s` for seconds and in `_bytes` for bytes.
- A new key does not change the number in `schema`; a key that goes or changes its meaning raises it. So read what you
  know and ignore the rest, or validate with `gpunode catalog schema --json` of the gpunode that printed it.
- What fails before any host was probed is on stderr alone; `error` is the form that it will have on stdout.
- Secrets are `MASKED`. The file of `plan --save` is no result: it is for `setup --plan` of the same gpunode.
  Its form is `saved-plan`: the secrets of its files are in it, and hashes that what is printed lacks.
- `event` is a line of the log that `setup` and `undo` keep of a host (`$XDG_STATE_HOME/gpunode/runs/TIME/HOST.jsonl`):
  what began or ended, and when. The last line of a log is the host's result, `setup-line` or `undo-line`.
- What `gpunode runs --json` prints is on [the page about runs](../how-to/runs.md#for-programs).
- `plan.driver` is the choice of the driver: `reasons`, `alternatives` (`option` is the option that selects it, "" where
  this host cannot have it), `end_of_support`, and `confidence`, how sure the catalog is: `documented` is from a named
  source, `inferred` follows from one, `unverified` was recalled and not looked up again.

## The schema

[JSON Schema](https://json-schema.org/draft/2020-12) of all of them: `$defs` names each document by its verb, then the
values in it.

"""


def json_page() -> str:
    """The page in Markdown, with a newline at its end."""
    rows = [f"| `gpunode {TYPED.get(verb, verb)}` | `{schema}` | {HOSTS[verb]} |" for verb, schema in RESULTS.items()]
    actions = "\n".join(f"  - `{action.value}`: {action.meaning}" for action in RepairAction)
    reasons = "\n".join(f"  - `{reason.value}`: {reason.meaning}" for reason in ByHand)
    rules = RULES.replace("ACTIONS", actions).replace("REASONS", reasons)
    return HEAD + "\n".join(rows) + "\n" + rules + f"```json\n{laid_out(json_schema())}\n```\n"


def laid_out(schema: dict[str, Any]) -> str:
    """The schema with a line for each key of a definition, so that a new key is one line of a diff."""
    parts = {name: json.dumps(part, ensure_ascii=False) for name, part in schema.items() if name != "$defs"}
    lines = [f'  "{name}": {text},' for name, text in parts.items()] + ['  "$defs": {']
    definitions = [_definition(name, one) for name, one in schema["$defs"].items()]
    return "\n".join(["{", *lines, ",\n".join(definitions), "  }", "}"])


def _definition(name: str, one: dict[str, Any]) -> str:
    if "properties" not in one:
        return f'    "{name}": {json.dumps(one, ensure_ascii=False)}'
    rest = {key: value for key, value in one.items() if key != "properties"}
    keys = [f'      "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in one["properties"].items()]
    head = json.dumps(rest, ensure_ascii=False)[1:-1]
    return f'    "{name}": {{{head}, "properties": {{\n' + ",\n".join(keys) + "\n    }}"
