"""Store: one client interface to the embedded engine, a ClickHouse server or `ragotel serve`.

Pipeline: wire -> otel_traces -> typed tables -> views -> [store] -> triage -> cli | server
"""

from ragotel.store.migrate import migrate, pending, statements
from ragotel.store.open import Store, open_store, parse_dsn

__all__ = ["Store", "migrate", "open_store", "parse_dsn", "pending", "statements"]
