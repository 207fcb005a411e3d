"""A real service with real mistakes, for `ragotel demo`; read `service.py` as an example."""
