"""Context builders and compaction: sections, windows, summarisers, AutoCompact.

Nothing of it is in this release: the package holds its name and its place, and exports nothing yet.
"""
