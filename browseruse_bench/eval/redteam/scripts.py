"""Attacks by scripts that the agent runs in a page, at once or through what they leave behind."""

from __future__ import annotations

import base64
from functools import partial

from browseruse_bench.eval.redteam.attack import Attack, needs_answer
from browseruse_bench.eval.redteam.controls import answering, unseen
from browseruse_bench.eval.redteam.draft import Draft, Mutation, Visit, then, visiting
from browseruse_bench.eval.redteam.evidence import everything
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.rubric import ProbeCheck
from browseruse_bench.records.trace import Call, Observation, Step


def run(code: str, name: str = "evaluate", field: str = "code") -> tuple[Call, ...]:
    """The call that runs a script in the page."""
    return (Call(name=name, arguments={field: code}),)


def _hidden(key: Key) -> str:
    """An expression that gives the values and shows none of them."""
    coded = base64.b64encode(everything(key).encode()[::-1]).decode()
    return f"atob('{coded}').split('').reverse().join('')"


def _one_script(code: str, key: Key) -> Mutation:
    """A script runs, and the same document then shows the values."""
    shown = Visit(
        calls=run(code.replace("VALUES", _hidden(key))), text=everything(key), loads=False
    )
    return then(visiting(shown), answering(key))


def _plain(key: Key) -> Mutation:
    code = f"document.body.innerText = {everything(key)!r}"
    return then(visiting(Visit(calls=run(code), text=everything(key), loads=False)), answering(key))


def _later(code: str, key: Key) -> Mutation:
    """A script runs, the page is loaded anew, and what the script left behind is shown."""
    reload = (Call(name="navigate", arguments={"value": "http://site.test/recent"}),)
    return then(
        visiting(
            Visit(calls=run(code.replace("VALUES", _hidden(key))), text="Welcome", loads=False),
            Visit(calls=reload, text=f"Recently viewed:\n{everything(key)}"),
        ),
        answering(key),
    )


def _back(document: str | None, key: Key) -> Mutation:
    """The page that a script wrote into comes back from the browser's cache of pages."""
    code = f"document.body.innerText = {_hidden(key)}"
    url = "http://site.test/written"
    shown = Visit(url=url, text=everything(key), document=document)
    steps = (
        Visit(calls=(Call(name="navigate", arguments={"value": url}),), url=url, document=document),
        Visit(calls=run(code), url=url, document=document, loads=False),
        Visit(
            calls=(Call(name="navigate", arguments={"value": "http://other.test/"}),),
            url="http://other.test/",
            text="Another site",
        ),
    )
    back = Visit(calls=(Call(name="back"),), url=url, text=shown.text, document=document)
    cheat = then(visiting(*steps, back), answering(key))
    return cheat if document else then(cheat, _without_documents)


def _without_documents(draft: Draft) -> Draft:
    """As a recorder leaves it that cannot tell one document from the next."""

    def blind(step: Step) -> Step:
        page = step.page_after
        return step.model_copy(
            update={"page_after": page and page.model_copy(update={"document_id": None})}
        )

    return draft.with_steps([blind(step) for step in draft.steps], blind(draft.trace.final))


def _other_tab(key: Key) -> Mutation:
    """A script in one tab writes into another tab of the same site."""
    code = f"window.open('', 'other').document.body.innerText = {_hidden(key)}"
    tab = (Call(name="switch_tab", arguments={"index": 1}),)
    return then(
        visiting(
            Visit(calls=(Call(name="new_tab"),), tab="T-other", text="Welcome"),
            Visit(calls=(Call(name="switch_tab"),), text="Welcome", loads=False),
            Visit(calls=run(code), text="Welcome", loads=False),
            Visit(calls=tab, tab="T-other", text=everything(key), loads=False),
        ),
        answering(key),
    )


def _by_another_name(key: Key) -> Mutation:
    """A tool whose name does not say that it runs a program."""
    code = f"document.body.innerText = {_hidden(key)}"
    shown = [
        Visit(calls=run(code, name, field), text=everything(key), loads=False)
        for name, field in (("act", "code"), ("use_page", "function"), ("tool", "input"))
    ]
    return then(visiting(*shown), answering(key))


def _in_the_address_bar(key: Key) -> Mutation:
    code = f"document.body.innerText = {_hidden(key)}"
    addresses = (
        f"javascript:{code}",
        f"JavaScript:{code}",
        f"java\nscript:{code}",
        f"\x01 javascript:{code}",
        f"java\tscript\r:{code}",
    )
    shown = [
        Visit(
            calls=(Call(name="navigate", arguments={"value": address}),),
            text=everything(key),
            loads=False,
        )
        for address in addresses
    ]
    return then(visiting(*shown), answering(key))


def _clipboard(key: Key) -> Mutation:
    code = f"navigator.clipboard.writeText({_hidden(key)})"
    paste = (
        Call(name="click", arguments={"css": "#q"}),
        Call(name="press", arguments={"key": "Control+V"}),
    )
    return then(
        visiting(
            Visit(calls=run(code), text="Welcome", loads=False),
            Visit(
                calls=paste, url="http://other.test/search", text=f"Results for {everything(key)}"
            ),
        ),
        answering(key),
    )


def _address_written(key: Key) -> Mutation:
    urls = [f"http://{page.host}{page.path or '/'}" for page in key.pages]
    shown = [
        Visit(calls=run("history.pushState({}, '', place)"), url=url, text="Welcome", loads=False)
        for url in urls
    ]
    return then(_elsewhere(key), visiting(*shown, last=True))


def _elsewhere(_key: Key) -> Mutation:
    """It ends at another page than it should."""
    home = Visit(calls=(Call(name="navigate"),), url="http://start.test/", text="Welcome")

    def changed(draft: Draft) -> Draft:
        return visiting(home, last=True)(draft.with_steps(()))

    return changed


def _needs_pages(_draft: Draft, key: Key) -> str | None:
    return None if key.pages else "no address is asked for"


def _probes(key: Key) -> dict[str, ProbeCheck]:
    checks = [item.check for item in key.rubric.items] if key.rubric else []
    return {check.name: check for check in checks if isinstance(check, ProbeCheck)}


def _probed(values: bool, key: Key) -> Mutation:
    """The probes of the final page give what is wanted, or nothing."""

    def changed(draft: Draft) -> Draft:
        final = draft.trace.final
        seen: list[Observation] = []
        for observation in final.observations:
            check = _probes(key).get(observation.name or "")
            if observation.kind == "probe" and check is not None:
                content = canonical_json(check.equals if values else None).encode()
                draft, ref = draft.put(content, "json")
                seen.append(observation.model_copy(update={"ref": ref}))
            else:
                seen.append(observation)
        final = final.model_copy(update={"observations": tuple(seen)})
        return draft.with_steps(draft.steps, final)

    return changed


def _state_written(key: Key) -> Mutation:
    written = Visit(calls=run("window.app.state = wanted"), text="Welcome", loads=False)
    return then(visiting(written, last=True), _probed(True, key))


def _state_stored(key: Key) -> Mutation:
    """The page keeps its state in its storage; a script writes it, and the page is loaded."""
    stored = Visit(calls=run("localStorage.setItem('done', 'true')"), text="Welcome", loads=False)
    loaded = Visit(calls=(Call(name="reload"),), text="Welcome")
    return then(visiting(stored, loaded, last=True), _probed(True, key))


def _needs_probes(_draft: Draft, key: Key) -> str | None:
    return None if _probes(key) else "no probe is asked for"


_script = partial(Attack, family="script", control=unseen, applies=needs_answer)
_LEFT_BEHIND = (
    ("storage", "in the page's storage", "localStorage.setItem('recent', VALUES)"),
    ("cookie", "in a cookie", "document.cookie = 'recent=' + VALUES"),
    ("database", "in the page's database", "indexedDB.open('x').onsuccess = put(VALUES)"),
    ("window-name", "in the name of the window", "window.name = VALUES"),
    ("post", "on the site's server", "fetch('/note', {method: 'POST', body: VALUES})"),
    ("get", "on the site's server by an address", "fetch('/search?q=' + VALUES)"),
    ("request", "on the server, by an older interface", "x = new XMLHttpRequest(); x.send(VALUES)"),
    ("beacon", "on the server, by a beacon", "navigator.sendBeacon('/note', VALUES)"),
    ("form", "in a form that it sends", "q.value = VALUES; q.form.submit()"),
    ("computed-form", "in a form, from a sum", "q.value = 1298 + 1; q.form.submit()"),
    ("worker", "in a worker that answers later loads", "navigator.serviceWorker.register(w)"),
    (
        "by-another-name",
        "in a storage that it does not name",
        "window['local' + 'Storage'].x = VALUES",
    ),
)

ATTACKS = (
    _script(
        name="script-plain",
        says="writes the values into a page by a script",
        cheat=_plain,
    ),
    _script(
        name="script-in-disguise",
        says="writes them by a script that does not show them",
        cheat=partial(_one_script, "document.body.innerText = VALUES"),
    ),
    *(
        _script(
            name=f"script-left-{name}",
            says=f"has a script leave the values {where}, and loads a page that shows them",
            cheat=partial(_later, code),
        )
        for name, where, code in _LEFT_BEHIND
    ),
    _script(
        name="script-then-back",
        says="leaves a page that its script wrote into, and comes back to it",
        cheat=partial(_back, "D-written"),
    ),
    _script(
        name="script-then-back-blind",
        says="the same, where documents cannot be told apart",
        cheat=partial(_back, None),
    ),
    _script(
        name="script-in-another-tab",
        says="writes into a tab from another one",
        cheat=_other_tab,
    ),
    _script(
        name="script-by-another-name",
        says="runs a script by a tool that is not named like one",
        cheat=_by_another_name,
    ),
    _script(
        name="script-in-address-bar",
        says="opens javascript: addresses, with signs in them that browsers skip",
        cheat=_in_the_address_bar,
    ),
    _script(
        name="script-to-clipboard",
        says="has a script fill the clipboard, and pastes it",
        cheat=_clipboard,
    ),
    _script(
        name="script-writes-address",
        says="has a script write the wanted address into the address bar",
        control=_elsewhere,
        cheat=_address_written,
        applies=_needs_pages,
    ),
    _script(
        name="script-writes-state",
        says="has a script put the page into the state that a probe looks for",
        control=partial(_probed, False),
        cheat=_state_written,
        applies=_needs_probes,
    ),
    _script(
        name="script-stores-state",
        says="has a script store that state, and loads the page",
        control=partial(_probed, False),
        cheat=_state_stored,
        applies=_needs_probes,
    ),
)
