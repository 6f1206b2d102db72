# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# It runs in the environment of browser-use, which the type checker does not see.
"""The process that runs browser-use for one attempt; see `agents.protocol` for what it says.

Needs browser-use and the standard library, and the two modules beside it, which need nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

PROTOCOL = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
os.dup2(2, 1)  # whatever a library prints cannot tear a line of the protocol

SCRATCH = os.environ.get("TMPDIR", "/tmp")
KEY = os.environ.pop("BUBENCH_MODEL_KEY", None)
# All of it is read while the library is imported.
os.environ.update(
    {
        "ANONYMIZED_TELEMETRY": "false",
        "BROWSER_USE_CLOUD_SYNC": "false",
        "BROWSER_USE_VERSION_CHECK": "false",
        "BROWSER_USE_CLOUD_HINTS": "false",
        "BROWSER_USE_DISABLE_EXTENSIONS": "1",
        "BROWSER_USE_SETUP_LOGGING": "false",
        "SKIP_LLM_API_KEY_VERIFICATION": "true",
        # The library loads any .env in the folders above its own: those are the user's secrets.
        "PYTHON_DOTENV_DISABLED": "1",
        "BROWSER_USE_CONFIG_DIR": f"{SCRATCH}/config",
        "XDG_CONFIG_HOME": f"{SCRATCH}/config",
        "XDG_CACHE_HOME": f"{SCRATCH}/cache",
        "HOME": SCRATCH,
    }
)

import native  # noqa: E402  beside this file
from scripted import GIVE_UP, Player, page_of  # noqa: E402

_before = time.process_time()
from browser_use import Agent, Browser, ChatAnthropic, ChatGoogle, ChatOpenAI, Tools  # noqa: E402
from browser_use.browser.events import SwitchTabEvent  # noqa: E402
from browser_use.browser.watchdogs.aboutblank_watchdog import AboutBlankWatchdog  # noqa: E402
from browser_use.llm import ChatOpenRouter  # noqa: E402
from browser_use.llm.views import ChatInvokeCompletion, ChatInvokeUsage  # noqa: E402
from browser_use.utils import get_browser_use_version  # noqa: E402

IMPORT_CPU_S = time.process_time() - _before
MAX_FAILURES = 3
"""Failing turns in a row after which the library asks for a last word, and then stops."""
_OF_STEP = 0.75  # the share of the longest silence that one call of the model or page may take


async def _no_animation(self: Any) -> None:
    """Leave about:blank blank: the library draws its logo there, from its maker's server."""


AboutBlankWatchdog._show_dvd_screensaver_on_about_blank_tabs = _no_animation  # noqa: SLF001


class Told:
    """The harness, spoken to: numbered messages, each answered before the worker goes on."""

    def __init__(self) -> None:
        self.stop: Any = None
        """The limit that the harness said was reached."""
        self._n = 0
        self._waiting: dict[int, asyncio.Future] = {}
        self._orders: asyncio.Queue = asyncio.Queue()

    def say(self, **message: Any) -> None:
        PROTOCOL.write(json.dumps(message, default=str) + "\n")

    async def ask(self, **message: Any) -> None:
        """Say it and wait until the harness has recorded it, even if the caller is cancelled
        meanwhile: its answer belongs to this message.
        """
        self._n += 1
        answered = asyncio.get_running_loop().create_future()
        self._waiting[self._n] = answered
        self.say(n=self._n, **message)
        await asyncio.shield(answered)

    async def order(self) -> dict:
        return await self._orders.get()

    async def listen(self) -> None:
        """Hand on what comes in; the end of it ends this process at once."""
        reader = asyncio.StreamReader(limit=64 * 2**20)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = json.loads(line)
            if message["type"] == "recorded":
                self.stop = message.get("stop") or self.stop
                self._waiting.pop(message["n"]).set_result(None)
            else:
                self._orders.put_nowait(message)
        os._exit(0)


class Scripted:
    """A chat model of the library that plays a script: no socket, no key."""

    _verified_api_keys = True
    provider = "scripted"

    def __init__(self, name: str, script: list | None) -> None:
        self.model = self.name = self.model_name = name
        self._player = Player(script if script is not None else GIVE_UP)

    async def ainvoke(
        self, messages: list, output_format: Any = None, **_kwargs: Any
    ) -> ChatInvokeCompletion:
        page = page_of([message.text for message in messages])
        if output_format is None:
            answer = "A scripted model extracts nothing."
        else:
            said: dict[str, Any] = {
                "evaluation_previous_goal": "",
                "memory": "",
                "next_goal": "play on",
            }
            said["action"] = self._player.actions(page)
            answer = output_format.model_validate(said)
        n_in = sum(len(message.text) for message in messages) // 4
        n_out = len(answer if isinstance(answer, str) else answer.model_dump_json()) // 4
        usage = ChatInvokeUsage(
            prompt_tokens=n_in,
            prompt_cached_tokens=0,
            prompt_cache_creation_tokens=None,
            prompt_image_tokens=None,
            completion_tokens=n_out,
            total_tokens=n_in + n_out,
        )
        return ChatInvokeCompletion(completion=answer, usage=usage, stop_reason="stop")


def make_model(spec: dict) -> Any:
    """The chat model of a spec: {provider, name, base_url?, script?}."""
    provider, name = spec["provider"], spec["name"]
    place = {"base_url": spec["base_url"]} if spec.get("base_url") else {}
    if provider == "scripted":
        return Scripted(name, spec.get("script"))
    if provider == "anthropic":
        return ChatAnthropic(model=name, api_key=KEY, **place)
    if provider == "google":
        return ChatGoogle(model=name, api_key=KEY, http_options=place or None)
    if provider == "openrouter":
        return ChatOpenRouter(model=name, api_key=KEY, **place)
    # With its default of 4096 tokens the library fails where a thinking model says more.
    return ChatOpenAI(
        model=name,
        api_key=KEY or "no key",
        base_url=spec.get("base_url"),
        max_completion_tokens=None,
        max_retries=2,
    )


class Recorded(Tools):
    """The library's tools, which go on only when the harness has recorded the last action."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(exclude_actions=["screenshot"])
        self._attempt = attempt

    async def act(self, action: Any, browser_session: Any, **kwargs: Any) -> Any:
        attempt = self._attempt
        if attempt.told.stop is not None:
            raise InterruptedError(attempt.told.stop)
        asked = action.model_dump(exclude_unset=True, mode="json")
        element = await attempt.element(action)
        attempt.say_usage()
        t0 = attempt.now()
        kwargs.setdefault("action_timeout", attempt.call_timeout_s)
        result = await super().act(action=action, browser_session=browser_session, **kwargs)
        done = native.call(asked, result.model_dump(exclude_none=True, mode="json"), element)
        fields = {name: value for name, value in vars(done).items() if value is not None}
        await attempt.told.ask(
            type="action",
            call={**fields, "t0": t0, "t1": attempt.now()},
            focus=browser_session.agent_focus_target_id,
            index=attempt.index,
        )
        if attempt.told.stop is not None:
            attempt.agent.stop()
        return result


class Attempt:
    """One attempt: the library's agent between its browser and the harness."""

    def __init__(self, told: Told, order: dict) -> None:
        self.told = told
        self._order = order
        self._start = time.monotonic()
        self._limits = order["limits"]
        self._price: dict | None = order["settings"]["model"].get("price")
        self._n_native = 0
        self.call_timeout_s = self._limits["step_s"] * _OF_STEP
        self.run_error: str | None = None
        self.browser = Browser(
            cdp_url=order["ws_url"],
            keep_alive=True,  # the harness looks at the browser after the agent's end
            headless=False,  # i.e. pages are as large as the window that the harness made
            no_viewport=True,
            captcha_solver=False,
            enable_default_extensions=False,
            highlight_elements=False,
            downloads_path=order.get("downloads") or f"{order['work']}/downloads",
        )
        self.agent = Agent(
            task=_text(order["task"]),
            llm=self._lively(make_model(order["settings"]["model"])),
            browser=self.browser,
            tools=Recorded(self),
            available_file_paths=[str(p) for p in _files(Path(order["attachments"]))],
            file_system_path=f"{order['work']}/files",
            use_judge=False,
            directly_open_url=False,
            enable_signal_handler=False,
            calculate_cost=False,
            max_failures=MAX_FAILURES,
            llm_timeout=int(self.call_timeout_s) or 1,
            # The harness ends a turn that is silent too long; one that is only long may go on.
            step_timeout=int(self._limits["seconds"]) + 1,
        )

    @property
    def index(self) -> int:
        """The library's number of the present turn."""
        return self.agent.state.n_steps

    def now(self) -> float:
        """Seconds since the order came."""
        return round(time.monotonic() - self._start, 3)

    async def element(self, action: Any) -> dict | None:
        """The element that an action names, as the library records it."""
        index = action.get_index()
        node = None if index is None else await self.browser.get_element_by_index(index)
        if node is None:
            return None
        return {
            "node_name": node.node_name,
            "ax_name": node.ax_node.name if node.ax_node else None,
            "attributes": dict(node.attributes or {}),
        }

    async def run(self) -> dict:
        """Carry it out; the fields of the protocol's `end`."""
        try:
            await self.browser.start()
            await self._focus(self._order["target_id"])
            await self.agent.run(max_steps=self._limits["steps"], on_step_end=self._step_done)
        except Exception as error:  # noqa: BLE001  whatever the library raises ends the attempt
            self.run_error = f"{type(error).__name__}: {error}"
        history = self._history()
        end = native.end(
            history,
            n_steps=self.index - 1,
            max_steps=self._limits["steps"],
            run_error=self.run_error,
            stopped=self.told.stop,
        )
        self._keep(history)
        errors = [error for step in native.steps(history) for error in step.errors]
        return {**vars(end), "usage": self.usage(), "errors": errors}

    async def _focus(self, target_id: str | None) -> None:
        """Work in the page that the harness gave."""
        if target_id and self.browser.agent_focus_target_id != target_id:
            await self.browser.event_bus.dispatch(SwitchTabEvent(target_id=target_id))

    async def _step_done(self, agent: Any) -> None:
        items = agent.history.history[self._n_native :]
        self._n_native += len(items)
        self._keep_files()
        self.say_usage()
        for item in items:
            record = _without_pictures(item.model_dump())
            record.pop("state_message", None)
            done = native.step(record)
            await self.told.ask(type="step", index=done.index, thought=done.thought, native=record)
        if self.told.stop is not None:
            self.agent.stop()

    def say_usage(self) -> None:
        for entry in self.usage():
            self.told.say(type="usage", usage=entry)

    def usage(self) -> list[dict]:
        """What each model was asked for so far, cut-off turns included."""
        totals: dict[str, dict] = {}
        for entry in self.agent.token_cost_service.usage_history:
            total = totals.setdefault(entry.model, {"in": 0, "cached": 0, "out": 0})
            total["in"] += entry.usage.prompt_tokens
            total["cached"] += entry.usage.prompt_cached_tokens or 0
            total["out"] += entry.usage.completion_tokens
        return [self._usage_of(model, total) for model, total in totals.items()]

    def _usage_of(self, model: str, total: dict) -> dict:
        uncached = max(total["in"] - total["cached"], 0)
        price, cost = self._price, None
        if price is not None:
            million = (
                uncached * price["input"]
                + total["cached"] * price["cached"]
                + total["out"] * price["output"]
            )
            cost = million / 1e6
        return {
            "model": model,
            "uncached_tokens": uncached,
            "cached_tokens": total["cached"],
            "output_tokens": total["out"],
            "cost_usd": cost,
            "price_source": price["source"] if price is not None else None,
        }

    def _lively(self, model: Any) -> Any:
        """The model, which gives a sign of life before and after each answer."""
        plain = model.ainvoke

        async def ainvoke(*args: Any, **kwargs: Any) -> Any:
            self.told.say(type="heartbeat")
            try:
                return await plain(*args, **kwargs)
            finally:
                self.told.say(type="heartbeat")

        object.__setattr__(model, "ainvoke", ainvoke)
        return model

    def _history(self) -> list[dict]:
        return [_without_pictures(item.model_dump()) for item in self.agent.history.history]

    def _keep(self, history: list[dict]) -> None:
        """The library's own record, whole, with what its file format leaves out."""
        record = {
            "browser_use": get_browser_use_version(),
            "max_steps": self._limits["steps"],
            "n_steps": self.index - 1,
            "run_error": self.run_error,
            "stopped": self.told.stop,
            "usage": self.usage(),
            "history": history,
        }
        text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
        Path(self._order["native"], "history.json").write_text(
            text, encoding="utf-8", errors="replace"
        )
        self._keep_files()

    def _keep_files(self) -> None:
        """Copy what the agent wrote; the library's empty to-do list is none of it."""
        for path in _files(self.agent.file_system.get_dir()):
            if path.stat().st_size:
                shutil.copyfile(path, Path(self._order["files"], path.name))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else []


def _text(task: dict) -> str:
    """The task as the agent gets it: its words, and where to start."""
    start = task.get("start_url") or task.get("website")
    return task["text"] + (f"\n\nStart at {start}" if start else "")


def _without_pictures(item: dict) -> dict:
    """A native step without the path of its picture, which is gone after the attempt."""
    return {**item, "state": {**item["state"], "screenshot_path": None}}


async def main() -> None:
    """Say ready, take one order, carry it out, say how it ended, leave."""
    told = Told()
    told.say(
        type="ready",
        protocol=1,
        agent="browser-use",
        versions={"browser-use": get_browser_use_version()},
        import_cpu_s=round(IMPORT_CPU_S, 2),
        pid=os.getpid(),
    )
    listening = asyncio.create_task(told.listen())
    order = await told.order()
    begun = time.monotonic()
    try:
        end = await Attempt(told, order).run()
    except Exception as error:  # noqa: BLE001  the harness is told of it
        logging.exception("the attempt could not be made")
        end = {"status": "agent_error", "reason": f"{type(error).__name__}: {error}"}
    spent = {"wall_s": round(time.monotonic() - begun, 2), "cpu_s": round(time.process_time(), 2)}
    told.say(type="end", **end, **spent)
    await told.order()
    listening.cancel()
    # The library leaves threads and sockets; they hold nothing that is still wanted.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    logging.basicConfig(level="ERROR", stream=sys.stderr)
    asyncio.run(main())
