"""TLS: the certificate that all listeners of the server show, read and tried before any of them.

Pipeline: `ragotel serve --tls-cert --tls-key` -> [tls] -> OTLP receivers | ClickHouse interface
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from ragotel.errors import ConfigurationError


@dataclass(frozen=True)
class Tls:
    """A certificate chain and its private key, as files and as their PEM bytes."""

    certificate_file: str
    key_file: str
    certificate: bytes
    key: bytes = field(repr=False)


def read_tls(certificate_file: str, key_file: str) -> Tls | None:
    """Read and try the pair; None where neither file is named.

    Raises:
        ConfigurationError: One is named without the other, cannot be read, or they do not match.
    """
    if not certificate_file and not key_file:
        return None
    if not certificate_file or not key_file:
        raise ConfigurationError("--tls-cert and --tls-key belong together; give both or neither.")
    try:
        certificate, key = Path(certificate_file).read_bytes(), Path(key_file).read_bytes()
        # A key with a password would be asked for on the terminal, where nobody sits.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate_file, key_file, password=""
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The certificate {certificate_file} with the key {key_file} cannot be used: {error}. "
            "Both must be PEM, the key without a password."
        ) from error
    return Tls(certificate_file, key_file, certificate, key)
