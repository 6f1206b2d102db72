"""What a person reads: a run's summary, the leaderboard, and tables in which nothing is active."""
