"""Checks of a site's own: YAML files and programs in a directory (docs/reference/custom-checks.md).

They are run after gpunode's own checks were judged, so that nothing of them can explain, replace or silence one.
"""
