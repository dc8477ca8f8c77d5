"""Modules without knowledge of the SPU: arguments, files, streams, errors and the version."""
