"""The one error that a user is shown as a sentence."""

__all__ = ["UserError"]


class UserError(Exception):
    """What the user gave cannot be used: the message names it and says what is allowed. The `spurtle` command exits
    with status 2.
    """
