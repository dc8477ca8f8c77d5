"""Campaigns: runs that take longer than a test may."""
