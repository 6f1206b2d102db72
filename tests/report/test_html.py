"""One HTML file: pictures, no script, nothing loaded, and text of others stays text."""

import asyncio
import contextlib
import re
import subprocess
import time
import xml.etree.ElementTree as ET

import pytest

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.find import find_chromium
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.compare import compare, read
from browseruse_bench.report.html import (
    POLICY,
    comparison_page,
    leaderboard_page,
    page,
    report_page,
)
from browseruse_bench.report.leaderboard import build
from browseruse_bench.report.pictures import Bar, Dot, bars, nice_ceiling, scatter
from browseruse_bench.report.summary import summarise
from tests.report.made_run import MadeBenchmark, MadeRun, row

HOSTILE = (
    "</title></style></svg><script>document.title='pwned'</script>"
    "<img src=x onerror=document.title='pwned'>\"'><svg onload=document.title='pwned'>"
    "<a href=javascript:document.title='pwned'>x</a>\u202e&#60;script&#62;"
)


@pytest.fixture
def pages(tmp_path):
    """Every kind of page, of runs whose every text is hostile; where each is."""
    rows = [
        row(
            f"{n} {HOSTILE}".replace("\u202e", ""),
            expected_result="Paris",
            difficulty=HOSTILE + "12"[n % 2],
        )
        for n in range(4)
    ]
    bench = MadeBenchmark(tmp_path / "Made", rows)
    bench.info["protocol"] = HOSTILE
    loaded = bench.load()
    runs = []
    for agent, answers in ((HOSTILE, "++--"), ("other", "+---")):
        run = MadeRun.of(tmp_path / "experiments", loaded, agent=agent, model=HOSTILE, repeat=2)
        for task, answer in zip(loaded.tasks, answers, strict=True):
            run.settle(loaded, task.task_id, "Paris" if answer == "+" else HOSTILE, cost_usd=0.5)
        asyncio.run(evaluate_run(run.folder, loaded))
        runs.append(read(run.folder, run.run, loaded, note=HOSTILE))
    made = {
        "leaderboard": leaderboard_page(build(tmp_path / "experiments")),
        "report": report_page(summarise(run.folder, loaded, note=HOSTILE)),
        "comparison": comparison_page(compare(*runs)),
    }
    for name, text in made.items():
        (tmp_path / f"{name}.html").write_text(text)
    return {name: tmp_path / f"{name}.html" for name in made}


KINDS = ("leaderboard", "report", "comparison")


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_others_is_markup(pages, kind):
    """peers: text of a task runs as a script in the leaderboard."""
    text = pages[kind].read_text()
    tags = set(re.findall(r"<(/?[a-z]\w*)", text))
    allowed = "html head meta title style body h1 h2 h3 p div table thead tbody tr th td svg g"
    allowed += " text line rect circle"
    assert {tag.lstrip("/") for tag in tags} <= set(allowed.split())
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert not re.search(r"<[^>]*\s(on\w+|href|src|style)\s*=", text)
    assert "<svg" in text
    assert f'content="{POLICY}"' in text


@contextlib.contextmanager
def plain_chromium(folder):
    """A browser as a reader has it, which no guard keeps from files; its address."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
    process = subprocess.Popen(
        [find_chromium(), *flags, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = folder / "DevToolsActivePort"
        end = time.monotonic() + 30
        while not (port.exists() and port.read_text().count("\n")):
            assert time.monotonic() < end, "Chromium did not start"
            time.sleep(0.05)
        number, path = port.read_text().split()
        yield f"ws://127.0.0.1:{number}{path}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.browser
async def test_in_chromium_from_a_file_no_script_runs_and_the_style_applies(pages, tmp_path):
    """peers: text of a task runs as a script in the leaderboard. The same text as it is, in a
    page without a policy, does run.
    """
    control = tmp_path / "control.html"
    control.write_text(f"<title>t</title><table></table>{HOSTILE.partition('</svg>')[2]}")
    with plain_chromium(tmp_path / "profile") as ws_url:
        cdp = await CDP.connect(ws_url)
        try:
            found = {kind: await _loaded(cdp, path.as_uri()) for kind, path in pages.items()}
            as_it_is = await _loaded(cdp, control.as_uri())
        finally:
            await cdp.close()
    expected = {
        **{"scripts": 0, "images": 0, "links": 0, "pwned": False, "requests": 0},
        **{"styled": "collapse", "pictures": True, "hostile": True},
    }
    assert found == dict.fromkeys(pages, expected)
    assert as_it_is["pwned"]


async def _loaded(cdp, url):
    """What is in the page, half a second after it was loaded."""
    target = (await cdp.send("Target.createTarget", {"url": url}))["targetId"]
    attach = {"targetId": target, "flatten": True}
    session = (await cdp.send("Target.attachToTarget", attach))["sessionId"]

    async def value(expression):
        asked = {"expression": expression, "returnByValue": True}
        return (await cdp.send("Runtime.evaluate", asked, session=session))["result"].get("value")

    async with asyncio.timeout(20):
        while await value("location.href + document.readyState") != f"{url}complete":
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    return await value("""({
        scripts: document.scripts.length, images: document.images.length,
        links: document.links.length, pwned: document.title === 'pwned',
        requests: performance.getEntriesByType('resource').length,
        styled: getComputedStyle(document.querySelector('table')).borderCollapse,
        pictures: document.querySelectorAll('svg circle').length > 0,
        hostile: document.body.textContent.includes("<script>document.title='pwned'"),
    })""")


def test_the_same_runs_give_the_same_bytes(tmp_path, pages):
    again = leaderboard_page(build(tmp_path / "experiments"))
    assert again == pages["leaderboard"].read_text()


def test_the_policy_allows_the_page_s_own_style_only():
    text = page("t", [])
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert "http" not in style
    assert "url(" not in style
    assert POLICY.startswith("default-src 'none'")
    assert "unsafe" not in POLICY
    assert text.index("Content-Security-Policy") < text.index("<title>")


def test_the_picture_of_scores_puts_each_value_at_its_place():
    drawn = ET.fromstring(
        bars(
            [
                Bar(label="a", value=50, low=40, high=60, lower=30, upper=80),
                Bar(label="no verdict", value=None),
            ],
            title="Points",
        )
    )
    space = "{http://www.w3.org/2000/svg}"
    (dot,) = drawn.iter(f"{space}circle")
    (band,) = drawn.iter(f"{space}rect")
    line = next(x for x in drawn.iter(f"{space}line") if x.get("class") == "interval")
    ticks = {
        x.text: float(x.get("x")) for x in drawn.iter(f"{space}text") if x.get("class") == "tick"
    }
    unit = (ticks["100"] - ticks["0"]) / 100

    def value(x):
        return round((float(x) - ticks["0"]) / unit)

    assert value(dot.get("cx")) == 50
    assert (value(line.get("x1")), value(line.get("x2"))) == (40, 60)
    assert value(band.get("x")) == 30
    assert round(float(band.get("width")) / unit) == 50
    assert "no verdict" in "".join(drawn.itertext())


def test_the_picture_of_cost_is_readable_without_any_dot_and_with_dots_at_zero():
    for dots in ([], [Dot(label="x", x=0, y=0)], [Dot(label="x", x=1e-7, y=100)]):
        ET.fromstring(scatter(dots, title="t", x_label="USD"))


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (1.01, 2), (99, 100), (2.2, 2.5)]
)
def test_axes_end_at_a_round_number(value, top):
    assert nice_ceiling(value) == pytest.approx(top)
