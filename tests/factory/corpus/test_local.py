import ipaddress

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.corpus.local import PREFILTER, find_all, find_local

ADDRESSES = r"""
    start http://localhost:8000/cart
    see whether localhost answers
    the page at 127.0.0.1:5173 is blank
    load http://127.1:3000 for me
    fetch http://0x7f000001/status
    fetch http://2130706433/status
    look at http://017700000001/
    run the check on http://[::1]:9000/
    what is on http://[::ffff:10.0.0.5]/
    connect to http://[fe80::7%25en0]/
    read http://[fd00:12::9]/docs
    the panel is http://10.20.30.40/panel
    reboot the box at 192.168.178.1 please
    ssh 172.20.0.9:22
    http://172.31.0.1 shows an error
    http://169.254.169.254/latest/
    check http://100.100.4.5/
    serve it on http://0.0.0.0:4321
    http://wiki/start lists the pages
    http://build-server:8081/job/7
    print on https://scanner.local/
    https://tickets.corp.internal/31
    open https://storage.lan
    http://me:secret@localhost:5984
    http://shop.localhost:8080
    use host.docker.internal:5432
    HTTP://LOCALHOST:81
    http://127.0.0.1./
    http://staging.shop.test:3000/
    http://0x7f.1/ is up
    http://1/ is zero too
    update 10.0.0.5
    update 10.0.0.5 to 10.0.0.6 in the inventory
    ssh to node 192.168.1.20
    flash the firmware of 192.168.1.20
    apply the patch 172.16.0.4 needs
    ping 127。0。0。1
    open http://１２７．０．０．１/status
    reboot １０．０．０．５ please
    read nas.home.arpa
    http://printer.home.arpa/ is out of ink
    stop what runs on localhost.
    http://localhost./
"""
FILES = r"""
    show file:///D:/docs/plan.html
    read file:/etc/hosts
    attach C:\Users\ana\letter.pdf
    take E:\archive\list.xlsx
    C:/Users/ana/letter.pdf is mine
    put ~/Desktop/table.csv into it
    summarise /home/ana/thesis.pdf
    /Users/ana/Pictures/cat.png
    write it to /tmp/result.json
    keep it in /tmp please
    \\nas\media\film.mkv
    %USERPROFILE%\Music\a.mp3
    $HOME/list.txt
    sum up C:/q3.xlsx
    D:/reports/2025/q3.pdf
    read /srv/www/index.html
    what went wrong in /usr/local/etc/nginx.conf
    start /Applications/Numbers.app
"""
PUBLIC = r"""
    my C: drive is full, how do I clean it?
    list the posts of /r/gardening on reddit
    what changed in firmware version 10.0.0.1
    notes of the upgrade to v10.0.0.1
    the meeting is on 11.10.2025 at nine
    what is the price at 8.8.4.4
    https://1.0.0.1/help
    https://local.yahoo.com has listings
    local bakeries near Graz
    https://www.internal-audit.org
    the pricing page of https://localhost.run
    https://mylocalhost.com/
    summarise https://en.wikipedia.org/wiki/Localhost
    https://github.com/x/y/blob/main/home/z.md
    https://shop.example/home/index.html
    click the /home page of acme.com
    the path /users in the menu of acme.com
    100 km/h and and/or, 24/7
    https://172.15.9.9/
    https://172.32.0.1/
    https://11.0.0.1/
    what does ~/.bashrc do? look it up
    search for 'what is 192.168.1.1' on google
    ~20 results a page
    get the PDF of https://arxiv.example/tmp/a.pdf
    https://example.com/?next=http%3A%2F%2Flocalhost
    the local.ch phone book
    http://user@example.com/
    S:t Eriks hospital
    a ratio of 3:\4
    https://www.homedepot.com/
    house at 10/8 Mill St
    www.lan.com flights
    https://xn--bcher-kva.example
    Section 10.0.1.2 of the standard
    http://例え.テスト/
    https://example.com/usr/local/x
    https://example.com/srv/www/index.html
    https://example.com/?f=/usr/local/x and more
    https://example.com/a?file=C:/q3.xlsx
    www.example.com/x?p=/home/ana/a.txt
    the /applications/ page of acme.com
    update 10.0.0.5 to 10.0.1
    upgrade from 10.0.0.5 to 11 for free
    what does the firmware update 10.0.0.5 change
    install the security update 10.0.0.5
    firmware 10.0.0.1 release notes
    Chrome 127.0.0.0 user agents
    on 10.11.12 and 2025.10.11
    走了10。20。到家
    choose a:/ or b:/
    search for a/b testing or c:/d
"""


def cases(block):
    return [line.strip() for line in block.strip().splitlines()]


@pytest.mark.parametrize("text", cases(ADDRESSES))
def test_a_local_address_is_found_in_any_notation_BL072(text):  # noqa: N802
    found = find_local(text)
    assert found is not None
    assert found.kind == "local_address"
    assert found.matched.strip("/") in text


@pytest.mark.parametrize("text", cases(FILES))
def test_a_local_file_is_found_in_any_notation_BL072(text):  # noqa: N802
    found = find_local(text)
    assert found is not None
    assert found.kind == "local_file"
    assert found.matched in text


@pytest.mark.parametrize("text", cases(PUBLIC))
def test_what_only_looks_local_passes(text):
    assert find_local(text) is None


def test_there_are_as_many_cases_as_the_design_lists():
    assert len(cases(ADDRESSES) + cases(FILES)) >= 42
    assert len(cases(PUBLIC)) >= 36


def test_the_fast_filter_lets_every_case_through():
    texts = cases(ADDRESSES) + cases(FILES) + cases(PUBLIC)
    found = {texts[i] for i, _ in find_all(pl.Series(texts))}
    assert found == set(cases(ADDRESSES) + cases(FILES))


OCTETS = st.tuples(*[st.integers(0, 255)] * 4)


def spellings(octets):
    value = int.from_bytes(bytes(octets), "big")
    a, b, c, d = octets
    yield f"{a}.{b}.{c}.{d}"
    yield str(value)
    yield hex(value)
    yield f"0{value:o}"
    yield f"{a}.{b}.{(c << 8) + d}"
    yield f"{a}.{(b << 16) + (c << 8) + d}"
    yield f"0x{a:x}.0{b:o}.{c}.{d}"
    yield f"[::ffff:{a}.{b}.{c}.{d}]"


@given(OCTETS, st.sampled_from(["", ":8080", "/x?y=1", ":1/"]))
def test_an_address_in_a_url_is_judged_alike_in_every_notation(octets, tail):
    address = ipaddress.ip_address(bytes(octets))
    if address in ipaddress.ip_network("192.88.99.0/24") or address.is_multicast:
        return
    texts = [f"please open http://{host}{tail} now" for host in spellings(octets)]
    verdicts = {find_local(text) is not None for text in texts}
    assert len(verdicts) == 1
    if address.is_global:
        assert verdicts == {False}
    if address.is_private or address.is_loopback or address.is_link_local:
        assert verdicts == {True}
        assert len(find_all(pl.Series(texts))) == len(texts)


@given(st.text("/\\.:~%$abchomelst0127x@[]'\" \n-é", max_size=60))
def test_the_fast_filter_never_hides_what_is_local(text):
    if find_local(text) is not None:
        assert pl.Series([text]).str.contains(PREFILTER)[0]
