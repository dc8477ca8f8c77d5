"""The proof engine."""
