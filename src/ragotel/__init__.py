"""ragotel: why a RAG service answered wrongly, as a look-up."""
