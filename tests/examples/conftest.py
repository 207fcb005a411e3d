"""What every test of the examples uses: their own module, a model's server, a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from served import REPOSITORY

sys.path.append(str(REPOSITORY / "examples"))

from chat_server import Chat, chat_server


@pytest.fixture(scope="module")
def chat() -> Iterator[Chat]:
    """A server that speaks OpenAI's API."""
    with chat_server() as serving:
        yield serving
