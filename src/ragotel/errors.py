"""Errors of setup, commands and server: each says what was asked, what is the case and what to do.

Nothing in here is ever raised inside a user's request.
"""

from __future__ import annotations


class RagotelError(Exception):
    """A fault that a person can act on; the message is one line."""


class ConfigurationError(RagotelError):
    """A setting has a value that cannot work."""


class InputError(RagotelError):
    """A file or an argument that was handed over cannot be read."""


class NotFoundError(RagotelError):
    """What was asked for is not in the store."""


class StoreError(RagotelError):
    """The store cannot be opened, reached or understood."""


class StoreBusyError(StoreError):
    """Another process holds the embedded store and no server answers for it."""


class MigrationError(StoreError):
    """The schema could not be brought up to date."""
