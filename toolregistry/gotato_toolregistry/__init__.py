"""Tools by the dozen: Registry, tool sets, the full JSON Schema compiler, effect ceilings, approvals.

Nothing of it is in this release: the package holds its name and its place, and exports nothing yet.
"""
