"""Proofs of the packet serializer."""
