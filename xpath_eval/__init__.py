"""Stage 1: every tree pattern of every query in one automaton; a document becomes its witnesses."""
