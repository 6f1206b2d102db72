"""Personal data replaced, verbatim and by code, by that of a dummy persona.

    detect ► plan (a model proposes, code checks) ► substitute ► residue

The model never writes the prose: it names strings, and code replaces those that are there.
"""
