"""The one error that a user is shown as a sentence, and an exit status for it."""

__all__ = ["PROFILE_FAILED", "UserError"]

PROFILE_FAILED = 125
"""Exit status of `spurtle profile` where it failed itself, as of `env` and `timeout`: any other is the program's."""


class UserError(Exception):
    """What the user gave cannot be used: the message names it and says what is allowed. The `spurtle` command exits
    with status 2, `spurtle profile` with PROFILE_FAILED.
    """
