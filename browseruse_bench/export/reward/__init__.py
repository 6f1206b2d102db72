"""A reward over HTTP: a trace in, findings and a reward out, for any trainer."""
