"""The screen: runs of a reference agent, judged with a growing file of notes, until a sequential
test decides; what nobody passes goes to a stronger agent.
"""
