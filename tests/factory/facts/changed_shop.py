"""The shop of LocalSites after its price list was changed."""

from browseruse_bench.sites.shop import ShopSite


class ChangedShop(ShopSite):
    def start(self, directory, seed):
        address = super().start(directory, seed)
        with self._store.lock, self._store.db as db:
            db.execute(
                "UPDATE products SET price_cents = 6125 WHERE slug = 'norrvik-orbit-speaker'"
            )
        self._store.db.backup(self._store._pristine)
        return address
