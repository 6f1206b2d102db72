"""The oracle carries out reference solutions in a real browser."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench import __version__
from browseruse_bench.agents import driver as driving
from browseruse_bench.agents.base import AgentSetup, Stopped
from browseruse_bench.agents.driver import key_event
from browseruse_bench.agents.oracle import OracleAgent, filled
from browseruse_bench.browsers.base import Session
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import AgentError, ConfigError, DataError
from browseruse_bench.records.solution import Action, Solution
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import BrowserId, Guard, Limits

VIEW = TaskView(task_id="t", text="Do it.")


class Sink:
    def __init__(self, stop_after=None):
        self.calls, self.targets, self.stop_after = [], [], stop_after

    async def action(self, call, *, target_id=None, native_index=None):
        self.calls.append(call)
        self.targets.append(target_id)
        if len(self.calls) == self.stop_after:
            raise Stopped("step_limit")


def agent_for(*actions):
    solution = Solution.model_validate(list(actions))
    return OracleAgent(AgentSetup(solution_of={"t": solution}.__getitem__, solutions_key="k1"))


@pytest.fixture
def play(chromium):
    """Carry out actions on the browser's page; a text alone is the answer."""

    async def play(*actions, sink=None):
        if "done" not in actions[-1]:
            actions = (*actions, {"done": "end"})
        cdp = await CDP.connect(chromium.ws_url)
        infos = (await cdp.send("Target.getTargets"))["targetInfos"]
        await cdp.close()
        target = next(i["targetId"] for i in infos if i["type"] == "page")
        session = Session(
            browser=BrowserId(kind="local"),
            guard=Guard(level="none"),
            ws_url=chromium.ws_url,
            http_url=None,
            target_id=target,
        )
        sink = sink or Sink()
        report = await agent_for(*actions).attempt(VIEW, session, Limits(), sink, None)
        return SimpleNamespace(report=report, calls=sink.calls, targets=sink.targets, first=target)

    return play


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(driving, "FIND_S", 0.5)
    monkeypatch.setattr(driving.Driver._until, "__kwdefaults__", {"timeout_s": 0.5}, raising=True)


browser = pytest.mark.browser

# Values, placeholders, keys: no browser.


def test_oracle_without_solutions_is_refused():
    with pytest.raises(ConfigError, match="has none"):
        OracleAgent(AgentSetup())


def test_identity_names_the_solutions():
    identity = agent_for({"done": "x"}).identity()
    assert identity.parameters == {"solutions": "k1"}
    assert (identity.name, identity.version, identity.model) == ("oracle", __version__, None)
    assert OracleAgent.per_core == 2


async def test_oracle_without_a_browser_says_so():
    session = SimpleNamespace(ws_url=None)
    with pytest.raises(AgentError, match="needs a browser"):
        await agent_for({"done": "x"}).attempt(VIEW, session, Limits(), Sink(), None)


async def test_task_without_solution_is_the_error_of_whoever_holds_them():
    def missing(task_id):
        raise DataError(f"solutions/{task_id}.json: missing")

    session = SimpleNamespace(ws_url="ws://127.0.0.1:9/x")
    with pytest.raises(DataError, match=r"solutions/t\.json"):
        await OracleAgent(AgentSetup(solution_of=missing)).attempt(
            VIEW, session, Limits(), Sink(), None
        )


def answer(text, **facts):
    return filled(Action.model_validate({"done": text}), facts).done


def test_placeholders_are_filled_once_and_other_braces_stay():
    assert answer("{a} and {b}", a="{b}", b="{a}") == "{b} and {a}"
    assert answer('{"total": {n}, "x": {}} {unknown} {N} {0}', n="7") == (
        '{"total": 7, "x": {}} {unknown} {N} {0}'
    )
    assert answer("{n}", n=r"\1 \g<0>") == r"\1 \g<0>"


@given(
    st.text(min_size=1),
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True), st.text()),
)
def test_text_without_a_known_placeholder_is_unchanged(text, facts):
    if not any("{" + name + "}" in text for name in facts):
        assert answer(text, **facts) == text


def test_placeholders_in_targets_and_patterns():
    action = {"extract": {"css": "#{id}", "regex": r"{id}: (\d{2})", "as": "x"}}
    extract = filled(Action.model_validate(action), {"id": "a.b"}).extract
    assert extract.css == "#a.b"
    assert extract.regex == r"a\.b: (\d{2})"
    click = filled(
        Action.model_validate({"click": {"role": "link", "name": "{n}", "nth": 2}}), {"n": "Go"}
    )
    assert (click.click.name, click.click.nth) == ("Go", 2)


def test_keys_have_their_codes():
    assert key_event("Enter") == {
        "key": "Enter",
        "code": "Enter",
        "windowsVirtualKeyCode": 13,
        "text": "\r",
    }
    assert key_event("a") == {"key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "text": "a"}
    assert key_event("7")["code"] == "Digit7"
    assert key_event("é") == {"key": "é", "code": "", "windowsVirtualKeyCode": 0, "text": "é"}
    with pytest.raises(AgentError, match="no key 'Entre'"):
        key_event("Entre")


# Targets.


@browser
async def test_targets_by_role_and_name_css_text_and_nth(site, play):
    site.pages["/"] = """<title>-</title><script>log = t => document.title += t</script>
      <label for=q>Search for</label><input id=q onclick="log('q')">
      <button aria-label="Buy now" onclick="log('b')"><i>+</i></button>
      <a href="#x" onclick="log('1')">More</a><a href="#y" onclick="log('2')">More</a>
      <button style="display:none" class=c onclick="log('hidden')">go</button>
      <button class=c onclick="log('c')">go</button>
      <div onclick="log('outer')"><p>Total   of
        <b onclick="log('inner')">all things</b></p></div>
      <span style="text-transform:uppercase" onclick="log('u')">shout</span>
      <input type=submit value="Send it" onclick="log('s')">"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"role": "textbox", "name": "Search for"}},
        {"click": {"role": "button", "name": "Buy now"}},
        {"click": {"role": "button", "name": "uy n", "exact": False}},
        {"click": {"role": "link", "name": "More", "nth": 1}},
        {"click": {"css": "button.c"}},
        {"click": {"text": "all things"}},
        {"click": {"text": "Total of all things"}},
        {"click": {"text": "SHOUT"}},
        {"click": {"text": "shout"}},
        {"click": {"text": "Send it"}},
        {"click": {"text": "ll thin", "exact": False}},
        {"extract": {"css": "title", "as": "log"}},
        {"done": "{log}"},
    )
    # Clicking the middle of the whole line may hit either part; both are inside it.
    assert end.report.status == "finished", end.report.reason
    assert end.report.answer.startswith("-qbb2cinnerouter")
    assert end.report.answer.endswith("uusinnerouter")
    assert [c.name for c in end.calls] == ["navigate"] + ["click"] * 11 + ["extract"]
    assert end.calls[1].target == "role=textbox name=Search for"
    assert end.calls[4].target == "role=link name=More [1]"
    assert set(end.targets) == {end.first}
    times = [t for c in end.calls for t in (c.t0, c.t1)]
    assert times == sorted(times)


@browser
async def test_element_that_comes_late_is_waited_for(site, play):
    site.pages["/"] = """<script>setTimeout(() => document.body.innerHTML =
      '<button onclick="document.title=1">Late</button>', 700)</script><body>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"role": "button", "name": "Late"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "1"


@browser
async def test_missing_element_ends_the_attempt_with_its_place(site, play, impatient):
    site.pages["/"] = "<p>nothing</p>"
    end = await play({"navigate": site.url + "/"}, {"click": {"css": "#no"}})
    assert end.report.status == "agent_error"
    assert end.report.answer is None
    assert end.report.reason.startswith('solution[1] click {"css":"#no"')
    assert end.report.reason.endswith("not found within 0.5 s")
    assert [c.error for c in end.calls] == [None, "not found within 0.5 s"]


@browser
async def test_time_in_which_the_machine_stood_still_does_not_count(
    site, play, impatient, monkeypatch
):
    site.pages["/"] = "<button onclick=\"document.title='clicked'\">Buy</button>"
    find, stalls = driving.Driver._find, [1.0]

    async def stalled(self, target):
        if stalls:
            time.sleep(stalls.pop())  # nothing of this process runs
            return None
        return await find(self, target)

    monkeypatch.setattr(driving.Driver, "_find", stalled)
    monkeypatch.setattr(driving, "_LOOK_S", 0.1)
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Buy"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "clicked"


@browser
async def test_covered_element_is_clicked_when_the_cover_is_gone(site, play):
    site.pages["/"] = """<button onclick="document.title='clicked'">Buy</button>
      <div id=cover style="position:fixed;inset:0;background:#fff"
           onclick="document.title='cover'"></div>
      <script>setTimeout(() => cover.remove(), 800)</script>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Buy"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "clicked"


@browser
async def test_element_that_stays_covered_is_never_clicked(site, play, impatient):
    site.pages["/"] = """<button>Buy</button>
      <div id=cover style="position:fixed;inset:0" onclick="document.title='cover'"></div>"""
    end = await play({"navigate": site.url + "/"}, {"click": {"text": "Buy"}})
    assert "it is covered by <div#cover>" in end.report.reason


@browser
async def test_element_below_the_fold_and_disabled_for_a_while_is_clicked(site, play):
    site.pages["/"] = """<div style="height:5000px"></div>
      <button disabled onclick="document.title='ok'">Far</button>
      <script>setTimeout(() => document.querySelector('button').disabled = false, 500)</script>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Far"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "ok"


@browser
async def test_element_that_moves_away_under_the_mouse_is_clicked_where_it_went(site, play):
    """What lies at the old place by then hears nothing of it."""
    site.pages["/"] = """<body style="margin:0"><div id=late></div>
      <button style="display:block;height:60px" onclick="document.title='right'">Buy</button>
      <script>
        const heard = [];
        for (const type of ['pointerdown', 'mousedown', 'mouseup', 'click'])
          late.addEventListener(type, (e) => heard.push(type));
        addEventListener('mousemove', () => (late.style.height = '400px'), { once: true });
        late.onclick = () => (document.title = 'wrong');
      </script><p id=heard></p><button onclick="document.getElementById('heard').textContent =
        heard.join() || 'nothing'">Tell</button>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Buy"}},
        {"extract": {"css": "title", "as": "t"}},
        {"click": {"text": "Tell"}},
        {"extract": {"css": "#heard", "as": "heard"}},
        {"done": "{t}, {heard}"},
    )
    assert end.report.answer == "right, nothing"


@browser
async def test_element_that_always_moves_away_is_an_error(site, play, impatient):
    site.pages["/"] = """<button style="position:fixed;left:0;top:0">Buy</button><script>
      let left = 0;
      addEventListener('mousemove', () => {
        document.querySelector('button').style.left = `${(left = 600 - left)}px`;
      });</script>"""
    end = await play({"navigate": site.url + "/"}, {"click": {"text": "Buy"}})
    assert end.report.reason.endswith("it moved away from under the mouse after 0.5 s")


@browser
@pytest.mark.parametrize(
    "page",
    [
        "<label>Agree <input type=checkbox id=x onchange=\"document.title+='ok'\"></label>",
        "<div onclick=\"document.title+='ok'\">"
        '<button id=x style="pointer-events:none">Buy</button></div>',
        '<div id=x></div><script>x.attachShadow({mode: "closed"}).innerHTML ='
        "`<button style=width:100% onclick=\"document.title+='ok'\">Buy</button>`;</script>",
        "<iframe id=x srcdoc=\"<body style=height:99vh onclick=parent.document.title+='ok'>\"></iframe>",
        "<button id=x onclick=\"document.title+='ok';alert('hello')\">Buy</button>",
        "<button id=x onpointerdown=\"this.remove();document.title+='ok'\">Buy</button>",
        "<button id=x onclick=\"document.title+='ok';document.body.innerHTML=''\">Buy</button>",
    ],
    ids=["label", "through", "shadow", "frame", "dialog", "removed", "emptied"],
)
async def test_click_is_done_once_whatever_hears_it(site, play, page):
    site.pages["/"] = page
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"css": "#x"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "ok", end.report


# Typing, keys, choosing, scrolling.


@browser
async def test_typing_clears_or_appends_and_fires_real_events(site, play):
    site.pages["/"] = """<input id=a value=old><input id=b value=old><textarea id=c>old</textarea>
      <div id=d contenteditable>old</div><input id=e type=date><input id=f value=old>
      <input id=g type=number value=5>
      <script>n = 0; a.oninput = e => { if (e.isTrusted) n++ };</script>"""
    fields = [
        {"type": {"into": {"css": "#a"}, "text": "new ü"}},
        {"type": {"into": {"css": "#b"}, "text": "er", "clear": False}},
        {"type": {"into": {"css": "#c"}, "text": "two\nlines"}},
        {"type": {"into": {"css": "#d"}, "text": "rich"}},
        {"type": {"into": {"css": "#e"}, "text": "2026-03-04"}},
        {"type": {"into": {"css": "#f"}, "text": ""}},
        {"type": {"into": {"css": "#g"}, "text": "42"}},
    ]
    reads = [{"extract": {"css": f"#{x}", "as": x}} for x in "abcdefg"]
    end = await play(
        {"navigate": site.url + "/"}, *fields, *reads, {"done": "{a}|{b}|{c}|{d}|{e}|{f}|{g}"}
    )
    assert end.report.answer == "new ü|older|two\nlines|rich|2026-03-04||42"


@browser
async def test_keys_submit_move_and_delete(site, play):
    site.pages["/"] = (
        """<form action=/found><input name=q><input name=r><button>Go</button></form>"""
    )
    site.pages["/found"] = "<script>document.write(location.search)</script>"
    end = await play(
        {"navigate": site.url + "/"},
        {"type": {"into": {"css": "[name=q]"}, "text": "ab"}},
        {"key": "Backspace"},
        {"key": "Tab"},
        {"key": "x"},
        {"key": "ArrowLeft"},
        {"key": "Y"},
        {"key": "Enter"},
        {"extract": {"css": "body", "as": "s"}},
        {"done": "{s}"},
    )
    assert end.report.answer == "?q=a&r=Yx"


@browser
async def test_select_takes_label_or_value_and_tells_the_page(site, play):
    site.pages["/"] = """<label>Sort <select id=s onchange="document.title += this.value">
        <option value=n>Name</option><option value=p>Price, low</option></select></label>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"select": {"in": {"role": "combobox", "name": "Sort"}, "option": "Price, low"}},
        {"select": {"in": {"css": "#s"}, "option": "n"}},
        {"extract": {"css": "title", "as": "t"}},
        {"extract": {"css": "#s", "as": "s"}},
        {"done": "{t} {s}"},
    )
    assert end.report.answer == "pn Name"


@browser
async def test_missing_option_names_those_that_are_there(site, play, impatient):
    site.pages["/"] = "<select><option>Red</option><option>Blue</option></select>"
    end = await play(
        {"navigate": site.url + "/"}, {"select": {"in": {"css": "select"}, "option": "Green"}}
    )
    assert "no option 'Green'" in end.report.reason
    assert "Red, Blue" in end.report.reason


@browser
async def test_scroll_and_page_keys_move_the_page(site, play):
    site.pages["/"] = """<body style="height:9000px"><p style="position:fixed" id=y></p>
      <script>onscroll = () => y.textContent = scrollY > 500 ? 'down' : 'up'</script>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"scroll": 900},
        {"extract": {"css": "#y", "as": "a"}},
        {"scroll": -900},
        {"extract": {"css": "#y", "as": "b"}},
        {"key": "PageDown"},
        {"wait": {"text": "down"}},
        {"done": "{a} {b}"},
    )
    assert (end.report.status, end.report.answer) == ("finished", "down up")


# Navigation and tabs.


@browser
async def test_click_that_navigates_is_waited_for_even_on_a_slow_server(site, play):
    site.pages |= {
        "/": "<a href=/slow>go</a><h1>old</h1>",
        "/slow": "<h1>new</h1><script src=/js></script>",
    }
    site.pages["/js"] = "document.querySelector('h1').textContent = 'newer'"
    site.slow_s |= {"/slow": 0.6, "/js": 0.4}
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "go"}},
        {"extract": {"css": "h1", "as": "h"}},
        {"done": "{h}"},
    )
    assert end.report.answer == "newer"


@browser
async def test_fetch_after_a_click_is_waited_for(site, play):
    site.pages["/"] = (
        """<button onclick="fetch('/data').then(r => r.text()).then(t => p.textContent = t)">x</button><p id=p>none</p>"""
    )
    site.pages["/data"] = "loaded"
    site.slow_s["/data"] = 0.5
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "x"}},
        {"extract": {"css": "#p", "as": "p"}},
        {"done": "{p}"},
    )
    assert end.report.answer == "loaded"


@browser
async def test_actions_cost_little_more_than_bare_navigation(site, play, chromium):
    site.pages |= {"/": "<a href=/b>go</a>", "/b": "<a href=/>go</a>"}
    start = time.monotonic()
    end = await play({"navigate": site.url + "/"}, *[{"click": {"text": "go"}}] * 10)
    ours = time.monotonic() - start
    assert end.report.status == "finished"
    cdp = await CDP.connect(chromium.ws_url)
    attach = {"targetId": end.first, "flatten": True}
    session = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
    start = time.monotonic()
    for _ in range(11):
        await cdp.send("Page.navigate", {"url": site.url + "/"}, session=session)
        await cdp.send("Runtime.evaluate", {"expression": "1"}, session=session)
    bare = time.monotonic() - start
    await cdp.close()
    # Each action has a floor of 40 ms; about 10 calls instead of 2 explain the ratio.
    assert ours < 11 * 0.2 + 10 * bare


@browser
async def test_address_that_does_not_answer_is_an_error(play):
    end = await play({"navigate": "http://127.0.0.1:9/"})
    assert end.report.status == "agent_error"
    assert "solution[0] navigate" in end.report.reason
    assert "ERR_" in end.report.reason


@browser
async def test_back_returns_to_loaded_and_to_pushed_states(site, play):
    site.pages["/"] = "<h1>one</h1><a href=/two>go</a>"
    site.pages["/two"] = """<h1>two</h1><button onclick="history.pushState(0, '', '/three');
        document.querySelector('h1').textContent = 'three'">push</button>
        <script>onpopstate = () => document.querySelector('h1').textContent = 'two again'</script>"""
    h1 = {"css": "h1"}
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "go"}},
        {"click": {"text": "push"}},
        {"back": True},
        {"extract": {**h1, "as": "a"}},
        {"back": True},
        {"extract": {**h1, "as": "b"}},
        {"done": "{a}, {b}"},
    )
    assert end.report.answer == "two again, one"


@browser
async def test_tabs_are_switched_and_closed_and_told_to_the_sink(site, play):
    site.pages |= {
        "/": "<title>Home</title><a href=/new target=_blank>open</a>",
        "/new": "<title>New</title><h1>n</h1>",
    }
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "open"}},
        {"switch_tab": {}},
        {"extract": {"css": "title", "as": "a"}},
        {"switch_tab": {"title": "Hom"}},
        {"extract": {"css": "title", "as": "b"}},
        {"switch_tab": {"url": "/new"}},
        {"close_tab": True},
        {"extract": {"css": "title", "as": "c"}},
        {"done": "{a} {b} {c}"},
    )
    assert end.report.answer == "New Home Home"
    newer = end.targets[2]
    assert newer != end.first
    assert end.targets == [
        end.first,
        end.first,
        newer,
        newer,
        end.first,
        end.first,
        newer,
        end.first,
        end.first,
    ]


@browser
async def test_click_that_closes_its_own_tab_is_no_error(site, play):
    site.pages |= {
        "/": "<a href=/new target=_blank rel=opener>open</a><h1>home</h1>",
        "/new": "<button onclick='window.close()'>bye</button>",
    }
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "open"}},
        {"switch_tab": {"url": "/new"}},
        {"click": {"text": "bye"}},
        {"switch_tab": {}},
        {"extract": {"css": "h1", "as": "h"}},
        {"done": "{h}"},
    )
    assert end.report.answer == "home"


@browser
async def test_only_tab_cannot_be_closed(play):
    end = await play({"close_tab": True})
    assert "this is the only tab" in end.report.reason


# Dialogs and downloads.


@browser
async def test_dialogs_are_dismissed_unless_the_next_answer_is_set(site, play):
    site.pages[
        "/"
    ] = """<p id=p></p><button id=c onclick="p.textContent += confirm('Sure?')">c</button>
      <button id=q onclick="p.textContent += prompt('Name?', 'x')">q</button>
      <button id=a onclick="alert('Hi'); p.textContent += 'after'">a</button>
      <button id=two onclick="p.textContent += [confirm('1'), confirm('2')]">t</button>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"css": "#c"}},
        {"dialog": {"accept": True}},
        {"click": {"css": "#c"}},
        {"dialog": {"accept": True, "text": "Ada"}},
        {"click": {"css": "#q"}},
        {"click": {"css": "#q"}},
        {"click": {"css": "#a"}},
        {"dialog": {"accept": True}},
        {"click": {"css": "#two"}},
        {"extract": {"css": "#p", "as": "p"}},
        {"done": "{p}"},
    )
    assert end.report.answer == "falsetrueAdanullaftertrue,false"
    assert end.calls[1].result == "dismissed confirm 'Sure?'"
    assert end.calls[2].result == "accepted confirm 'Sure?'"


@browser
async def test_download_is_waited_for_and_its_name_stored(site, play):
    site.pages |= {"/": "<a href=/a.csv>a</a> <a href=/b.csv>b</a>", "/a.csv": "1", "/b.csv": "2"}
    site.slow_s["/b.csv"] = 0.5
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "a"}},
        {"download": {"as": "file"}},
        {"click": {"text": "b"}},
        {"done": "{file}"},
    )
    assert end.report.answer == "b.csv"
    assert end.calls[-1].result == "downloaded b.csv"


@browser
async def test_download_that_never_begins_is_an_error(site, play, impatient):
    site.pages["/"] = "<button>a</button>"
    end = await play(
        {"navigate": site.url + "/"}, {"download": {"as": "f"}}, {"click": {"text": "a"}}
    )
    assert end.report.reason.endswith("no download began within 0.5 s")


# Extraction, waiting, ends.


@browser
async def test_extract_by_css_nth_and_pattern(site, play):
    site.pages["/"] = "<li>Pen: 3.50 €</li><li>Cap: 12.00 €</li>"
    end = await play(
        {"navigate": site.url + "/"},
        {"extract": {"css": "li", "nth": 1, "as": "all"}},
        {"extract": {"css": "li", "nth": 1, "regex": r"([\d.]+) €", "as": "group"}},
        {"extract": {"css": "li", "regex": r"\d+", "as": "whole"}},
        {"done": "{all}/{group}/{whole}"},
    )
    assert end.report.answer == "Cap: 12.00 €/12.00/3"
    assert end.calls[1].result == "Cap: 12.00 €"
    assert end.report.claimed_success is True


@browser
async def test_pattern_that_does_not_match_is_an_error(site, play, monkeypatch):
    monkeypatch.setattr(driving, "_REGEX_S", 0.3)
    site.pages["/"] = "<p>Total: none</p>"
    end = await play(
        {"navigate": site.url + "/"}, {"extract": {"css": "p", "regex": r"\d+", "as": "n"}}
    )
    assert end.report.status == "agent_error"
    assert r"'\d+' does not occur in 'Total: none'" in end.report.reason


@browser
async def test_wait_for_text_that_comes_and_that_never_comes(site, play):
    site.pages["/"] = (
        "<p>x</p><script>setTimeout(() => document.querySelector('p').textContent = 'ready', 600)</script>"
    )
    end = await play({"navigate": site.url + "/"}, {"wait": {"text": "ready"}})
    assert end.report.status == "finished"
    end = await play({"wait": {"text": "never", "timeout_s": 0.3}})
    assert "the page does not show 'never' within 0.3 s" in end.report.reason
    assert end.calls == []


@browser
async def test_stop_signal_passes_through_and_nothing_is_done_after_it(site, play):
    site.pages["/"] = "<p>x</p>"
    sink = Sink(stop_after=2)
    with pytest.raises(Stopped):
        await play({"navigate": site.url + "/"}, {"key": "Tab"}, {"key": "Tab"}, sink=sink)
    assert len(sink.calls) == 2


@browser
async def test_killed_browser_ends_the_attempt_soon(site, play, chromium):
    site.pages["/"] = "<p>x</p>"
    playing = asyncio.create_task(
        play({"navigate": site.url + "/"}, {"wait": {"text": "never", "timeout_s": 60}})
    )
    while "/" not in site.asked:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    chromium.kill()
    start = time.monotonic()
    end = await playing
    assert end.report.status == "agent_error"
    assert "socket" in end.report.reason
    assert time.monotonic() - start < 5


@browser
async def test_hostile_page_does_not_mislead_the_oracle(site, play):
    site.pages["/"] = """<button onclick="document.title='ok'">Buy</button><script>
      Document.prototype.querySelectorAll = () => []; Array.prototype.filter = () => [];
      Object.defineProperty(HTMLElement.prototype, 'innerText', {get: () => 'a lie'});
      Element.prototype.getClientRects = () => []; JSON.stringify = () => 'a lie';</script>"""
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Buy"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "ok"
