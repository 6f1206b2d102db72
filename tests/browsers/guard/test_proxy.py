"""The proxy lets sites and the public web through, whatever the way they are written."""

import asyncio

import pytest

from browseruse_bench.browsers.guard.proxy import GuardProxy, Reach, Refused, guard_proxy
from browseruse_bench.browsers.guard.watch import MAX_HITS, Watch
from browseruse_bench.records.trace import Guard
from tests.browsers.guard.small_web import PUBLIC, SECRET, WEB, small_web


@pytest.fixture
def web():
    with small_web() as servers:
        yield servers


def reach(site=None, *, public=True):
    hosts = {} if site is None else {"shop.test": ("127.0.0.1", site.port)}
    return Reach(hosts=hosts, public=public, web=WEB)


async def ask(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer.decode()


async def get(port, url):
    return await ask(port, f"GET {url} HTTP/1.1\r\nHost: other.test\r\nX-Kept: 1\r\n\r\n")


async def through_tunnel(port, target):
    connect = f"CONNECT {target} HTTP/1.1\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(connect.encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    if b" 200 " in answer:
        writer.write(b"GET /in HTTP/1.1\r\n\r\n")
        answer += await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer.decode()


async def test_a_site_is_reached_by_its_name_and_on_no_other_port(web):
    _, site, _ = web
    watch = Watch()
    async with guard_proxy(reach(site), watch, "browser") as proxy:
        assert "the site" in await get(proxy.port, "http://shop.test/a?b=1")
        assert site.asked == ["GET /a?b=1 HTTP/1.1"]
        assert "the site" in await through_tunnel(proxy.port, "shop.test:80")
        assert watch.n_hits == 0
        for other in (f"http://shop.test:{site.port}/", "http://shop.test:443/"):
            assert " 403 " in await get(proxy.port, other)
        assert " 403 " in await through_tunnel(proxy.port, "shop.test:443")
        assert watch.n_hits == 3


async def test_the_public_web_is_reached_by_name_and_by_address(web):
    public, _, _ = web
    async with guard_proxy(reach(), Watch(), "browser") as proxy:
        assert "the public web" in await get(proxy.port, f"http://public.test:{public.port}/")
        assert "the public web" in await get(proxy.port, f"http://{PUBLIC}:{public.port}/")
        tunnel = await through_tunnel(proxy.port, f"public.test:{public.port}")
        assert "the public web" in tunnel


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "127.9.9.9",
     "0.0.0.0", "0", "localhost", "localhost.", "LOCALHOST", "a.localhost", "[::1]", "[::]",
     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "10.9.9.9",
     "192.168.77.1", "169.254.169.254", "100.64.0.9", "[fd12::9]", "[fe80::1]", "loop.test",
     "private.test", "half.test", "metadata.test", "mapped.test"],
)  # fmt: skip
async def test_a_private_target_is_refused_in_every_notation_and_is_a_hit_BL072(web, host):  # noqa: N802
    secret = web[2]
    watch = Watch()
    async with guard_proxy(reach(), watch, "worker") as proxy:
        assert " 403 " in await get(proxy.port, f"http://{host}:{secret.port}/x?key=1")
        assert " 403 " in await through_tunnel(proxy.port, f"{host}:{secret.port}")
    assert secret.n_touched == 0
    guard = watch.fill(Guard(level="flags"))
    assert guard.n_hits == 2
    assert {hit.by for hit in guard.hits} == {"worker"}
    assert all("key=1" not in hit.address for hit in guard.hits)


async def test_a_public_address_of_this_very_machine_is_refused(web, monkeypatch):
    public = web[0]
    proxy = GuardProxy(reach(), Watch(), "browser")
    monkeypatch.setattr("browseruse_bench.browsers.guard.proxy.why_not_public", lambda *_args: None)
    with pytest.raises(Refused, match="of this machine"):
        await proxy.targets("127.0.0.1", public.port)
    assert await proxy.targets(PUBLIC, public.port)
    assert await proxy.targets("93.184.216.34", 443) == (("93.184.216.34", 443),)


async def test_the_address_that_was_checked_is_the_one_that_is_dialled(web):
    public, _, secret = web
    answers = iter([(PUBLIC,), ("127.0.0.1",)])

    async def changing(host, port):
        return next(answers)

    where = Reach(public=True, web=type(WEB)(also_public=WEB.also_public, resolve=changing))
    async with guard_proxy(where, Watch(), "browser") as proxy:
        assert "the public web" in await get(proxy.port, f"http://rebind.test:{public.port}/")
        assert " 403 " in await get(proxy.port, f"http://rebind.test:{secret.port}/")
    assert secret.n_touched == 0


async def test_without_the_public_web_only_sites_are_left(web):
    public, site, _ = web
    watch = Watch()
    async with guard_proxy(reach(site, public=False), watch, "browser") as proxy:
        assert "the site" in await get(proxy.port, "http://shop.test/")
        assert " 403 " in await get(proxy.port, f"http://public.test:{public.port}/")
        assert " 403 " in await get(proxy.port, f"http://{PUBLIC}:{public.port}/")
        assert " 403 " in await get(proxy.port, "http://a.shop.test/")
    assert public.n_touched == 0
    assert watch.n_hits == 3


@pytest.mark.parametrize(
    ("port", "ok"), [(22, False), (25, False), (80, True), (443, True), (1023, False), (1024, True)]
)
async def test_ports_of_the_web_are_80_443_and_those_from_1024(port, ok):
    proxy = GuardProxy(reach(), Watch(), "browser")
    if ok:
        assert await proxy.targets("public.test", port) == ((PUBLIC, port),)
    else:
        with pytest.raises(Refused, match=f"port {port}"):
            await proxy.targets("public.test", port)


async def test_a_name_that_does_not_exist_is_refused_and_is_no_hit():
    watch = Watch()
    async with guard_proxy(reach(), watch, "browser") as proxy:
        assert "name not found" in await get(proxy.port, "http://nowhere.test/")
    assert watch.n_hits == 0


@pytest.mark.parametrize(
    "head",
    ["GET / HTTP/1.1", "GET http:///x HTTP/1.1", "GET http://a@shop.test/ HTTP/1.1", "CONNECT x HTTP/1.1",
     "GET http://shop.test:99999/ HTTP/1.1", "GET http://shop.test\\@x/ HTTP/1.1", "nonsense",
     "GET https://shop.test/ HTTP/1.1", "GET ftp://shop.test/ HTTP/1.1"],
)  # fmt: skip
async def test_what_leaves_open_which_host_it_means_is_no_request(web, head):
    site = web[1]
    async with guard_proxy(reach(site), Watch(), "browser") as proxy:
        assert " 400 " in await ask(proxy.port, f"{head}\r\n\r\n")
    assert site.n_touched == 0


async def test_the_server_hears_its_own_name_and_the_clients_headers(web, monkeypatch):
    site = web[1]
    heard = []
    monkeypatch.setattr(site, "_reply", lambda head: heard.append(head.decode()) or b"done")
    async with guard_proxy(reach(site), Watch(), "browser") as proxy:
        assert await get(proxy.port, "http://shop.test/") == "done"
    assert "Host: shop.test\r\n" in heard[0]
    assert "X-Kept: 1\r\n" in heard[0]
    assert "other.test" not in heard[0]
    assert "Connection: close" in heard[0]


async def test_a_server_that_does_not_answer_is_said():
    async with guard_proxy(reach(), Watch(), "browser") as proxy:
        assert " 502 " in await get(proxy.port, f"http://{PUBLIC}:1025/")


async def test_what_is_open_is_cut_when_the_session_ends(web):
    async with guard_proxy(reach(), Watch(), "browser") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", proxy.port)


def test_hits_are_merged_bounded_and_without_secrets():
    watch = Watch()
    for n in range(MAX_HITS + 50):
        watch.hit("browser", f"http://user:word@10.0.0.1:80/{n}?token=abc#frag", "private")
    watch.hit("browser", "http://10.0.0.1:80/0", "private")
    guard = watch.fill(Guard(level="flags"))
    assert guard.n_hits == MAX_HITS + 51
    assert len(guard.hits) == MAX_HITS
    assert guard.hits[0].n == 2
    assert not any(word in str(guard) for word in ("word", "token", "frag", SECRET))
