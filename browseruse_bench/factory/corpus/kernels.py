"""Compiled loops over UTF-8 texts that lie in one buffer: keys, sketches, grams, languages.

Each releases the interpreter's lock, so that jobs in threads use all cores. A text is
`data[offsets[i]:offsets[i + 1]]`. Texts are compared in canonical form: ASCII and Latin-1
letters in lower case, whatever is neither letter nor digit one space, a run of digits one `0`
where numbers are masked.
"""

# numba ships no types: what goes in and comes out is said in the docstrings. Loops that are
# compiled as they stand are longer than others, for a call has its price there.
# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN202, C901

import numba
import numpy as np

SKETCH = 128
"""Bins of a sketch, one byte each."""
ROWS = 4
"""Bins of a band."""
BANDS = SKETCH // ROWS
LONGEST = 80_000
"""Bytes of a text that are looked at: 20,000 characters of four bytes."""
_GRAM = 5
_RUN_LEADERS = 64
_WORD_SLOTS = 4096
_REFERENCE_BITS = 1 << 16

_U = np.uint64
_M1 = _U(0x9E3779B185EBCA87)
_M2 = _U(0xD6E8FEB86659FD93)
_SEED = _U(0xCBF29CE484222325)
_EMPTY = np.uint32(0xFFFFFFFF)

_compiled = numba.njit(nogil=True, cache=True)


def _folded():
    """What each byte becomes in canonical form; 0: it is no ASCII and looked at by itself."""
    table = np.full(256, 32, np.uint8)
    table[128:] = 0
    for span in (range(48, 58), range(97, 123)):
        table[list(span)] = list(span)
    table[65:91] = np.arange(97, 123)
    return table


_FOLD = _folded()


@numba.njit(nogil=True, cache=True, inline="always")
def _mix(x):
    x ^= x >> _U(32)
    x *= _M2
    x ^= x >> _U(29)
    x *= _M2
    x ^= x >> _U(32)
    return x


@_compiled
def _canonical(data, start, stop, out, mask):
    """Bytes of the canonical form that were put into `out`."""
    n = 0
    gap = False
    i = start
    while i < stop:
        c = data[i]
        i += 1
        f = _FOLD[c]
        if f == 32:
            gap = True
            continue
        if f == 0:
            if c == 0xC2 and i < stop:
                i += 1
                gap = True
                continue
            if (c == 0xE2 and i + 1 < stop and (data[i] == 0x80 or data[i] == 0x81)) or (
                c == 0xE3 and i + 1 < stop and data[i] == 0x80
            ):
                i += 2
                gap = True
                continue
            f = c
        if gap:
            gap = False
            if n > 0:
                out[n] = 32
                n += 1
        if mask and f <= 57:
            if n > 0 and out[n - 1] == 48:
                continue
            f = 48
        out[n] = f
        n += 1
        if c == 0xC3 and i < stop:
            f = data[i]
            i += 1
            if f <= 0x9E and f != 0x97:
                f += 32
            out[n] = f
            n += 1
    return n


@_compiled
def _hash(buffer, start, stop):
    h = _SEED
    for i in range(start, stop):
        h = (h ^ _U(buffer[i])) * _M1
    return _mix(h ^ _U(stop - start))


@_compiled
def _word(data, i):
    """Eight bytes as a number, the first one lowest."""
    return (
        _U(data[i])
        | (_U(data[i + 1]) << _U(8))
        | (_U(data[i + 2]) << _U(16))
        | (_U(data[i + 3]) << _U(24))
        | (_U(data[i + 4]) << _U(32))
        | (_U(data[i + 5]) << _U(40))
        | (_U(data[i + 6]) << _U(48))
        | (_U(data[i + 7]) << _U(56))
    )


@_compiled
def raws(data, offsets):
    """A hash of the bytes of each text."""
    n = offsets.shape[0] - 1
    out = np.empty(n, np.uint64)
    for t in range(n):
        i = offsets[t]
        stop = offsets[t + 1]
        h = _SEED ^ _U(stop - i)
        while i + 8 <= stop:
            h = (h ^ (_word(data, i) * _M2)) * _M1
            h ^= h >> _U(32)
            i += 8
        last = _U(0)
        while i < stop:
            last = (last << _U(8)) | _U(data[i])
            i += 1
        h = (h ^ (last * _M2)) * _M1
        out[t] = _mix(h ^ (h >> _U(32)))
    return out


@_compiled
def _masked_keys(data, start, stop):
    """(key, plain, canonical length) of a text whose numbers are masked, in one pass."""
    key = _SEED
    plain = key
    n = 0
    length = 0
    gap = False
    digit = False
    i = start
    while i < stop:
        c = data[i]
        i += 1
        f = _FOLD[c]
        if f == 32:
            gap = True
            continue
        if f == 0:
            if c == 0xC2 and i < stop:
                i += 1
                gap = True
                continue
            if (c == 0xE2 and i + 1 < stop and (data[i] == 0x80 or data[i] == 0x81)) or (
                c == 0xE3 and i + 1 < stop and data[i] == 0x80
            ):
                i += 2
                gap = True
                continue
            f = c
        if gap:
            gap = False
            if n > 0:
                plain = (plain ^ _U(32)) * _M1
                key = (key ^ _U(32)) * _M1
                n += 1
                length += 1
                digit = False
        plain = (plain ^ _U(f)) * _M1
        n += 1
        if f <= 57:
            if not digit:
                key = (key ^ _U(48)) * _M1
                length += 1
            digit = True
            continue
        digit = False
        key = (key ^ _U(f)) * _M1
        length += 1
        if c == 0xC3 and i < stop:
            f = data[i]
            i += 1
            if f <= 0x9E and f != 0x97:
                f += 32
            plain = (plain ^ _U(f)) * _M1
            key = (key ^ _U(f)) * _M1
            n += 1
            length += 1
    return _mix(key ^ _U(length)), _mix(plain ^ _U(n)), length


@_compiled
def keys(data, offsets, mask):
    """(key, plain, entity, chars, canonical length), each one per text.

    key: of the canonical form; plain: of the form with its numbers; entity: of the tokens that
    hold digits, 0 where numbers are masked. A text that has no canonical form, only marks, has
    the hash of its bytes as its key.
    """
    n = offsets.shape[0] - 1
    out = np.empty((3, n), np.uint64)
    sizes = np.empty((2, n), np.int32)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    for t in range(n):
        start = offsets[t]
        stop = offsets[t + 1]
        chars = 0
        for i in range(start, stop):
            chars += (data[i] & 0xC0) != 0x80
        sizes[0, t] = chars
        last = stop
        stop = min(stop, start + LONGEST)
        if mask:
            out[0, t], out[1, t], length = _masked_keys(data, start, stop)
            out[2, t] = _U(0)
        else:
            length = _canonical(data, start, stop, buffer, False)
            out[1, t] = _hash(buffer, 0, length)
            out[0, t] = out[1, t]
            out[2, t] = _entities(buffer, length)
        sizes[1, t] = length
        if length == 0:
            out[0, t] = _hash(data, start, last)
            out[1, t] = out[0, t]
    return out, sizes


@_compiled
def _entities(buffer, length):
    """Sum over the hashes of the words that hold a digit: their order does not matter."""
    total = _U(0)
    i = 0
    while i < length:
        j = i
        digit = False
        while j < length and buffer[j] != 32:
            digit |= 48 <= buffer[j] <= 57
            j += 1
        if digit:
            total += _hash(buffer, i, j)
        i = j + 1
    return total


@_compiled
def sketches(data, offsets, mask):
    """One-permutation MinHash of the 5-grams of each canonical form, one byte a bin.

    An empty bin takes the value of another one that the text's bins alone choose.
    """
    n = offsets.shape[0] - 1
    out = np.empty((n, SKETCH), np.uint8)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    least = np.empty(SKETCH, np.uint32)
    for t in range(n):
        start = offsets[t]
        stop = min(offsets[t + 1], start + LONGEST)
        length = _canonical(data, start, stop, buffer, mask)
        least[:] = _EMPTY
        gram = _U(0)
        first = max(0, min(_GRAM, length) - 1)
        for i in range(first):
            gram = (gram << _U(8)) | _U(buffer[i])
        for i in range(first, length):
            gram = ((gram << _U(8)) | _U(buffer[i])) & _U(0xFFFFFFFFFF)
            h = _mix(gram * _M1)
            place = h >> _U(57)
            # Without a branch: which gram is the least nobody can predict.
            least[place] = min(least[place], np.uint32(h & _U(0xFFFFFFFE)))
        for place in range(SKETCH):
            value = least[place]
            step = _U(place + 1)
            while value == _EMPTY and length > 0:
                step = _mix(step * _M1 + _U(place))
                value = least[step & _U(SKETCH - 1)]
            out[t, place] = np.uint8(_mix(_U(value)) & _U(0xFF))
    return out


@_compiled
def band_keys(sketch, band):
    """The four bytes of a band of each sketch, mixed with the band's number."""
    n = sketch.shape[0]
    out = np.empty(n, np.uint64)
    for t in range(n):
        x = _U(band + 1)
        for i in range(band * ROWS, band * ROWS + ROWS):
            x = (x << _U(8)) | _U(sketch[t, i])
        out[t] = _mix(x * _M1)
    return out


@_compiled
def alike(one, other):
    """Bins in which two sketches agree."""
    same = 0
    for i in range(SKETCH):
        same += one[i] == other[i]
    return same


@_compiled
def agreements(sketch, other):
    """`alike`, row by row."""
    out = np.empty(sketch.shape[0], np.int16)
    for t in range(sketch.shape[0]):
        out[t] = alike(sketch[t], other[t])
    return out


@_compiled
def link(bands, sketch, entity, old, least, need, settled):
    """(leader, agreement) of each text within one band; a text that joined nothing leads itself.

    Args:
        bands: band key of each text; texts by (old ones first, content hash).
        sketch: of each text.
        entity: two texts are joined only where these are equal.
        old: those that lead already: they join nothing.
        least: of each text, bins that must be outdone.
        need: bins that must agree.
        settled: nobody becomes a leader.
    """
    n = bands.shape[0]
    leader = np.arange(n)
    agreement = np.zeros(n, np.int16)
    size = 16
    while size < 2 * n:
        size *= 2
    # Those that lead among the texts of one band key, in their order: a list from each slot.
    first = np.full(size, -1, np.int32)
    last = np.empty(size, np.int32)
    count = np.zeros(size, np.int32)
    following = np.full(n, -1, np.int32)
    for i in range(n):
        slot = np.int64(bands[i] & _U(size - 1))
        while first[slot] >= 0 and bands[first[slot]] != bands[i]:
            slot = (slot + 1) & (size - 1)
        best = np.int64(least[i])
        if not old[i]:
            head = first[slot]
            while head >= 0:
                if entity[head] == entity[i]:
                    same = np.int64(alike(sketch[head], sketch[i]))
                    if same >= need and same > best:
                        best = same
                        leader[i] = head
                head = following[head]
            agreement[i] = best
        leads = old[i] or (leader[i] == i and not settled)
        if leads and count[slot] < _RUN_LEADERS:
            if count[slot]:
                following[last[slot]] = i
            else:
                first[slot] = i
            last[slot] = i
            count[slot] += 1
    return leader, agreement


@_compiled
def _words(data, start, stop, out):
    """Hashes of the words of a text, numbers masked; a CJK or kana character is a word."""
    stop = min(stop, start + LONGEST)
    n = 0
    h, size = _SEED, 0
    gap = False
    digit = False
    i = start
    while i < stop:
        c = data[i]
        i += 1
        f = _FOLD[c]
        if f == 32:
            gap = True
            continue
        wide = False
        if f == 0:
            if c == 0xC2 and i < stop:
                i += 1
                gap = True
                continue
            if (c == 0xE2 and i + 1 < stop and (data[i] == 0x80 or data[i] == 0x81)) or (
                c == 0xE3 and i + 1 < stop and data[i] == 0x80
            ):
                i += 2
                gap = True
                continue
            f = c
            wide = 0xE3 <= c <= 0xE9
        if gap or wide:
            if size:
                out[n] = _mix(h ^ _U(size))
                n += 1
                h, size = _SEED, 0
            gap = digit = False
        if f <= 57:
            if digit:
                continue
            digit = True
            f = 48
        else:
            digit = False
        h = (h ^ _U(f)) * _M1
        size += 1
        if wide:
            while i < stop and (data[i] & 0xC0) == 0x80:
                h = (h ^ _U(data[i])) * _M1
                size += 1
                i += 1
            # Whatever comes next is another word.
            gap = True
        elif c == 0xC3 and i < stop:
            f = data[i]
            i += 1
            if f <= 0x9E and f != 0x97:
                f += 32
            h = (h ^ _U(f)) * _M1
            size += 1
    if size:
        out[n] = _mix(h ^ _U(size))
        n += 1
    return n


@_compiled
def word_grams(data, offsets, sizes):
    """(text, gram) for every gram of `sizes[text]` words, in order, and the words of each text."""
    n = offsets.shape[0] - 1
    room = 0
    for t in range(n):
        room += offsets[t + 1] - offsets[t] + 1
    texts = np.empty(room, np.int32)
    grams = np.empty(room, np.uint64)
    counts = np.zeros(n, np.int32)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    m = 0
    for t in range(n):
        k = _words(data, offsets[t], offsets[t + 1], words)
        counts[t] = k
        size = sizes[t]
        if size == 0:
            continue
        leaving = _leaving(size)
        gram = _U(0)
        for q in range(k):
            gram = gram * _M1 + words[q]
            if q >= size:
                gram -= words[q - size] * leaving
            if q >= size - 1:
                texts[m] = t
                grams[m] = gram
                m += 1
    return texts[:m], grams[:m], counts


@_compiled
def _leaving(size):
    """By what a word is multiplied when it leaves a gram of `size` words."""
    power = _U(1)
    for _ in range(size):
        power *= _M1
    return power


@_compiled
def overlaps(data, offsets, chosen, sizes, table, owner, total, frequent, seen, threshold):
    """(share, text of the benchmarks, met) of each text: the largest share of a benchmark text's
    grams that it holds; -1 where it holds none; whether it holds any gram of the table.

    Args:
        data, offsets: the texts.
        chosen: which of them are looked at.
        sizes: the sizes of grams that are in the table.
        table: grams by open addressing, 0 where empty; its length is a power of two.
        owner: text of the benchmarks whose gram it is.
        total: grams of each benchmark text that count.
        frequent: grams that do not count.
        seen: where not empty, texts below `threshold` add to it each gram that they hold.
        threshold: see `seen`.
    """
    n = offsets.shape[0] - 1
    share = np.zeros(n, np.float32)
    which = np.full(n, -1, np.int32)
    met = np.zeros(n, np.bool_)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    hits = np.empty(4 * LONGEST, np.int64)
    found = np.zeros(total.shape[0], np.int32)
    taken = np.full(table.shape[0], -1, np.int32)
    ends = table.shape[0] - 1
    # Most grams are in no benchmark: a small filter that stays in the cache says so.
    filter_ends = _U(8 * table.shape[0] - 1)
    perhaps = np.zeros(table.shape[0], np.uint8)
    for place in range(table.shape[0]):
        if table[place] != 0:
            bit = table[place] & filter_ends
            perhaps[bit >> _U(3)] |= np.uint8(1) << np.uint8(bit & _U(7))
    leaving = np.empty(sizes.shape[0], np.uint64)
    for s in range(sizes.shape[0]):
        leaving[s] = _leaving(sizes[s])
    for t in range(n):
        if not chosen[t]:
            continue
        k = _words(data, offsets[t], offsets[t + 1], words)
        n_hits = 0
        for s in range(sizes.shape[0]):
            size = sizes[s]
            out = leaving[s]
            h = _U(0)
            for q in range(k):
                h = h * _M1 + words[q]
                if q >= size:
                    h -= words[q - size] * out
                elif q < size - 1:
                    continue
                bit = h & filter_ends
                if (perhaps[bit >> _U(3)] >> np.uint8(bit & _U(7))) & 1:
                    place = np.int64(h & _U(ends))
                    while table[place] != 0 and table[place] != h:
                        place = (place + 1) & ends
                    if table[place] == h and taken[place] != t and n_hits < hits.shape[0]:
                        taken[place] = t
                        hits[n_hits] = place
                        n_hits += 1
        met[t] = n_hits > 0
        for z in range(n_hits):
            o = owner[hits[z]]
            if frequent[hits[z]]:
                continue
            found[o] += 1
            part = np.float32(found[o] / total[o])
            if part > share[t] or (part == share[t] and o < which[t]):
                share[t] = part
                which[t] = o
        for z in range(n_hits):
            found[owner[hits[z]]] = 0
            if seen.shape[0] and share[t] < threshold:
                seen[hits[z]] += 1
    return share, which, met


@_compiled
def languages(data, offsets, moves, rows, output, weights, prior):
    """(class, probability) of each text under a naive Bayes model over a byte automaton.

    Args:
        data, offsets: the texts.
        moves, rows, output: the automaton: next state by (row of the state, byte), row of each
            state, feature that a state gives or -1.
        weights: float32, features x classes.
        prior: float32, of each class.
    """
    n = offsets.shape[0] - 1
    n_classes = prior.shape[0]
    best = np.zeros(n, np.int32)
    probability = np.zeros(n, np.float32)
    counts = np.zeros(weights.shape[0], np.int32)
    visited = np.empty(weights.shape[0], np.int32)
    scores = np.empty(n_classes, np.float32)
    for t in range(n):
        state = 0
        n_visited = 0
        for i in range(offsets[t], offsets[t + 1]):
            state = np.int64(moves[(np.int64(rows[state]) << 8) + data[i]])
            f = output[state]
            if f >= 0:
                if counts[f] == 0:
                    visited[n_visited] = f
                    n_visited += 1
                counts[f] += 1
        scores[:] = prior
        for z in range(n_visited):
            f = visited[z]
            x = np.float32(np.log1p(np.float32(counts[f])))
            counts[f] = 0
            for c in range(n_classes):
                scores[c] += x * weights[f, c]
        if n_visited == 0:
            continue
        scale = np.float32(1 / np.sqrt(max(1, offsets[t + 1] - offsets[t])))
        top = np.argmax(scores)
        rest = np.float32(0)
        for c in range(n_classes):
            rest += np.exp((scores[c] - scores[top]) * scale)
        best[t] = top
        probability[t] = np.float32(1) / rest
    return best, probability


@_compiled
def word_counts(data, offsets, ours, others):
    """(words, distinct of `ours`, all of `ours`, all of `others`) of each text.

    Args:
        data, offsets: the texts.
        ours, others: sorted hashes of canonical words; at most 1,024 of both.
    """
    n = offsets.shape[0] - 1
    out = np.zeros((n, 4), np.int32)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    slots = np.zeros(_WORD_SLOTS, np.uint64)
    whose = np.zeros(_WORD_SLOTS, np.uint8)
    last = np.full(_WORD_SLOTS, -1, np.int64)
    for kind, known in ((1, ours), (2, others)):
        for z in range(known.shape[0]):
            place = _slot(slots, known[z])
            slots[place] = known[z]
            whose[place] |= kind
    for t in range(n):
        k = _words(data, offsets[t], offsets[t + 1], words)
        out[t, 0] = k
        for q in range(k):
            place = _slot(slots, words[q])
            if slots[place] == 0:
                continue
            if whose[place] & 1:
                out[t, 2] += 1
                if last[place] != t:
                    last[place] = t
                    out[t, 1] += 1
            if whose[place] & 2:
                out[t, 3] += 1
    return out


@numba.njit(nogil=True, cache=True, inline="always")
def _slot(slots, word):
    """Where a word stands in an open table, or would stand."""
    place = np.int64(word & _U(_WORD_SLOTS - 1))
    while slots[place] != 0 and slots[place] != word:
        place = (place + 1) & (_WORD_SLOTS - 1)
    return place


@_compiled
def nearest(sketch, tables, owners, references, need):
    """(reference, agreement) of the most alike reference sketch; (-1, 0) where none is alike.

    Args:
        sketch: of each text.
        tables: for each band the sorted band keys of the references.
        owners: for each band the references in that order.
        references: their sketches.
        need: bins that must agree.
    """
    n = sketch.shape[0]
    best = np.full(n, -1, np.int32)
    agreement = np.zeros(n, np.int16)
    perhaps = np.zeros(_REFERENCE_BITS, np.bool_)
    for band in range(tables.shape[0]):
        perhaps[:] = False
        for z in range(tables.shape[1]):
            perhaps[tables[band, z] & _U(_REFERENCE_BITS - 1)] = True
        keys_of_band = band_keys(sketch, band)
        for t in range(n):
            if not perhaps[keys_of_band[t] & _U(_REFERENCE_BITS - 1)]:
                continue
            place = np.searchsorted(tables[band], keys_of_band[t])
            while place < tables.shape[1] and tables[band, place] == keys_of_band[t]:
                o = owners[band, place]
                same = alike(sketch[t], references[o])
                if same >= need and (same > agreement[t] or (same == agreement[t] and o < best[t])):
                    agreement[t] = same
                    best[t] = o
                place += 1
    return best, agreement
