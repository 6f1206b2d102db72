"""Archives of a browser's traffic: recorded, and given back without a network."""
