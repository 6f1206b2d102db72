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

_U = np.uint64
_M1 = _U(0x9E3779B185EBCA87)
_M2 = _U(0xD6E8FEB86659FD93)
_EMPTY = np.uint32(0xFFFFFFFF)

_compiled = numba.njit(nogil=True, cache=True)


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
    space = True
    i = start
    while i < stop:
        c = data[i]
        i += 1
        if 97 <= c <= 122:
            pass
        elif 65 <= c <= 90:
            c += 32
        elif 48 <= c <= 57:
            if mask:
                if n > 0 and out[n - 1] == 48:
                    continue
                c = 48
        elif c < 128:
            c = 32
        elif c == 0xC2 and i < stop:
            i += 1
            c = 32
        elif c == 0xC3 and i < stop:
            out[n] = c
            n += 1
            c = data[i]
            i += 1
            if c <= 0x9E and c != 0x97:
                c += 32
        elif (c == 0xE2 and i + 1 < stop and (data[i] == 0x80 or data[i] == 0x81)) or (
            c == 0xE3 and i + 1 < stop and data[i] == 0x80
        ):
            i += 2
            c = 32
        if c == 32:
            if space:
                continue
            space = True
        else:
            space = False
        out[n] = c
        n += 1
    if n > 0 and out[n - 1] == 32:
        n -= 1
    return n


@_compiled
def _hash(buffer, start, stop):
    h = _U(0xCBF29CE484222325)
    for i in range(start, stop):
        h = (h ^ _U(buffer[i])) * _M1
    return _mix(h ^ _U(stop - start))


@_compiled
def keys(data, offsets, mask):
    """(key, plain, raw, entity, chars, canonical length), each one per text.

    key: of the canonical form; plain: of the form with its numbers; raw: of the bytes; entity:
    of the tokens that hold digits, 0 where numbers are masked. A text that has no canonical
    form, only marks, has its raw hash as its key.
    """
    n = offsets.shape[0] - 1
    out = np.empty((4, n), np.uint64)
    sizes = np.empty((2, n), np.int32)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    for t in range(n):
        start = offsets[t]
        stop = offsets[t + 1]
        chars = 0
        for i in range(start, stop):
            chars += (data[i] & 0xC0) != 0x80
        sizes[0, t] = chars
        out[2, t] = _hash(data, start, stop)
        stop = min(stop, start + LONGEST)
        length = _canonical(data, start, stop, buffer, False)
        out[1, t] = _hash(buffer, 0, length)
        out[3, t] = _U(0)
        if mask:
            length = _canonical(data, start, stop, buffer, True)
            out[0, t] = _hash(buffer, 0, length)
        else:
            out[0, t] = out[1, t]
            out[3, t] = _entities(buffer, length)
        sizes[1, t] = length
        if length == 0:
            out[0, t] = out[2, t]
            out[1, t] = out[2, t]
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
        for i in range(length):
            gram = ((gram << _U(8)) | _U(buffer[i])) & _U(0xFFFFFFFFFF)
            if i >= _GRAM - 1 or i == length - 1:
                h = _mix(gram * _M1)
                place = h >> _U(57)
                value = np.uint32(h & _U(0xFFFFFFFE))
                if value < least[place]:
                    least[place] = value
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
def link(order, bands, sketch, entity, old, need):
    """(leader, agreement) of each text within one band; a text that joined nothing leads itself.

    Args:
        order: indices by (band key, old ones first, content hash).
        bands: band key of each text.
        sketch: of each text.
        entity: two texts are joined only where these are equal.
        old: leaders of earlier drops: they join nothing.
        need: bins that must agree.
    """
    n = order.shape[0]
    leader = np.arange(n)
    agreement = np.zeros(n, np.int16)
    heads = np.empty(_RUN_LEADERS, np.int64)
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and bands[order[end]] == bands[order[begin]]:
            end += 1
        n_heads = 0
        for q in range(begin, end):
            i = order[q]
            best = 0
            if not old[i]:
                for z in range(n_heads):
                    if entity[heads[z]] != entity[i]:
                        continue
                    same = alike(sketch[heads[z]], sketch[i])
                    if same >= need and same > best:
                        best = same
                        leader[i] = heads[z]
                agreement[i] = best
            if best == 0 and n_heads < _RUN_LEADERS:
                heads[n_heads] = i
                n_heads += 1
        begin = end
    return leader, agreement


@_compiled
def _words(data, start, stop, buffer, out):
    """Hashes of the words of a text, numbers masked; a CJK or kana character is a word."""
    length = _canonical(data, start, min(stop, start + LONGEST), buffer, True)
    n = 0
    i = 0
    while i < length:
        c = buffer[i]
        if c == 32:
            i += 1
            continue
        j = i + 1
        if 0xE3 <= c <= 0xE9:
            while j < length and (buffer[j] & 0xC0) == 0x80:
                j += 1
        else:
            while j < length and buffer[j] != 32 and not 0xE3 <= buffer[j] <= 0xE9:
                j += 1
        out[n] = _hash(buffer, i, j)
        n += 1
        i = j
    return n


@_compiled
def word_grams(data, offsets, sizes):
    """(text, gram) for every gram of `sizes[text]` words, in order."""
    n = offsets.shape[0] - 1
    room = 0
    for t in range(n):
        room += offsets[t + 1] - offsets[t] + 1
    texts = np.empty(room, np.int32)
    grams = np.empty(room, np.uint64)
    counts = np.zeros(n, np.int32)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    m = 0
    for t in range(n):
        k = _words(data, offsets[t], offsets[t + 1], buffer, words)
        counts[t] = k
        size = sizes[t]
        if size == 0:
            continue
        for q in range(size - 1, k):
            texts[m] = t
            grams[m] = _gram(words, q - size + 1, size)
            m += 1
    return texts[:m], grams[:m], counts


@_compiled
def _gram(words, start, size):
    h = _U(size)
    for z in range(start, start + size):
        h = (h ^ words[z]) * _M1
        h ^= h >> _U(29)
    return h


@_compiled
def overlaps(data, offsets, sizes, table, owner, total, frequent, seen, threshold):
    """(share, text of the benchmarks) of each text: the largest share of a benchmark text's
    grams that it holds; -1 where it holds none.

    Args:
        data, offsets: the texts.
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
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    hits = np.empty(4 * LONGEST, np.int64)
    found = np.zeros(total.shape[0], np.int32)
    taken = np.full(table.shape[0], -1, np.int32)
    ends = table.shape[0] - 1
    for t in range(n):
        k = _words(data, offsets[t], offsets[t + 1], buffer, words)
        n_hits = 0
        for s in range(sizes.shape[0]):
            for q in range(sizes[s] - 1, k):
                h = _gram(words, q - sizes[s] + 1, sizes[s])
                place = np.int64(h & _U(ends))
                while table[place] != 0 and table[place] != h:
                    place = (place + 1) & ends
                if table[place] == h and taken[place] != t and n_hits < hits.shape[0]:
                    taken[place] = t
                    hits[n_hits] = place
                    n_hits += 1
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
    return share, which


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
        ours, others: sorted hashes of canonical words; at most 256 of `ours`.
    """
    n = offsets.shape[0] - 1
    out = np.zeros((n, 4), np.int32)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    words = np.empty(2 * LONGEST + 16, np.uint64)
    last = np.full(256, -1, np.int64)
    for t in range(n):
        k = _words(data, offsets[t], offsets[t + 1], buffer, words)
        out[t, 0] = k
        for q in range(k):
            place = np.searchsorted(ours, words[q])
            if place < ours.shape[0] and ours[place] == words[q]:
                out[t, 2] += 1
                if last[place] != t:
                    last[place] = t
                    out[t, 1] += 1
            place = np.searchsorted(others, words[q])
            if place < others.shape[0] and others[place] == words[q]:
                out[t, 3] += 1
    return out


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
    for band in range(tables.shape[0]):
        keys_of_band = band_keys(sketch, band)
        for t in range(n):
            place = np.searchsorted(tables[band], keys_of_band[t])
            while place < tables.shape[1] and tables[band, place] == keys_of_band[t]:
                o = owners[band, place]
                same = alike(sketch[t], references[o])
                if same >= need and (same > agreement[t] or (same == agreement[t] and o < best[t])):
                    agreement[t] = same
                    best[t] = o
                place += 1
    return best, agreement
