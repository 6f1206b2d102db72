"""Tasks on miniwob.test: a seeded episode of a MiniWoB++ page, and what was read on the way.

Templates, by the length of the path:

    phone     leaf through a contact book and click one entry                    easy
    mail      open one mail of an inbox and answer or forward it                 easy
    search    search, turn to the page of the n-th result and click it           easy
    login     sign in, with a pop-up in between                                  medium
    social    like (or pass on) every post of one person                         medium
    flight    search a flight by autocompletion and calendar, book the cheapest  medium

A page makes its instruction up from the seed in its address. What each seed gives was read off
in Chromium and is kept here, because a build needs no browser; tests compare it with the page.
Addresses are pinned by the probe too: an episode of another page or seed does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from builder.draft import Draft, Wrong

from browseruse_bench.sites.miniwob import HOST

CHECKED_ON = "2026-11-30"

PROBES: dict[str, Any] = {
    # The core's own WOB_DONE_GLOBAL and WOB_RAW_REWARD_GLOBAL, as they were when the first
    # episode of this page load ended; an agent's own script could write them.
    "miniwob": {
        "script": "typeof firstEpisode === 'function' ? firstEpisode() : {done: false}",
        "world": "page",
    }
}

PHONE = (
    {"seed": 12, "name": "Correna", "kind": "email", "said": "email", "leaf": 4,
     "phone": "376-726-2187", "address": "815 Nelson Terrace"},
    {"seed": 13, "name": "Vonni", "kind": "email", "said": "email", "leaf": 3,
     "phone": "720-450-1185", "address": "7759 Welch Terrace"},
)  # fmt: skip
MAIL = (
    {"seed": 4, "sender": "Gipsy", "index": 3, "subject": "Scelerisque.", "reply": "Nec quisque."},
    {"seed": 18, "sender": "Vonni", "index": 5, "subject": "Dolor, pellentesque.",
     "forward": "Reeta"},
)  # fmt: skip
SEARCH = (
    {"seed": 3, "name": "Vanda", "place": 5, "address": "https://www.blandit.ca",
     "before": "https://www.viverra.eu"},
    {"seed": 9, "name": "Beaulah", "place": 8, "address": "https://www.massaeget.co.uk",
     "before": "https://egestasvitae.pizza"},
)  # fmt: skip
LOGIN = (
    {"seed": 7, "user": "keli", "password": "1b", "field": "username",
     "popup": "Your session is going to expire soon."},
    {"seed": 21, "user": "marcella", "password": "CvopY", "field": "password",
     "popup": "You are running out of time, aren't you?"},
)  # fmt: skip
SOCIAL = (
    {"seed": 5, "user": "@fusce", "action": "like", "posts": [1, 3, 4], "last": "Et sed."},
    {"seed": 10, "user": "@fermentum", "action": "retweet", "posts": [0, 2, 3, 4, 6, 7, 9, 10],
     "last": "Convallis. Vestibulum. Turpis consectetur. Odio."},
)  # fmt: skip
FLIGHT = (
    {"seed": 3, "from": "Shreveport, LA (SHV)", "to": "Knoxville, TN (TYS)", "day": 27,
     "date": "10/27/2016", "said": "from: SHV to: TYS", "prices": [1009, 997, 1151]},
    {"seed": 16, "from": "Dayton, OH (DAY)", "to": "Brookings, SD (BKX)", "day": 24,
     "date": "10/24/2016", "said": "from: DAY to: Brookings, SD", "prices": [250, 850, 893, 194]},
)  # fmt: skip

Steps = list[dict[str, Any]]
Case = dict[str, Any]


def drafts() -> Iterator[Draft]:
    """All tasks of this site."""
    for template, cases in (
        (_phone, PHONE), (_mail, MAIL), (_search, SEARCH),
        (_login, LOGIN), (_social, SOCIAL), (_flight, FLIGHT),
    ):  # fmt: skip
        for number, case in enumerate(cases, 1):
            yield template(number, case)


def address(page: str, seed: int) -> str:
    return f"http://{HOST}/miniwob/{page}.html?seed={seed}"


# Actions


def click(selector: str) -> dict[str, Any]:
    return {"click": {"css": selector}}


def type_text(selector: str, text: str) -> dict[str, Any]:
    return {"type": {"into": {"css": selector}, "text": text}}


def keep(selector: str, name: str) -> dict[str, Any]:
    return {"extract": {"css": selector, "as": name}}


def finished() -> dict[str, Any]:
    return {"wait": {"text": "FINISHED"}}


# Rubrics


def episode(page: str, seed: int, weight: int, requirement: str) -> dict[str, Any]:
    """The first episode of this very page and seed ended with the full reward."""
    value = {
        "page": f"{HOST}/miniwob/{page}.html",
        "seed": str(seed),
        "done": True,
        "raw_reward": 1,
    }
    return {
        "id": "A1_done",
        "requirement": requirement,
        "facts": ["F1"],
        "weight": weight,
        "check": {"kind": "probe", "name": "miniwob", "equals": value},
    }


def answer(
    number: int, requirement: str, weight: int, value: Any, match: str = "text"
) -> dict[str, Any]:
    return {
        "id": f"A{number}_answer",
        "requirement": requirement,
        "facts": [f"F{number}"],
        "weight": weight,
        "check": {"kind": "answer", "values": [value], "match": match},
    }


def fact(number: int, claim: str, values: list[Any], url: str, quote: str) -> dict[str, Any]:
    return {
        "id": f"F{number}",
        "claim": claim,
        "values": values,
        "url": url,
        "quote": quote,
        "how": "site",
        "checked_on": CHECKED_ON,
    }


def _draft(
    template: str, number: int, start_url: str, difficulty: str, wrong: Wrong, **fields: Any
) -> Draft:
    return Draft(
        task_id=f"miniwob-{template}-{number}",
        template=f"miniwob-{template}",
        website=HOST,
        start_url=start_url,
        category="Interaction",
        difficulty=difficulty,
        wrong=wrong,
        **fields,
    )


# Templates


def _phone(number: int, case: Case) -> Draft:
    start = address("phone-book", case["seed"])
    name, kind = case["name"], case["kind"]
    turn: Steps = [{"navigate": start}, *[click("#pagination .next a")] * (case["leaf"] - 1)]
    read: Steps = [keep("#contact .phone", "phone"), keep("#contact .address", "address")]
    reading: Steps = [*turn, {"wait": {"text": name}}, *read]
    said: Steps = [finished(), {"done": "Phone {phone}, address {address}"}]
    return _draft(
        "phone",
        number,
        start,
        "easy",
        task="There is a small contact book on the start page. Do what the yellow box at its top "
        "says, and tell me the phone number and the address of that person.",
        expected_result=f"{case['phone']}; {case['address']}",
        items=[
            episode("phone-book", case["seed"], 50, f"Clicked the {kind} of {name}."),
            answer(2, f"Says that the phone number is {case['phone']}.", 25, case["phone"]),
            answer(3, f"Says that the address is {case['address']}.", 25, case["address"]),
        ],
        facts=[
            fact(1, f"The box asks for the {kind} of {name}.", [name], start,
                 f"Find {name} in the contact book and click on their {case['said']}."),
            fact(2, f"The phone number of {name}.", [case["phone"]], start, case["phone"]),
            fact(3, f"The address of {name}.", [case["address"]], start, case["address"]),
        ],
        failures=[
            {"text": f"Clicks another entry than the {kind}.",
             "looks_like": "the episode ends with a raw reward below 1"},
        ],
        solution=[*reading, click(f"#contact a.{kind}"), *said],
        wrong=Wrong(
            why=f"Clicks the phone number in place of the {kind}, and reports rightly.",
            solution=[*reading, click("#contact a.phone"), *said],
            points=50,
        ),
    )  # fmt: skip


def _mail(number: int, case: Case) -> Draft:
    start = address("email-inbox", case["seed"])
    sender, subject = case["sender"], case["subject"]
    read: Steps = [
        {"navigate": start},
        click(f"#main .email-thread[data-index='{case['index']}'] .email-sender"),
        keep("#email .email-subject", "subject"),
    ]
    said: Steps = [finished(), {"done": "The subject is: {subject}"}]
    if "reply" in case:
        asked = f'Find the email by {sender} and reply to them with the text "{case["reply"]}".'
        sent = f'The reply to {sender} says: "{case["reply"]}"'
        write = [click(".email-reply"), type_text("#reply-text", case["reply"])]
        spoiled = [click(".email-reply"), type_text("#reply-text", "Thank you!")]
        send, slip = click("#send-reply"), "Replies with a text of its own"
    else:
        asked = f"Find the email by {sender} and forward that email to {case['forward']}."
        sent = f"The mail of {sender} is forwarded to {case['forward']}."
        write = [click(".email-forward"), type_text(".forward-sender", case["forward"])]
        spoiled = [click(".email-forward"), type_text(".forward-sender", sender)]
        send, slip = click("#send-forward"), "Forwards the mail to its sender"
    return _draft(
        "mail",
        number,
        start,
        "easy",
        task="Open the little inbox on the start page and do what the yellow box above it says. "
        "Then tell me the subject of the mail that this was about.",
        expected_result=subject,
        items=[
            episode("email-inbox", case["seed"], 60, sent),
            answer(2, f"Says that the subject is: {subject}", 40, subject),
        ],
        facts=[
            fact(1, "What the box asks for.", [sender], start, asked),
            fact(2, f"The subject of the mail from {sender}.", [subject], start, subject),
        ],
        failures=[
            {"text": "Sends something else.", "looks_like": "the episode ends with reward -1"},
        ],
        solution=[*read, *write, send, *said],
        wrong=Wrong(
            why=f"{slip}; the subject is reported rightly.",
            solution=[*read, *spoiled, send, *said],
            points=40,
        ),
    )  # fmt: skip


def _search(number: int, case: Case) -> Draft:
    start = address("search-engine", case["seed"])
    name, place, found = case["name"], case["place"], case["address"]
    page, row = (place - 1) // 3 + 1, (place - 1) % 3
    turn: Steps = [
        {"navigate": start}, type_text("#search-text", name), click("#search"),
        {"click": {"css": "#pagination li.page-item:not(.first):not(.prev) a", "nth": page - 1}},
    ]  # fmt: skip

    def choose(nth: int) -> Steps:
        return [
            {"extract": {"css": "#page-content .search-url", "nth": nth, "as": "url"}},
            {"click": {"css": "#page-content a", "nth": nth}},
            finished(),
            {"done": "{url}"},
        ]

    ordinal = f"{place}th"
    return _draft(
        "search",
        number,
        start,
        "easy",
        task="Follow the instruction in the yellow box above the search engine on the start page, "
        "and tell me the web address that is shown under the result that you click.",
        expected_result=found,
        items=[
            episode("search-engine", case["seed"], 60, f"Clicked the {ordinal} result for {name}."),
            answer(2, f"Says that the address is {found}.", 40, found),
        ],
        facts=[
            fact(1, "What the box asks for.", [name, place], start,
                 f'Use the textbox to enter "{name}" and press "Search", then find and click the '
                 f"{ordinal} search result."),
            fact(2, f"The address of the {ordinal} result.", [found], start, found),
        ],
        failures=[
            {"text": "Counts the results wrongly.", "looks_like": f"the answer {case['before']}"},
        ],
        solution=[*turn, *choose(row)],
        wrong=Wrong(
            why=f"Clicks the result before the {ordinal} and reports that one's address.",
            solution=[*turn, *choose(row - 1)],
            points=0,
        ),
    )  # fmt: skip


def _login(number: int, case: Case) -> Draft:
    start = address("login-user-popup", case["seed"])
    user, password, popup = case["user"], case["password"], case["popup"]
    name_typed, password_typed = type_text("#username", user), type_text("#password", password)
    before: Steps = [{"navigate": start}]
    if case["field"] == "username":
        after: Steps = [name_typed, password_typed, click("#subbtn")]
    else:
        before.append(name_typed)
        after = [password_typed, click("#subbtn")]
    meet: Steps = [*before, click(f"#{case['field']}"), keep("#popup p", "popup")]
    said: Steps = [finished(), {"done": "The pop-up said: {popup}"}]
    return _draft(
        "login",
        number,
        start,
        "medium",
        task="Sign in on the start page with the account that the yellow box names. A pop-up will "
        "come in between: do not leave the page because of it, and tell me its first sentence, "
        "word by word.",
        expected_result=popup,
        items=[
            episode("login-user-popup", case["seed"], 70, f"Signed in as {user}."),
            answer(2, f"Says that the pop-up said: {popup}", 30, popup),
        ],
        facts=[
            fact(1, "What the box asks for.", [user, password], start,
                 f'Enter the username "{user}" and the password "{password}" into the text '
                 "fields and press login."),
            fact(2, "What the pop-up says.", [popup], start, popup),
        ],
        failures=[
            {"text": "Confirms the pop-up, which leaves the page.",
             "looks_like": "a click on OK in the pop-up; the episode ends with reward -1"},
        ],
        solution=[*meet, click("#popup-cancel"), *after, *said],
        wrong=Wrong(
            why="Confirms that it wants to leave; the pop-up is reported rightly.",
            solution=[*meet, click("#popup-ok"), *said],
            points=30,
        ),
    )  # fmt: skip


def _social(number: int, case: Case) -> Draft:
    start = address("social-media-all", case["seed"])
    user, action, posts, last = case["user"], case["action"], case["posts"], case["last"]

    def press(indices: list[int]) -> Steps:
        return [click(f".media[data-result='{index}'] .{action}") for index in indices]

    read = keep(f".media[data-result='{posts[-1]}'] .body", "last")
    said: Steps = [click("#submitRow button"), finished(), {"done": "{last}"}]
    return _draft(
        "social",
        number,
        start,
        "medium",
        task="Do what the yellow box above the list of posts on the start page says. Afterwards "
        "tell me, word by word, what the lowest of these posts in the list says.",
        expected_result=last,
        items=[
            episode("social-media-all", case["seed"], 70,
                    f"Pressed {action} on exactly the {len(posts)} posts of {user}."),
            answer(2, f"Says that the lowest post of {user} reads: {last}", 30, last),
        ],
        facts=[
            fact(1, "What the box asks for.", [user], start,
                 f'Click the "{action.capitalize()}" button on all posts by {user} and then '
                 "click Submit."),
            fact(2, f"The text of the lowest post of {user}.", [last], start, last),
        ],
        failures=[
            {"text": "Misses a post further down.", "looks_like": "fewer clicks than posts"},
        ],
        solution=[{"navigate": start}, read, *press(posts), *said],
        wrong=Wrong(
            why=f"Leaves out the first post of {user}; the lowest one is reported rightly.",
            solution=[{"navigate": start}, read, *press(posts[1:]), *said],
            points=30,
        ),
    )  # fmt: skip


def _flight(number: int, case: Case) -> Draft:
    start = address("book-flight-nodelay", case["seed"])
    prices = case["prices"]
    cheapest = min(prices)
    # The calendar opens at December 2016, the last month that it has.
    back_to_october = [click(".ui-datepicker-prev")] * 2
    search: Steps = [
        {"navigate": start},
        *_complete("#flight-from", case["from"]),
        *_complete("#flight-to", case["to"]),
        click("#datepicker"), *back_to_october,
        {"click": {"text": str(case["day"])}},
        click("#search"),
        {"wait": {"text": f"${cheapest}"}},
    ]  # fmt: skip

    def book(price: int) -> Steps:
        chosen = f"#results .flight-price[data-price='{price}']"
        kept = {"extract": {"css": chosen, "regex": r"\$(\d+)", "as": "price"}}
        return [kept, click(chosen), finished(), {"done": "It costs ${price}"}]

    return _draft(
        "flight",
        number,
        start,
        "medium",
        task="Book the flight that the yellow box on the start page asks for, and tell me what "
        "it costs, in US dollars.",
        expected_result=f"${cheapest}",
        items=[
            episode("book-flight-nodelay", case["seed"], 70, "Booked the cheapest flight."),
            answer(2, f"Says that it costs ${cheapest}.", 30, cheapest, "number"),
        ],
        facts=[
            fact(1, "What the box asks for.", [case["date"]], start,
                 f"Book the cheapest one-way flight {case['said']} on {case['date']}."),
            fact(2, f"The cheapest of {len(prices)} flights.", [cheapest], start,
                 f"Book flight for ${cheapest}"),
        ],
        failures=[
            {"text": "Books the first flight of the list.",
             "looks_like": f"the answer ${prices[0]}"},
        ],
        solution=[*search, *book(cheapest)],
        wrong=Wrong(
            why="Books the first flight of the list, which is not the cheapest.",
            solution=[*search, *book(prices[0])],
            points=0,
        ),
    )  # fmt: skip


def _complete(field: str, whole: str) -> Steps:
    """Type the airport's code and take the suggestion."""
    code = whole[-4:-1]
    return [type_text(field, code), {"click": {"text": whole}}]
