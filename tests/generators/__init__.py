"""Random queries, documents and cases, and what each of them is about."""
