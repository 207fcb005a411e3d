"""Identity: the resource and the scope that every message carries.

Pipeline: settings -> [identity] -> transport
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from ragotel.model import AttributeValue
from ragotel.settings import Settings

SCOPE_NAME = "ragotel"


def scope_version() -> str:
    """Give ragotel's own version; empty where it runs from a folder that was never installed."""
    try:
        return version("ragotel")
    except PackageNotFoundError:
        return ""


def resource_attributes(settings: Settings) -> Mapping[str, AttributeValue]:
    """Describe this process; what the user set wins."""
    return {
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "ragotel",
        "telemetry.sdk.version": scope_version(),
        "process.pid": os.getpid(),
        **settings.resource,
        "service.name": settings.service_name,
    }
