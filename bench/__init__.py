"""How fast and how small: synthesis and place-and-route of each block beside the bare circuits that bound it."""
