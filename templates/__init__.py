"""What queries have in common: join graphs, their minors, templates, conjunctive queries."""
