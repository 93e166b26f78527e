"""Windows over planes: adding them up, and max pooling, with the winner of each window, what a plane holds there, and the way back.

All arrays are contiguous; planes are (count, h, w), windows (count, oh, ow). `shape` holds kernel, stride, dilation and what
is padded before, two numbers each; windows may reach over the borders. A winner is the number of an entry in its window.
"""

from __future__ import annotations

from typing import Any

from fnad._numba import kernel


@kernel
def forward(x: Any, shape: Any, out: Any, winner: Any) -> None:
    """The largest entry of each window (nan if there is one) and its number, the first of several."""
    kh, kw, sh, sw, dh, dw, ph, pw = shape
    count, h, w = x.shape
    for c in range(count):
        for i in range(out.shape[1]):
            best, place = out[c, i], winner[c, i]
            best[:] = 0
            place[:] = -1
            for u in range(kh):
                a = i * sh - ph + u * dh
                if a < 0 or a >= h:
                    continue
                for v in range(kw):
                    # windows j whose entry v lies in the plane; a row of them at a time, without branches
                    shift, k = v * dw - pw, u * kw + v
                    first = max(0, -(shift // sw))
                    stop = min(out.shape[2], (w - 1 - shift) // sw + 1)
                    for j in range(first, stop):
                        value, top, number = x[c, a, j * sw + shift], best[j], place[j]
                        wins = (number < 0) | (value > top) | ((value != value) & (top == top))
                        best[j] = value if wins else top
                        place[j] = k if wins else number
            for j in range(out.shape[2]):
                place[j] = max(place[j], 0)


@kernel
def take(x: Any, winner: Any, shape: Any, out: Any) -> None:
    """The entry of each window that the winner names."""
    _, kw, sh, sw, dh, dw, ph, pw = shape
    for c in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                place = winner[c, i, j]
                out[c, i, j] = x[c, i * sh - ph + place // kw * dh, j * sw - pw + place % kw * dw]


@kernel
def put(g: Any, winner: Any, shape: Any, out: Any) -> None:
    """Add one entry per window to `out` where the winner says."""
    _, kw, sh, sw, dh, dw, ph, pw = shape
    for c in range(g.shape[0]):
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                place = winner[c, i, j]
                out[c, i * sh - ph + place // kw * dh, j * sw - pw + place % kw * dw] += g[c, i, j]


@kernel
def fold(windows: Any, sh: Any, sw: Any, dh: Any, dw: Any, out: Any) -> None:
    """Add whole windows (count, kh, kw, oh, ow) to `out` where they lie."""
    count, kh, kw, oh, ow = windows.shape
    for c in range(count):
        for u in range(kh):
            for v in range(kw):
                for i in range(oh):
                    row, part = out[c, u * dh + i * sh, v * dw :], windows[c, u, v, i]
                    if sw == 1:
                        for j in range(ow):
                            row[j] += part[j]
                    else:
                        for j in range(ow):
                            row[j * sw] += part[j]
