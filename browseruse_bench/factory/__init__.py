"""From raw traffic to a released benchmark, stage by stage."""
