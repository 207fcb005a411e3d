"""A receiver that notes what it gets, and answers as a test tells it to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from receiver import Receiver, http_receiver


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def url(receiver: Receiver) -> Iterator[str]:
    with http_receiver(receiver) as base:
        yield base
