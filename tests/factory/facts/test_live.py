"""The shop is checked, its price is changed, and exactly what stands on the price has rotted."""

import json

import pytest

from browseruse_bench.browsers.archive.looking import Patience
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.export.reward.fresh import Freshness
from browseruse_bench.factory.facts.live import Looking, verify
from browseruse_bench.factory.facts.offline import extract
from browseruse_bench.factory.facts.report import report, report_json, report_lines
from browseruse_bench.factory.facts.sources import sources

pytestmark = pytest.mark.browser

SHOP = "http://shop.test"
SPEAKER = f"{SHOP}/product/norrvik-orbit-speaker"
FACTS = {
    "price": [{"id": "F1", "claim": "It costs 57.50.", "quote": "€57.50", "url": SPEAKER}],
    "stock": [
        {"id": "F1", "claim": "The name.", "quote": "Norrvik Orbit Speaker", "url": SPEAKER},
        {"id": "F2", "claim": "No such price.", "kind": "absent", "values": ["€61.25"],
         "pages_searched": [f"{SHOP}/help"]},
    ],
    "away": [
        {"id": "F1", "claim": "An order.", "quote": "€1211.80", "url": f"{SHOP}/orders/LK-10509"},
        {"id": "F3", "claim": "Behind a click.", "quote": "Behind a click", "url": SPEAKER},
        {"id": "F2", "claim": "Elsewhere.", "quote": "57.50", "url": "http://elsewhere.test/"},
    ],
}  # fmt: skip


def benchmark(folder, site):
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "rubrics").mkdir(exist_ok=True)
    info = {"name": "Small", "split": {"All": "tasks.json"}, "sites": {"shop.test": site}}
    (folder / "data_info.json").write_text(json.dumps(info))
    tasks = [{"task_id": name, "task": f"Look at the {name}."} for name in FACTS]
    (folder / "data" / "tasks.json").write_text(json.dumps(tasks))
    for name, facts in FACTS.items():
        facts = [{"checked_on": "2026-08-20", "how": "site", **fact} for fact in facts]
        items = [{"id": "A1", "requirement": "Says it.", "weight": 100, "facts": ["F1"]}]
        rubric = {"task_id": name, "facts": facts, "items": items}
        (folder / "rubrics" / f"{name}.json").write_text(json.dumps(rubric))
    return folder


async def checked(folder, **more):
    backend = LocalChromium(BrowserOptions(guard="observed"))
    looking = Looking(backend=backend, again_s=0.1, patience=Patience(quiet_s=0.2), **more)
    found = sources([str(folder)])
    checks = await verify(found, looking, lambda _check: None)
    return found, {f"{c.task_id} {c.fact}": c.outcome for c in checks}


async def test_a_changed_site_is_noticed_and_nothing_else_is_called_rotted(tmp_path):
    folder = benchmark(tmp_path / "Small", "browseruse_bench.sites.shop:ShopSite")
    _, before = await checked(folder)
    unsettled = {"away F1": "login", "away F2": "unreachable", "away F3": "unseen"}
    assert before == {
        "price F1": "confirmed",
        "stock F1": "confirmed",
        "stock F2": "confirmed",
        **unsettled,
    }
    first = {path: path.read_bytes() for path in folder.rglob("checks.jsonl")}
    benchmark(folder, "tests.factory.facts.changed_shop:ChangedShop")
    found, after = await checked(folder)
    assert after == {**before, "price F1": "changed"}
    states = report(found)
    told = report_json(states)
    assert told["rotted"] == ["price"]
    fact = next(s for s in told["rubrics"] if s["task_id"] == "price")["facts"][0]
    assert (fact["was"], fact["now"]) == ("€57.50", "€61.25")
    assert "  F1 since" in "\n".join(report_lines(states))
    assert all(path.read_bytes().startswith(content) for path, content in first.items())
    assert {one.found for source in found for one in extract(source)} == {"confirmed", "own site"}
    fresh = Freshness(folder, today=lambda: None)
    stale = {s.rubric.task_id: fresh.problem(s.rubric) for s in found}
    assert stale.pop("price").startswith("fact F1 no longer holds since")
    assert stale == {"stock": None, "away": None}
    _, again = await checked(folder, older_than_days=1)
    assert again == unsettled
