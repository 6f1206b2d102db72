"""The tasks in the shop: their facts stand on its pages, and doing nothing earns nothing."""

from __future__ import annotations

import html
import http.cookiejar
import importlib
import re
import sqlite3
import sys
import urllib.parse
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from browseruse_bench.sites.shop import ShopSite
from browseruse_bench.sites.shop.people import customers

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "LocalSites"
sys.path.insert(0, str(FOLDER))
shopping = importlib.import_module("builder.shopping")
DRAFTS = list(importlib.import_module("builder.shop").drafts())
BY_ID = {draft.task_id: draft for draft in DRAFTS}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    site = ShopSite()
    host, port = site.start(tmp_path_factory.mktemp("shop"), shopping.SEED)
    yield site, f"http://{host}:{port}"
    site.stop()


@pytest.fixture(scope="module")
def pristine(shop, tmp_path_factory):
    path = tmp_path_factory.mktemp("snapshot") / "pristine.sqlite"
    shop[0].snapshot(path)
    with closing(sqlite3.connect(path)) as db:
        yield db


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def reader(address: str, task: str):
    """Reads pages, signed in as whoever the task names."""
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
    for person in customers(shopping.SEED):
        if person.email in task:
            form = {"email": person.email, "password": person.password}
            opener.open(f"{address}/login", urllib.parse.urlencode(form).encode(), timeout=10)
    return lambda path: text_of(opener.open(address + path, timeout=10).read().decode())


@pytest.mark.parametrize("task_id", BY_ID)
def test_the_page_that_a_fact_names_shows_its_quote_and_values(shop, task_id):
    draft = BY_ID[task_id]
    read = reader(shop[1], draft.task)
    assert draft.facts
    for fact in draft.facts:
        shown = read(fact["url"].removeprefix(f"http://{shopping.HOST}"))
        assert fact["quote"] in shown
        assert str(fact["values"][0]) in shown


@pytest.mark.parametrize("task_id", BY_ID)
def test_a_wanted_state_is_not_there_before_the_attempt(pristine, task_id):
    for item in BY_ID[task_id].items:
        if item["check"]["kind"] == "state":
            rows = [list(row) for row in pristine.execute(item["check"]["sql"])]
            assert rows != item["check"]["equals"], item["id"]


@pytest.mark.parametrize("task_id", BY_ID)
def test_the_task_text_does_not_tell_the_answer(task_id):
    draft = BY_ID[task_id]
    answers = [i["check"] for i in draft.items if i["check"]["kind"] == "answer"]
    for value in (str(v) for check in answers for v in check["values"]):
        assert value.split("|OR|")[0] not in draft.task


def test_the_newest_order_id_is_that_of_the_shop(pristine):
    (newest,) = pristine.execute("SELECT max(id) FROM orders").fetchone()
    assert newest == shopping.LAST_ORDER


def test_newsletter_is_closed_once_and_only_after_the_second_listing():
    walk = shopping.Walk().enter()
    for _ in range(3):
        walk.search("tent")
    done = [s.get("key") or s["click"]["name"] for s in walk.steps if "key" in s or "click" in s]
    assert done == ["Only necessary", "Enter", "Enter", "No thanks", "Enter"]
