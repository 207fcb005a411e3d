"""What every test of auto-instrumentation uses: the public fixture, all libraries hooked."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

# Otherwise LiteLLM asks the network for prices when it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
from laws import Patched
from model_server import serving

from ragotel import instrument
from ragotel.testing import Recorded, recording


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Everything that the test's service records, with the hooks in place."""
    with recording() as sink:
        yield sink
        gc.collect()
    instrument.uninstrument()


@pytest.fixture
def patched() -> Iterator[Patched]:
    """Compares what the hooks patch with what was there before."""
    yield Patched()
    instrument.uninstrument()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of a server that speaks the model services' APIs."""
    with serving() as address:
        yield address
