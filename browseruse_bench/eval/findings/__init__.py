"""The findings judge: a model states located findings about a frozen trace, code does the rest."""
