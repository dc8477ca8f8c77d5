"""Ports that a core connects to: signatures and payloads.

The core reports architectural facts. The SPU encodes, gates and rounds them.
"""
