"""Floor 2: the graph, its features, messages on it, and graphs derived from it."""
