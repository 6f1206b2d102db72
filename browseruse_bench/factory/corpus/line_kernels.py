"""Compiled loops over the lines of texts: which of them are boilerplate, and texts without those."""

# numba ships no types: what goes in and comes out is said in the docstrings.
# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN202, C901

import numba
import numpy as np

from browseruse_bench.factory.corpus.kernels import LONGEST, _canonical, _hash, _mix

SHORTEST = 24
"""Bytes of a line's canonical form below which it makes no texts alike."""
_LINES = 64
"""Lines of a text that are looked at."""
_GRAM = 5
_U = np.uint64
_MOST = _U(0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = _U(0x9E3779B185EBCA87)


@numba.njit(nogil=True, cache=True)
def _line_end(data, start, stop):
    i = start
    while i < stop and data[i] != 10:
        i += 1
    return i


@numba.njit(nogil=True, cache=True)
def _least_gram(buffer, length):
    """The least hash of a gram of a canonical form: equal in like texts, different in others."""
    least = _MOST
    gram = _U(0)
    for i in range(length):
        gram = ((gram << _U(8)) | _U(buffer[i])) & _U(0xFFFFFFFFFF)
        if i >= _GRAM - 1 or i == length - 1:
            least = min(least, _mix(gram * _MULTIPLIER))
    return least


@numba.njit(nogil=True, cache=True)
def lines(data, offsets):
    """(line, rest) for each line of texts with several: its hash, and one that texts which are
    alike but for that line mostly share.
    """
    n = offsets.shape[0] - 1
    room = 0
    for i in range(offsets[0], offsets[n]):
        room += data[i] == 10
    out = np.empty((room + n, 2), np.uint64)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    hashes = np.empty(_LINES, np.uint64)
    least = np.empty(_LINES, np.uint64)
    sizes = np.empty(_LINES, np.int64)
    m = 0
    for t in range(n):
        stop = min(offsets[t + 1], offsets[t] + LONGEST)
        start = offsets[t]
        k = 0
        while start < stop and k < _LINES:
            end = _line_end(data, start, stop)
            length = _canonical(data, start, end, buffer, True)
            if length > 0:
                hashes[k] = _hash(buffer, 0, length)
                least[k] = _least_gram(buffer, length)
                sizes[k] = length
                k += 1
            start = end + 1
        if k < 2:
            continue
        for one in range(k):
            if sizes[one] < SHORTEST:
                continue
            rest = _MOST
            for other in range(k):
                if other != one:
                    rest = min(rest, least[other])
            out[m, 0] = hashes[one]
            out[m, 1] = rest
            m += 1
    return out[:m]


@numba.njit(nogil=True, cache=True)
def without(data, offsets, boilerplate):
    """(data, offsets, changed): the texts without the lines whose hashes are in the sorted
    `boilerplate`; a text of which too little would be left stays as it is.
    """
    n = offsets.shape[0] - 1
    out = np.empty(max(1, offsets[n] - offsets[0]), np.uint8)
    bounds = np.zeros(n + 1, np.int64)
    changed = np.zeros(n, np.bool_)
    buffer = np.empty(2 * LONGEST + 16, np.uint8)
    m = 0
    for t in range(n):
        first = m
        start = offsets[t]
        stop = offsets[t + 1]
        left = 0
        seen = 0
        while start < stop and seen < _LINES and stop - offsets[t] <= LONGEST:
            end = _line_end(data, start, stop)
            length = _canonical(data, start, end, buffer, True)
            seen += length > 0
            cut = False
            if length >= SHORTEST:
                h = _hash(buffer, 0, length)
                place = np.searchsorted(boilerplate, h)
                cut = place < boilerplate.shape[0] and boilerplate[place] == h
            if cut:
                changed[t] = True
            else:
                left += length
                for i in range(start, min(end + 1, stop)):
                    out[m] = data[i]
                    m += 1
            start = end + 1
        if not changed[t] or left < SHORTEST:
            changed[t] = False
            m = first
            start = offsets[t]
        for i in range(start, stop):
            out[m] = data[i]
            m += 1
        bounds[t + 1] = m
    return out, bounds, changed
