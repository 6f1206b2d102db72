"""Compiled `content_key([text])`: the unit of each text, without the interpreter's lock."""

# numba ships no types: what goes in and comes out is said in the docstrings.
# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN202, C901

import numba
import numpy as np

_U4 = np.uint32
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_compiled = numba.njit(nogil=True, cache=True)


def _primes(n):
    found = []
    number = 2
    while len(found) < n:
        if all(number % p for p in found):
            found.append(number)
        number += 1
    return found


def _root_bits(number, power):
    """The first 32 bits behind the point of a root of a whole number."""
    shifted = number << (32 * power)
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        if middle**power <= shifted:
            low = middle
        else:
            high = middle
    return low & 0xFFFFFFFF


_FIRST = np.array([_root_bits(p, 2) for p in _primes(8)], np.uint32)
_ROUNDS = np.array([_root_bits(p, 3) for p in _primes(64)], np.uint32)
"""FIPS 180-4: from the square and cube roots of the first primes."""


@numba.njit(nogil=True, cache=True, inline="always")
def _turned(x, n):
    return _U4(_U4(x >> _U4(n)) | _U4(x << _U4(32 - n)))


@_compiled
def _block(state, block, w):
    """`state` after one more block of 64 bytes; `w` is room for 64 words."""
    for i in range(16):
        k = 4 * i
        w[i] = _U4(
            (_U4(block[k]) << _U4(24))
            | (_U4(block[k + 1]) << _U4(16))
            | (_U4(block[k + 2]) << _U4(8))
            | _U4(block[k + 3])
        )
    for i in range(16, 64):
        x, y = w[i - 15], w[i - 2]
        s0 = _U4(_turned(x, 7) ^ _turned(x, 18) ^ _U4(x >> _U4(3)))
        s1 = _U4(_turned(y, 17) ^ _turned(y, 19) ^ _U4(y >> _U4(10)))
        w[i] = _U4(w[i - 16] + s0 + w[i - 7] + s1)
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    for i in range(64):
        s1 = _U4(_turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25))
        one = _U4(h + s1 + _U4(g ^ (e & (f ^ g))) + _ROUNDS[i] + w[i])
        s0 = _U4(_turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22))
        two = _U4(s0 + _U4((a & b) | (c & (a | b))))
        h, g, f, e = g, f, e, _U4(d + one)
        d, c, b, a = c, b, a, _U4(one + two)
    state[0] = _U4(state[0] + a)
    state[1] = _U4(state[1] + b)
    state[2] = _U4(state[2] + c)
    state[3] = _U4(state[3] + d)
    state[4] = _U4(state[4] + e)
    state[5] = _U4(state[5] + f)
    state[6] = _U4(state[6] + g)
    state[7] = _U4(state[7] + h)


@_compiled
def _escaped(c, out):
    """Bytes of `c` in a string of JSON that were put into `out`."""
    if c == 34 or c == 92:
        out[0], out[1] = 92, c
        return 2
    if c >= 32:
        out[0] = c
        return 1
    short = 0
    if c == 10:
        short = 110
    elif c == 13:
        short = 114
    elif c == 9:
        short = 116
    elif c == 8:
        short = 98
    elif c == 12:
        short = 102
    out[0] = 92
    if short:
        out[1] = short
        return 2
    out[1], out[2], out[3] = 117, 48, 48
    out[4], out[5] = _HEX[c >> 4], _HEX[c & 15]
    return 6


@_compiled
def units(data, offsets):
    """SHA-256 of the canonical JSON of `[text]` of each text: 8 words of 32 bits, first ones
    first.
    """
    n = offsets.shape[0] - 1
    out = np.empty((n, 8), np.uint32)
    block = np.zeros(64, np.uint8)
    w = np.empty(64, np.uint32)
    more = np.empty(6, np.uint8)
    state = np.empty(8, np.uint32)
    for t in range(n):
        state[:] = _FIRST
        block[0], block[1] = 91, 34
        total = np.int64(2)
        place = 2
        for i in range(offsets[t], offsets[t + 1] + 1):
            if i == offsets[t + 1]:
                more[0], more[1] = 34, 93
                size = 2
            else:
                size = _escaped(data[i], more)
            for k in range(size):
                block[place] = more[k]
                place += 1
                if place == 64:
                    _block(state, block, w)
                    place = 0
            total += size
        block[place] = 128
        block[place + 1 :] = 0
        if place > 55:
            _block(state, block, w)
            block[:] = 0
        bits = total * 8
        for k in range(8):
            block[63 - k] = np.uint8((bits >> (8 * k)) & 255)
        _block(state, block, w)
        out[t] = state
    return out
