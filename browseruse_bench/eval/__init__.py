"""From a frozen trace to a judgement."""
