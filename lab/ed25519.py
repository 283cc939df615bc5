# SPDX-License-Identifier: Apache-2.0
"""Verifies Ed25519 signatures (RFC 8032, section 5.1.7). Nothing here is secret, so nothing hides its time."""

import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1)


def add(a, b):
    """Sum of two points (x, y) of the curve -x^2 + y^2 = 1 + d x^2 y^2."""
    product = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def times(n, point):
    total = NEUTRAL
    while n:
        if n & 1:
            total = add(total, point)
        point, n = add(point, point), n >> 1
    return total


def point_of(data):
    """Returns the point of 32 bytes: y, and in the highest bit the parity of x. Raises ValueError where there is no
    such point."""
    number = int.from_bytes(data, "little")
    y, odd = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if y >= P or (x * x - square) % P or (x == 0 and odd):
        raise ValueError("not a point of the curve")
    return (P - x if x & 1 != odd else x), y


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verifies(key, message, signature):
    """True if the signature of these bytes is good; ValueError for a malformed key or signature."""
    if len(key) != 32 or len(signature) != 64:
        raise ValueError("a key has 32 bytes, a signature 64")
    at, s = point_of(key), int.from_bytes(signature[32:], "little")
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    return s < ORDER and times(s, BASE) == add(point_of(signature[:32]), times(challenge, at))
