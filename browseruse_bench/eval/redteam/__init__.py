"""How hard a reward is to hack: attacked copies of frozen traces, judged and compared."""
