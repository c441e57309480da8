"""Flags and a spec's rules -> how a check weighs what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from gpunode.advice import listing, meant
from gpunode.catalog.profiles import profiles
from gpunode.checks import check_ids
from gpunode.checks.rules.judged import EXPECTATIONS, Judgement
from gpunode.checks.rules.patterns import first_match, parse_patterns, refuse_unknown
from gpunode.cli.options.groups import CheckOptions, RuleOptions, typed
from gpunode.errors import UsageError
from gpunode.model.rules import AUTO, Rules
from gpunode.model.spec import Expectation
from gpunode.specfile import SpecFile, load_expectation


def judgement(options: RuleOptions, rules: Rules, foreign: Sequence[str] = ()) -> Judgement:
    """Raises UsageError for a check, a group or a profile that does not exist: a typing error leaves nothing out.
    `foreign`: the ids of the site's own checks.
    """
    ids = (*check_ids(), *foreign)
    for id, _ in rules.severity:
        refuse_unknown("severity", id, ids)
    for one in rules.acknowledge:
        refuse_unknown("acknowledge", one.id, ids)
    profile = options.profile or rules.profile
    if profile != AUTO and profile not in profiles():
        raise UsageError(
            f"there is no profile {profile[:80]!r}",
            evidence=f"{meant(profile[:80], (AUTO, *profiles()))}the profiles are {', '.join((AUTO, *profiles()))}",
            remedy="choose one of them with --profile, or with profile in the spec",
        )
    only, skip = (parse_patterns(f, t or (), ids) for f, t in (("--only", options.only), ("--skip", options.skip)))
    by = "--profile" if options.profile else "the spec"
    return Judgement(replace(rules, profile=profile), only, skip, by, drift=options.against is not None)


def held_against(options: RuleOptions, wanted: CheckOptions, file: SpecFile) -> SpecFile:
    """`file` with the expectations of --against. Raises UsageError for a second opinion on what is expected."""
    if options.against is None:
        return file
    others: list[str] = [flag for flag in ("--expect", "--expect-gpus") if flag in typed(wanted)]
    others += ["--profile"] * (options.profile is not None)
    if others or file.spec.expect != Expectation():
        raise UsageError(
            f"{others[0] if others else 'expect of the spec'} and --against exclude each other",
            evidence="--against compares with what its file says, and asks for no opinion",
            remedy="leave one of them out",
        )
    return replace(file, spec=replace(file.spec, expect=load_expectation(options.against)))


def refuse_idle(rules: Judgement, expected: Iterable[Expectation], foreign: Sequence[str] = ()) -> None:
    """Raises UsageError where no check is left, or where only comparisons are asked for and nothing that is `expected`
    of the hosts is left to compare: a check without a finding would look as if all were well. `foreign`: as of
    `judgement`.
    """
    asked = {id for id in (*check_ids(), *foreign) if rules.wants(id)}
    typed_words = (("--only", rules.only), ("--skip", rules.skip))
    flags = " ".join(f"{flag} {','.join(words)[:80]}" for flag, words in typed_words if words)
    if not asked and not rules.drift:
        raise UsageError(
            f"{flags} leaves nothing to check",
            evidence="what --skip names is left out, also where --only names it",
            remedy="leave one of them out" if rules.only else "leave it out",
        )
    if not rules.drift and not (rules.only and all(first_match(id, EXPECTATIONS) for id in asked)):
        return
    compared = {id for one in expected for id in _compared(one)}
    if compared & asked:
        return
    raise UsageError(
        f"{flags} leaves nothing to compare",
        evidence=f"what is expected is checked by {listing(sorted(compared))}" if compared else "nothing is expected",
        remedy="leave it out, or choose among those" if compared else "say what is expected: --expect, or --against",
    )


def _compared(expected: Expectation) -> set[str]:
    """The checks that compare a host with it."""
    keys = (one.name for one in fields(expected) if getattr(expected, one.name) is not None)
    return {"pci.expected-count" if key == "gpus" else f"expect.{key.replace('_', '-')}" for key in keys}
