"""Stage 2: join state, the views on it, and the joins of all queries at once."""
