"""Compiled loops give what the plain definition gives."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.factory.corpus import kernels, local
from browseruse_bench.factory.corpus.texts import of_strings

M64 = (1 << 64) - 1
SOME = st.text(
    alphabet=st.sampled_from("aZ09 .,-!?\n\u00e9\u00c9\u00d7\u00f7\u2014\u2028\u3001\u6771\u30ab\ud55c\u0430\u00bf\U0001f600"),
    max_size=40,
)  # fmt: skip


def mixed(x):
    for shift, factor in ((32, 0xD6E8FEB86659FD93), (29, 0xD6E8FEB86659FD93), (32, 1)):
        x = ((x ^ (x >> shift)) * factor) & M64
    return x


def hashed(form):
    h = 0xCBF29CE484222325
    for byte in form:
        h = ((h ^ byte) * 0x9E3779B185EBCA87) & M64
    return mixed(h ^ len(form))


def canonical(text, *, mask):
    """Lower case, marks as one space, a run of digits one 0; letter by letter."""
    out = ""
    for char in text:
        code = ord(char)
        if code < 128:
            char = char.lower() if char.isalnum() else " "
        elif code < 0xC0 or 0x2000 <= code < 0x2080 or 0x3000 <= code < 0x3040:
            char = " "
        elif code <= 0xDE and code != 0xD7:
            char = chr(code + 32)
        digit = char in "0123456789"
        if digit and mask:
            char = "0"
        if (char == " " and out[-1:] in ("", " ")) or (digit and mask and out[-1:] == "0"):
            continue
        out += char
    return out.strip(" ")


def words(text):
    """Words of the masked form; a CJK or kana character is one."""
    found = [""]
    for char in canonical(text, mask=True):
        lead = char.encode()[0]
        if char == " ":
            found.append("")
        elif 0xE3 <= lead <= 0xE9:
            found += [char, ""]
        else:
            found[-1] += char
    return [word for word in found if word]


@settings(max_examples=150)
@given(st.lists(SOME, min_size=1, max_size=5))
def test_keys_are_those_of_the_canonical_forms(texts):
    column = of_strings(texts)
    for mask in (True, False):
        (key, plain, _), (chars, length) = kernels.keys(*column, mask)
        for i, text in enumerate(texts):
            form = canonical(text, mask=mask).encode()
            own = hashed(text.encode())
            assert int(key[i]) == (hashed(form) if form else own)
            both = canonical(text, mask=False).encode()
            assert int(plain[i]) == (hashed(both) if both else own)
            assert (chars[i], length[i]) == (len(text), len(form))


@settings(max_examples=150)
@given(st.lists(SOME | st.text(st.sampled_from("a\0"), max_size=20), max_size=5))
def test_raw_hashes_are_equal_for_equal_bytes_alone(texts):
    shifted = kernels.raws(*of_strings(["x", *texts]))[1:].tolist()
    hashes = kernels.raws(*of_strings(texts)).tolist()
    assert hashes == shifted
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            assert (hashes[i] == hashes[j]) == (one == other)


def test_raw_hashes_spread_evenly():
    hashes = kernels.raws(*of_strings([f"task {i}" for i in range(40_000)]))
    assert len(np.unique(hashes)) == 40_000
    for bits in (hashes >> np.uint64(60), hashes & np.uint64(15)):
        counts = np.bincount(bits.astype(np.int64), minlength=16)
        assert 2200 < counts.min() <= counts.max() < 2800


@settings(max_examples=150)
@given(st.lists(SOME, min_size=1, max_size=5))
def test_words_are_counted_as_they_are_written(texts):
    known = [hashed(word.encode()) for word in ("a", "z0", "\u6771", "\u00e9")]
    ours, others = (np.sort(np.array(part, np.uint64)) for part in (known[:3], known[2:]))
    counted = kernels.word_counts(*of_strings(texts), ours, others)
    for text, row in zip(texts, counted.tolist(), strict=True):
        made = [hashed(word.encode()) for word in words(text)]
        mine = [h for h in made if h in known[:3]]
        assert row == [len(made), len(set(mine)), len(mine), sum(h in known[2:] for h in made)]


@settings(max_examples=100)
@given(st.lists(SOME, min_size=1, max_size=4), st.integers(1, 4))
def test_a_gram_is_known_by_its_words_wherever_it_stands(texts, size):
    column = of_strings([*texts, " ".join(texts)])
    sizes = np.full(len(texts) + 1, size, np.int32)
    owner, grams, counts = kernels.word_grams(*column, sizes)
    known = {}
    for i, text in enumerate([*texts, " ".join(texts)]):
        made = words(text)
        assert counts[i] == len(made)
        own = grams[owner == i].tolist()
        spelled = [tuple(made[q : q + size]) for q in range(len(made) - size + 1)]
        assert len(own) == len(spelled)
        for gram, spelling in zip(own, spelled, strict=True):
            assert known.setdefault(spelling, gram) == gram
    assert len(set(known.values())) == len(known)


def linked_plainly(bands, sketch, entity, old, least, need, *, settled):
    leader, agreement, heads = list(range(len(bands))), [0] * len(bands), {}
    for i, band in enumerate(bands):
        best = int(least[i])
        for head in () if old[i] else heads.get(band, ()):
            same = int((sketch[head] == sketch[i]).sum())
            if entity[head] == entity[i] and same >= need and same > best:
                best, leader[i] = same, head
        agreement[i] = best
        leads = old[i] if settled else leader[i] == i
        if leads and len(heads.setdefault(band, [])) < 64:
            heads[band].append(i)
    return leader, agreement


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 300), st.integers(1, 40), st.booleans())
def test_texts_of_one_band_join_the_most_alike_leader(seed, n, spread, settled):
    r = np.random.default_rng(seed)
    bands = r.integers(0, spread, n).astype(np.uint64)
    sketch = r.integers(0, 3, (n, kernels.SKETCH)).astype(np.uint8)
    entity, old = r.integers(0, 2, n).astype(np.uint64), r.integers(0, 2, n).astype(np.uint8)
    least = (r.integers(0, 50, n) * (1 - old) * settled).astype(np.uint8)
    leader, agreement = kernels.link(bands, sketch, entity, old, least, 43, settled)
    expected = linked_plainly(bands.tolist(), sketch, entity, old, least, 43, settled=settled)
    assert (leader.tolist(), agreement.tolist()) == expected


PIECES = st.sampled_from(
    ["file:", "FILE://", "f\u0131le:", "c:", "\\", "/", "~", "home", "/home/", "/tmp", "%TEMP%", "$HOME", "${home}",
     "localhost", "localho\u017ft", "\u212a", "\u0130", "nas.local", ".lan", "10.0.0.1", "127.1", "0x7f.0.0.1",
     "http://", "u:pw@", "[::1]", "[fe80::1%eth0]", ":8080", " ", "what is ", "?", "app://x", "\\\\srv\\share", "x"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_leaving_out_what_cannot_fit_changes_no_finding(text):
    every = "\x00".join(part for parts in (local._FILE_PARTS, local._BARE_PARTS) for need, _ in parts for part in need)  # fmt: skip
    found = local.find_local(text)
    possible = local._possible
    try:
        local._possible = lambda lower, parts: possible(every, parts)
        assert local.find_local(text) == found
    finally:
        local._possible = possible
