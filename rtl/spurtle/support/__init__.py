"""Errors for users, numbers as text, standard streams, and output files that are written completely or not at all."""
