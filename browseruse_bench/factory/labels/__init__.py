"""What people say of sampled tasks, which part of it may be looked at, and how far they agree."""
