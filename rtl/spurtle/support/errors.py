"""Error that is shown to the user as one sentence, and exit statuses."""

__all__ = ["PROFILE_FAILED", "SIGNAL_STATUS", "UserError"]

PROFILE_FAILED = 125
"""Exit status of `spurtle profile` if it failed itself, as for `env` and `timeout`.

Other values come from the program that it runs."""

SIGNAL_STATUS = 128
"""Added to the number of a fatal signal in the exit status, as in a shell."""


class UserError(Exception):
    """Error in the input of the user. The message names it and describes what is allowed.

    The `spurtle` command exits with status 2, `spurtle profile` with PROFILE_FAILED.
    """
