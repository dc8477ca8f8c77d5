"""The proof engine: terms, transition relations, induction, cover checks, comparison with the reference model."""
