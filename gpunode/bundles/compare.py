"""Two bundles side by side."""

from __future__ import annotations

from gpunode.model.bundle import Manifest, Target


def differences(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """A line for each package that only one has, or that both have in different versions or with different bytes."""
    before, after = _packages(old), _packages(new)
    lines = [] if old.target == new.target else [f"target {_of(old.target)} -> {_of(new.target)}"]
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name, {}), after.get(name, {})
        gone, come = sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())
        if gone or come:
            lines.append(f"{name} {', '.join(gone) or 'absent'} -> {', '.join(come) or 'absent'}")
        lines += [f"{name} {v}: other bytes" for v in sorted(one.keys() & other.keys()) if one[v] != other[v]]
    return tuple(lines)


def _of(target: Target) -> str:
    return f"{target} on {target.machine}"


def _packages(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Name -> version -> SHA-256 of its file."""
    found: dict[str, dict[str, str]] = {}
    for one in manifest.packages:
        found.setdefault(one.name, {})[one.version] = manifest.files[one.path].sha256
    return found
