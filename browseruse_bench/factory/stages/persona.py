"""Stage persona: personal data replaced by that of a dummy persona of the task's country.

Kept is a text in which everything personal was replaced and behind which the gate found nothing.
`refused` and `quarantined` are for review: nothing is ever replaced in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from browseruse_bench.errors import ModelError
from browseruse_bench.factory.context import Context
from browseruse_bench.factory.persona import proposal as proposing
from browseruse_bench.factory.persona.country import country_of
from browseruse_bench.factory.persona.detect import Hit, detect
from browseruse_bench.factory.persona.observations import observations
from browseruse_bench.factory.persona.people import settled
from browseruse_bench.factory.persona.proposal import DisbelievedError, Proposal, Target
from browseruse_bench.factory.persona.residue import residue
from browseruse_bench.factory.persona.secrets import keyed_hash, keyed_origin, workspace_key
from browseruse_bench.factory.persona.substitute import RefusedError, Substituted, substitute
from browseruse_bench.factory.persona.values import cast, replacements
from browseruse_bench.factory.personas import COUNTRIES, load
from browseruse_bench.factory.stage import Dropped, Kept, Stage
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.base import Message, Request
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.store.journal import Journal

PROMPT = Path(__file__).parents[1] / "persona" / "find.md"
VARIANTS = 4
"""Personas that are drawn for one text before it is refused."""
_DRAW_AGAIN = frozenset({"already_there", "residue", "derived_form", "two_people_one_value"})


class Persona(Stage[Candidate, Candidate]):
    """Replaces what is personal, or says why the task cannot go on."""

    name = "persona"
    version = 3
    zone = "restricted"
    takes, gives = Candidate, Candidate
    reasons = frozenset(
        {"work_depends_on_person", "identifying_combination", "refused", "quarantined"}
    )
    prompts = (PROMPT,)

    def __init__(self, config: WorkspaceConfig) -> None:
        """Of a workspace."""
        self._config = config

    def settings(self) -> Mapping[str, Any]:
        """The model, the domain of e-mail addresses, and the countries."""
        return {
            "model": self._config.behind("persona"),
            "email_domain": self._config.personas.email_domain,
            "country": self._config.personas.default_country,
            "countries": COUNTRIES,
        }

    async def settle(self, unit: Candidate, ctx: Context) -> Kept[Candidate] | Dropped:
        """As the criterion says: can the task succeed with every personal value replaced?"""
        country, evidence = country_of(unit.text, self._config.personas.default_country)
        hits = detect(unit.text, country)
        today = date.fromisoformat(ctx.clock()[:10])
        where = {
            "country": country,
            "country_evidence": [list(e) for e in evidence],
            "observed": [list(seen) for seen in observations(unit.text, today)],
        }
        proposed = await self._proposed(unit, hits, ctx)
        try:
            if proposed.targets:
                proposed = settled(unit.text, proposed, load(country))
            targets = proposing.checked(unit.text, proposed, hits, country)
        except DisbelievedError as error:
            return Dropped("refused", {**where, "why": str(error)})
        key = workspace_key(ctx.workspace)
        if depends := proposing.depends(targets):
            cited = [{"kind": t.kind, "value": keyed_hash(key, t.verbatim)} for t in depends]
            return Dropped("work_depends_on_person", {**where, "targets": cited})
        if facts := proposing.identifying(proposed, targets):
            cited = [{"kind": f.kind, "value": keyed_hash(key, f.verbatim)} for f in facts]
            return Dropped("identifying_combination", {**where, "facts": cited})
        try:
            result = self._replaced(unit, proposed, targets, country, ctx)
        except RefusedError as error:
            return Dropped("refused", {**where, "why": str(error)})
        if problems := residue(result, [k.verbatim for k in proposed.kept], country):
            return Dropped("quarantined", {**where, "left": problems})
        self._note(unit, ctx, {**where, **_noted(result, proposed, key)})
        gone = {"text": result.text, "country": country, "origin": keyed_origin(key, unit.origin)}
        return Kept(unit.model_copy(update=gone))

    def _note(self, unit: Candidate, ctx: Context, what: Mapping[str, Any]) -> None:
        """A line of notes.jsonl: what was replaced where, and what was kept and why."""
        with Journal(ctx.folder / "notes.jsonl") as notes:
            notes.append({"unit": unit.key, **what})

    async def _proposed(self, unit: Candidate, hits: Sequence[Hit], ctx: Context) -> Proposal:
        candidates = [f"{hit.kind}: {unit.text[hit.start : hit.end]}" for hit in hits]
        # The task is filled in last, so that nothing that it says is taken for a place to fill.
        prompt = PROMPT.read_text(encoding="utf-8")
        before, _, rest = prompt.partition("{candidates}")
        between, _, after = rest.partition("{task}")
        text = "".join([before, "; ".join(candidates) or "none", between, unit.text, after])
        request = Request(
            messages=(Message(role="user", parts=(text,)),),
            schema=proposing.schema(),
            schema_name="personal_data",
        )
        reply = await ctx.model("persona").ask(request, purpose="persona", restricted=True)
        try:
            return Proposal.model_validate(reply.value)
        except ValidationError as error:
            # Its own message would repeat what it was given: personal data.
            places = {".".join(map(str, problem["loc"])) for problem in error.errors()}
            raise ModelError(f"the reply fits no proposal: {', '.join(sorted(places))}") from None

    def _replaced(
        self,
        unit: Candidate,
        proposed: Proposal,
        targets: Sequence[Target],
        country: str,
        ctx: Context,
    ) -> Substituted:
        if not targets:
            return Substituted(unit.text, ())
        rng = ctx.rng(unit.key)
        for left in reversed(range(VARIANTS)):
            try:
                who = cast(
                    proposed.persons,
                    targets,
                    load(country),
                    domain=self._config.personas.email_domain,
                    today=date.fromisoformat(ctx.clock()[:10]),
                    rng=rng,
                    place_stays=any(k.reason == "place_of_the_work" for k in proposed.kept),
                )
                return substitute(unit.text, replacements(targets, who), region=country)
            except RefusedError as error:
                if error.refusal not in _DRAW_AGAIN or not left:
                    raise
        raise AssertionError("the last variant returns or raises")


def _noted(result: Substituted, proposed: Proposal, key: bytes) -> dict[str, Any]:
    """Places, kinds and keyed hashes; no value."""
    return {
        "edits": [
            {"start": e.start, "end": e.end, "new_start": e.new_start, "new_end": e.new_end,
             "kind": e.kind, "person": e.person, "value": keyed_hash(key, e.old)}
            for e in result.edits
        ],
        "kept": [{"reason": k.reason, "value": keyed_hash(key, k.verbatim)} for k in proposed.kept],
    }  # fmt: skip
