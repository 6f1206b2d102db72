"""Every number that a report prints: pure functions of records, without I/O."""
