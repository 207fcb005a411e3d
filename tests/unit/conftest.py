"""What every unit test of the emit half uses: the product's own public fixture."""

from ragotel.testing import recorded

__all__ = ["recorded"]
