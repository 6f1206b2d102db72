"""A first stage that keeps 200 tasks."""

from browseruse_bench.factory.stage import Flow, Source
from browseruse_bench.records.candidate import Candidate, new_candidate


class Offers(Source[Candidate]):
    name = "offers"
    version = 1
    zone = "restricted"
    gives = Candidate

    async def run(self, ctx, on_progress, stop):
        return self.flow(ctx.folder)

    def flow(self, folder):
        return Flow(n_in=200, kept=200)

    def kept(self, folder):
        for i in range(200):
            count = 1 if i % 2 else 5
            yield new_candidate(f"Find the cheapest offer of kind {i} now", count=count)

    def find(self, folder, key):
        return None


def made_offers(config):
    return Offers()
