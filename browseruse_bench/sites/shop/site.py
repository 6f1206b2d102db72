"""The shop as a site: routes, request handling and the server in the background."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from browseruse_bench.errors import SiteError
from browseruse_bench.sites.base import Site
from browseruse_bench.sites.shop import account, basket, browse, checkout
from browseruse_bench.sites.shop.store import Store
from browseruse_bench.sites.shop.visit import SESSION, Halt, SignIn, Visit, local_path

HOST = "shop.test"
LONGEST_FORM = 64 * 1024

Handler = Callable[[Visit], Response]

PAGES: tuple[tuple[str, Handler], ...] = (
    ("/", browse.front),
    ("/search", browse.search),
    ("/category/{slug}", browse.category),
    ("/product/{slug}", browse.product),
    ("/product/{slug}/reviews", browse.reviews),
    ("/help", browse.help_page),
    ("/cart", basket.show_cart),
    ("/wishlist", basket.show_wishlist),
    ("/checkout/address", checkout.show_address),
    ("/checkout/delivery", checkout.show_delivery),
    ("/checkout/review", checkout.show_review),
    ("/checkout/thanks/{number}", checkout.thanks),
    ("/login", account.show_login),
    ("/account", account.account),
    ("/account/addresses", account.addresses),
    ("/account/addresses/new", account.new_address),
    ("/account/addresses/{address_id:int}", account.edit_address),
    ("/orders", account.orders),
    ("/orders/{number}", account.order),
    ("/orders/{number}/confirmation", account.confirmation),
    ("/orders/{number}/invoice.csv", account.invoice),
    ("/orders/{number}/return", account.return_form),
)
FORMS: tuple[tuple[str, Handler], ...] = (
    ("/cart/add", basket.add_to_cart),
    ("/cart/update", basket.update_cart),
    ("/cart/remove", basket.remove_from_cart),
    ("/cart/coupon", basket.apply_coupon),
    ("/cart/coupon/remove", basket.remove_coupon),
    ("/wishlist/add", basket.wish),
    ("/wishlist/remove", basket.unwish),
    ("/wishlist/to-cart", basket.wish_to_cart),
    ("/newsletter", basket.subscribe),
    ("/checkout/address", checkout.choose_address),
    ("/checkout/delivery", checkout.choose_delivery),
    ("/checkout/place", checkout.place_order),
    ("/login", account.login),
    ("/logout", account.logout),
    ("/account/addresses/new", account.add_address),
    ("/account/addresses/{address_id:int}", account.save_address),
    ("/account/addresses/{address_id:int}/delete", account.delete_address),
    ("/account/addresses/{address_id:int}/default", account.default_address),
    ("/orders/{number}/cancel", account.cancel),
    ("/orders/{number}/return", account.request_return),
)
_ASSETS = Path(__file__).parent / "assets"
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


def application(store: Store) -> Starlette:
    """The shop over this database."""
    routes = [Route(path, _endpoint(store, handler), methods=["GET"]) for path, handler in PAGES]
    routes += [Route(path, _endpoint(store, handler), methods=["POST"]) for path, handler in FORMS]
    routes += [
        Route("/assets/shop.css", _asset("shop.css", "text/css")),
        Route("/assets/shop.js", _asset("shop.js", "text/javascript")),
        Route("/favicon.ico", _no_icon),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _unknown(store)})


def _asset(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return FileResponse(_ASSETS / name, media_type=media_type)

    return serve


async def _no_icon(request: Request) -> Response:
    return Response(status_code=204)


def _unknown(store: Store) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status != 404:
            return PlainTextResponse(f"{status}\n", status)
        return _answer(store, _not_found, request, {})

    return answer


def _not_found(visit: Visit) -> Response:
    raise Halt(404, "There is no such page.")


def _endpoint(store: Store, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        if request.method == "POST":
            if not _own_origin(request):
                return PlainTextResponse("This form was sent from another site.\n", 403)
            form = await _form(request)
            if form is None:
                return PlainTextResponse("The form is too large or not a form.\n", 413)
        else:
            form = {}
        return _answer(store, handler, request, form)

    return serve


def _own_origin(request: Request) -> bool:
    """Whether a form comes from a page of the shop (browsers state it with each POST)."""
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form; of a field that was sent twice, the last one."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            return None
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        return None


def _answer(store: Store, handler: Handler, request: Request, form: dict[str, str]) -> Response:
    """Run a handler in a transaction that is undone if it halts."""
    with store.lock:
        visit = Visit.of(request, store, form)
        try:
            with store.db:
                response = handler(visit)
        except Halt as halt:
            visit = Visit.of(request, store, form)
            response = visit.page("problem.html", status=halt.status, message=halt.message)
        except SignIn:
            visit = Visit.of(request, store, form)
            response = visit.go("/login?" + urlencode({"next": _come_back(request)}))
    if visit.new_token is not None:
        _set_session(response, visit.new_token)
    for name, value in _HEADERS.items():
        response.headers[name] = value
    return response


def _come_back(request: Request) -> str:
    """Where to go after signing in: the page that was asked for, or the one with the form."""
    if request.method == "GET":
        return local_path(request.url.path)
    return local_path(urlsplit(request.headers.get("referer", "/")).path)


def _set_session(response: Response, token: str) -> None:
    if token:
        response.set_cookie(SESSION, token, httponly=True, samesite="lax")
    else:
        response.delete_cookie(SESSION, httponly=True, samesite="lax")


class ShopSite(Site):
    """A web shop with 120 products, four customers and their orders."""

    stateful: ClassVar[bool] = True

    def __init__(self) -> None:
        self._store: Store | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def start(self, directory: Path, seed: int) -> tuple[str, int]:
        """Serve from `directory`/shop.sqlite on a free port of 127.0.0.1.

        Raises:
            SiteError: the server does not come up within ten seconds.
        """
        self._store = Store(directory / "shop.sqlite", seed)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        port = int(self._socket.getsockname()[1])
        self._server = uvicorn.Server(
            uvicorn.Config(
                application(self._store),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="shop", daemon=True
        )
        self._thread.start()
        give_up = time.monotonic() + 10
        while not self._server.started:
            if time.monotonic() > give_up or not self._thread.is_alive():
                raise SiteError(f"{HOST}: the server did not come up on 127.0.0.1:{port}")
            time.sleep(0.005)
        return "127.0.0.1", port

    def reset(self) -> None:
        """Bring back the database as it was; the sessions of all visitors end."""
        self._started().reset()

    def snapshot(self, path: Path) -> bool:
        """Write a copy of the database."""
        self._started().snapshot(path)
        return True

    def _started(self) -> Store:
        if self._store is None:
            raise SiteError(f"{HOST}: the site has not been started; call start() first")
        return self._store

    def stop(self) -> None:
        """Stop serving and close the database."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(5)
        if self._socket is not None:
            self._socket.close()
        if self._store is not None:
            self._store.close()
            self._store = None
