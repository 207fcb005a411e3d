"""SQL: the schema as files that run as they stand; `ragotel.store.catalog` reads them."""
