"""Modules without knowledge of the SPU: arguments, numbers, files, streams, errors and the version."""
