"""Campaigns: runs that take longer than a test: the long tier, random records in volume, and mutants."""
