"""Transcripts and the stores that keep them: Session, MemoryStore, FileStore, SQLiteStore.

Nothing of it is in this release: the package holds its name and its place, and exports nothing yet.
"""
