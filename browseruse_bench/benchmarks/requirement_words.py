"""The English that rubric items are written in: its verbs, and the words between their parts."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MEANS = _words(
    "open visit navigate go search browse review read watch use consult access start scroll load "
    "look view launch enter reach"
)
"""Verbs of the way to a result: opening a page in order to record a price is no second result."""

RESULTS = _words(
    "acknowledge add address adjust analyze answer apply appear arrive assemble assess assign "
    "attach avoid begin book build calculate call cancel capture carry check choose cite "
    "clarify classify click close collect combine compare compile complete compute confirm "
    "connect contain convert correspond count cover create cross-check decide define delete "
    "deliver demonstrate describe determine differ disclose discuss display distinguish download "
    "draft draw eliminate end establish estimate evaluate examine exclude exist explain explore "
    "export extract fill filter find finish fit flag focus follow forward gather give "
    "ground group highlight identify include indicate inspect integrate issue judge justify keep "
    "label land leave link list locate log maintain make map mark match measure mention merge "
    "move name narrow note obtain offer order organize organise outline own pay pick place play "
    "populate post present preserve prioritize produce propose prove provide purchase quote rank "
    "rate recommend reconcile record refer reflect register relate remain remove rename reply "
    "report reserve resolve respond return reveal save schedule select send separate set share "
    "show sign sort specify state stay stop submit suggest summarize summarise support "
    "synthesize tabulate test tie track translate turn type update upload verify warn write"
)
"""Verbs of what a trace or an answer is looked at for."""

ALSO_NOUNS = _words(
    "address answer book call check count cover display download draft draw end estimate export "
    "filter fit flag focus forward group highlight issue judge label land leave link list log "
    "look make map mark match measure move name note offer order outline pick place play post "
    "present quote rank rate record report return review schedule search set share show sign "
    "sort start state stay stop support test tie track turn type update upload use view"
)
"""Verbs that are nouns just as often; they count as verbs before a determiner."""

ARTICLES = _words("a an the its their his her this that these those")
DETERMINERS = _words(
    "a an the each every any all both one two three four five six seven eight nine ten its their "
    "his her it them this that these those at exactly whether which what how why where when who "
    "no not only some several which to that"
)
WH = _words("why how whether which what when where who")
BE = _words("is are was were be been being")
AUXILIARIES = BE | _words("has have had can could may must should will would does do")

CRITERIA = _words(
    "for from in on at about by using between across against near among under over within per "
    "during via through into onto despite regarding concerning if when where while because since "
    "so than as after before until unless whose that which who"
)
"""What follows these says where, by what or for whom, not what is asked for."""
OPENERS = _words("with including covering include includes covers cover plus : contains")
"""What follows these is asked for, too."""

_IRREGULAR = {
    "go": ("goes", "went", "gone", "going"), "read": ("reads", "read", "read", "reading"),
    "find": ("finds", "found", "found", "finding"), "give": ("gives", "gave", "given", "giving"),
    "choose": ("chooses", "chose", "chosen", "choosing"),
    "keep": ("keeps", "kept", "kept", "keeping"), "leave": ("leaves", "left", "left", "leaving"),
    "show": ("shows", "showed", "shown", "showing"),
    "write": ("writes", "wrote", "written", "writing"),
    "send": ("sends", "sent", "sent", "sending"), "draw": ("draws", "drew", "drawn", "drawing"),
    "build": ("builds", "built", "built", "building"), "pay": ("pays", "paid", "paid", "paying"),
    "make": ("makes", "made", "made", "making"), "set": ("sets", "set", "set", "setting"),
    "begin": ("begins", "began", "begun", "beginning"), "tie": ("ties", "tied", "tied", "tying"),
    "submit": ("submits", "submitted", "submitted", "submitting"),
    "cancel": ("cancels", "cancelled", "canceled", "cancelling"),
    "refer": ("refers", "referred", "referred", "referring"),
    "stop": ("stops", "stopped", "stopped", "stopping"),
    "map": ("maps", "mapped", "mapped", "mapping"), "log": ("logs", "logged", "logged", "logging"),
    "flag": ("flags", "flagged", "flagged", "flagging"), "fit": ("fits", "fitted", "fit", "fitting"),
}  # fmt: skip


def _forms(verb: str) -> tuple[str, str, str, str]:
    """(third person, past, participle, -ing form)."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb[:-1]}ied", f"{verb}ing"
    third = f"{verb}es" if re.search(r"(?:s|x|z|ch|sh|o)$", verb) else f"{verb}s"
    if verb.endswith("e"):
        return third, f"{verb}d", f"{verb}d", f"{verb[:-1]}ing"
    return third, f"{verb}ed", f"{verb}ed", f"{verb}ing"


VERBS = MEANS | RESULTS
THIRD = {_forms(verb)[0]: verb for verb in VERBS}
PARTICIPLES = {form: verb for verb in VERBS for form in _forms(verb)[1:3]}
ING = {_forms(verb)[3]: verb for verb in VERBS}
