"""Tables and chairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from vedute_bench.shapes import solids as s
from vedute_bench.shapes.rendering import Solid
from vedute_bench.shapes.solids import Design, Floats, Paint, Solids

Corners = Sequence[tuple[float, float]]


def table(rng: Generator) -> Design:
    """Draw a top on legs, a pedestal, panels, a trestle or drawers."""
    p = s.paint(rng)
    w, d, h = rng.uniform(1.1, 2.2), rng.uniform(0.75, 1.3), rng.uniform(0.45, 1.15)
    thick = rng.uniform(0.04, 0.12)
    shape = s.pick(rng, ("square", "square", "square", "round", "oval", "octagonal"))
    w = d * rng.uniform(0.9, 1.1) if shape in ("round", "octagonal") else w
    solids = [_top(p, shape, w, d, h, thick)]
    under = h - thick
    stands = ("legs", "legs", "legs", "pedestal", "trestle")
    stand = s.pick(rng, (*stands, "panels", "drawers") if shape == "square" else stands)
    color = s.pick(rng, (p.main, p.second, p.metal))
    traits = [_a(f"{shape} top")]
    if stand == "legs":
        inset = rng.uniform(0.03, 0.16) + (0 if shape == "square" else 0.12)
        count = 3 if shape == "round" and s.chance(rng, 0.4) else 4
        corners = _corners(count, w / 2 - inset, d / 2 - inset)
        legs, word = _legs(rng, color, corners, under)
        traits.append(f"{'three' if count == 3 else 'four'} {word} legs")
        solids += legs + (_rails(rng, p, corners, under) if count == 4 else [])
    elif stand == "pedestal":
        solids += _pedestal(rng, color, under, min(w, d))
        traits.append("a central foot")
    elif stand == "trestle":
        solids += _trestle(rng, color, w, d, under)
        traits.append("two posts")
    elif stand == "panels":
        board = rng.uniform(0.04, 0.1)
        x, depth = w / 2 - rng.uniform(0.05, 0.25), d * rng.uniform(0.75, 0.98)
        solids += s.both(s.box(color, (x, 0, under / 2), (board, depth, under)))
        if s.chance(rng, 0.6):  # a board between them, across the back or as a shelf
            z, tall = (under * 0.7, under * 0.4) if s.chance(rng, 0.5) else (under * 0.35, board)
            deep = board if tall > board else 0.8 * depth
            solids.append(s.box(p.second, (0, 0, z), (2 * x, deep, tall)))
        traits.append("two panels")
    else:
        solids += _drawers(rng, p, w, d, under)
        traits.append("drawers")
    return Design(solids, p.name, traits)


def chair(rng: Generator) -> Design:
    """Draw a seat on legs, a star foot or a block, with a back and possibly armrests."""
    p = s.paint(rng)
    w, d = rng.uniform(0.85, 1.3), rng.uniform(0.8, 1.1)
    seat, thick = rng.uniform(0.6, 1.0), rng.uniform(0.06, 0.2)
    frame = s.pick(rng, (p.main, p.second, p.metal))
    solids = [_top(p, "round" if s.chance(rng, 0.15) else "square", w, d, seat, thick)]
    back, closed, word = _back(rng, p, frame, w, d, seat)
    solids += back
    if closed and s.chance(rng, 0.4):  # a cushion hides the seat, so the back shows the main color
        soft = rng.uniform(0.05, 0.12)
        solids.append(s.box(p.second, (0, 0.02, seat + soft / 2), (0.9 * w, 0.9 * d, soft)))
    traits = [_a(f"{word} back")]
    kind = s.pick(rng, ("legs", "legs", "legs", "star", "block", "sled"))
    under = seat - thick
    if kind == "legs":
        inset = rng.uniform(0.03, 0.1)
        corners = _corners(4, w / 2 - inset, d / 2 - inset)
        legs, word = _legs(rng, frame, corners, under)
        solids += legs + (_rails(rng, p, corners, under) if s.chance(rng, 0.5) else [])
        traits.append(f"four {word} legs")
    elif kind == "star":
        solids += _star(rng, p, under, min(w, d))
        traits.append("a star foot")
    elif kind == "block":
        solids.append(s.box(p.main, (0, 0, under / 2 + 0.03), (0.94 * w, 0.92 * d, under - 0.06)))
        traits.append("a solid foot")
    else:
        y, x, t = d / 2 - 0.06, w / 2 - 0.04, rng.uniform(0.05, 0.09)
        path = [(x, -y, under), (x, -y, 0), (x, y, 0), (x, y, under)]
        for a, b in pairwise(path):
            solids += s.both(s.bar(frame, a, b, t))
        traits.append("a sled foot")
    if s.chance(rng, 0.45):
        solids += _armrests(rng, p, frame, w, d, seat)
        traits.append("armrests")
    return Design(solids, p.name, traits)


def _top(p: Paint, shape: str, w: float, d: float, h: float, thick: float) -> Solid:
    """Board whose upper side is at height h."""
    if shape == "square":
        return s.box(p.main, (0, 0, h - thick / 2), (w, d, thick))
    sides = 8 if shape == "octagonal" else 18
    board = s.tube(p.main, ((0, 0, h - thick), (0, 0, h)), 0.5 / np.cos(np.pi / sides), sides)
    return Solid(board.rings * (w, d, 1.0), p.main)


def _corners(count: int, x: float, y: float) -> Corners:
    if count == 4:
        return ((x, y), (-x, y), (-x, -y), (x, -y))
    return ((0.0, y), (0.87 * x, -0.5 * y), (-0.87 * x, -0.5 * y))


def _legs(rng: Generator, color: Floats, corners: Corners, h: float) -> tuple[Solids, str]:
    """Draw legs: thin or thick, square or round, straight, splayed or tapered."""
    thin = s.chance(rng, 0.5)
    radius = rng.uniform(0.025, 0.04) if thin else rng.uniform(0.055, 0.085)
    sides, splay = s.pick(rng, (4, 4, 8)), s.pick(rng, (1.0, 1.0, rng.uniform(1.05, 1.3)))
    foot = radius * s.pick(rng, (1.0, 1.0, 0.55))
    radii = np.array([radius, foot]) * (2**0.5 if sides == 4 else 1.1)
    ends = [((x, y, h), (splay * x, splay * y, 0)) for x, y in corners]
    return [s.tube(color, e, radii, sides) for e in ends], "thin" if thin else "thick"


def _rails(rng: Generator, p: Paint, corners: Corners, h: float) -> Solids:
    """Draw an apron, stretchers, a shelf, or nothing between four legs."""
    (x, y), *_ = corners
    z, t = h * rng.uniform(0.15, 0.45), rng.uniform(0.03, 0.06)
    kind = s.pick(rng, ("nothing", "apron", "stretchers", "shelf"))
    if kind == "apron":
        tall = rng.uniform(0.07, 0.18)
        side = s.box(p.main, (x, 0, h - tall / 2), (t, 2 * y, tall))
        front = s.box(p.main, (0, y, h - tall / 2), (2 * x, t, tall))
        return s.both(side) + s.both(front, axis=1)
    if kind == "stretchers":
        across = s.bar(p.second, (-x, 0, z), (x, 0, z), t)
        return [*s.both(s.bar(p.second, (x, -y, z), (x, y, z), t)), across]
    if kind == "shelf":
        return [s.box(p.second, (0, 0, z), (2 * x, 2 * y, t))]
    return []


def _pedestal(rng: Generator, color: Floats, h: float, wide: float) -> Solids:
    """Draw a column on a disc or on a cross."""
    r, foot = rng.uniform(0.05, 0.13), wide * rng.uniform(0.25, 0.4)
    waist = r * rng.uniform(0.6, 1.0)
    column = s.tube(color, ((0, 0, 0), (0, 0, h / 2), (0, 0, h)), (r, waist, r), 10)
    if s.chance(rng, 0.5):
        return [column, s.tube(color, ((0, 0, 0), (0, 0, 0.06)), (foot, 0.8 * foot), 16)]
    turn = s.pick(rng, (0.0, np.pi / 4))
    ends = [(foot * np.cos(turn + a), foot * np.sin(turn + a), 0.03) for a in (0, np.pi / 2)]
    return [column, *(s.bar(color, e, (-e[0], -e[1], 0.03), 0.08) for e in ends)]


def _trestle(rng: Generator, color: Floats, w: float, d: float, h: float) -> Solids:
    """Draw two posts on feet joined by a beam, or two crossed pairs of bars."""
    x, y, t = 0.32 * w, 0.36 * d, rng.uniform(0.06, 0.12)
    beam = s.bar(color, (-x, 0, 0.4 * h), (x, 0, 0.4 * h), 0.7 * t)
    if s.chance(rng, 0.4):
        crossed = [s.bar(color, (x, -end, 0), (x, end, h), t) for end in (y, -y)]
        return [beam, *s.both(*crossed)]
    post = s.bar(color, (x, 0, 0), (x, 0, h), t)
    return [beam, *s.both(post, s.bar(color, (x, -y, t / 2), (x, y, t / 2), t))]


def _drawers(rng: Generator, p: Paint, w: float, d: float, h: float) -> Solids:
    """Draw the drawers of a desk on one side or on both; the other side is a panel."""
    wide, deep, count = 0.28 * w, 0.9 * d, int(rng.integers(2, 4))
    x, tall = w / 2 - 0.14 * w - 0.03, h - 0.08
    chest = [s.box(p.second, (x, 0, h - tall / 2), (wide, deep, tall))]
    for i in range(count):
        z = h - tall * (i + 0.5) / count
        chest.append(s.box(p.main, (x, deep / 2, z), (0.88 * wide, 0.05, 0.8 * tall / count)))
        chest.append(s.box(p.dark, (x, deep / 2 + 0.04, z), (0.3 * wide, 0.04, 0.05)))
    if s.chance(rng, 0.4):
        return s.both(*chest)
    chest.append(s.box(p.second, (0.06 - w / 2, 0, h / 2), (0.06, deep, h)))
    return chest if s.chance(rng, 0.5) else [s.mirrored(solid) for solid in chest]


def _back(
    rng: Generator, p: Paint, frame: Floats, w: float, d: float, seat: float
) -> tuple[Solids, bool, str]:
    """Draw the back of a chair, which leans back; returns also whether it is closed, and a word."""
    tall = s.chance(rng, 0.5)
    h = rng.uniform(1.05, 1.5) if tall else rng.uniform(0.5, 0.85)
    lean, y, t = rng.uniform(0, 0.25), 0.05 - d / 2, rng.uniform(0.05, 0.12)
    x = w / 2 - t / 2

    def at(u: float, v: float) -> tuple[float, float, float]:
        """Point of the back at u across in [-1, 1] and v upwards in [0, 1]."""
        return u * x, y - lean * v, seat + h * v

    kind = s.pick(rng, ("solid", "solid", "slatted", "slatted", "ladder", "open", "round"))
    posts = [s.bar(frame, at(u, -0.05), at(u, 1), t) for u in (-1, 1)]
    rail = s.bar(frame, at(-1, 0.97), at(1, 0.97), 1.3 * t)
    if kind == "solid":
        v = s.pick(rng, (0.0, 0.0, 0.25))
        outline = [at(-1, v), at(1, v), at(s.pick(rng, (1.0, 0.75)), 1), at(-0.85, 1)]
        outline[2] = (-outline[3][0], *outline[2][1:])
        solids = [s.extrude(p.main, outline, (0, 1.2 * t, 0))]
        solids += posts if v else []
    elif kind == "round":
        angle = np.linspace(0, 2 * np.pi, 14, endpoint=False)
        ring = [at(0.95 * float(np.cos(a)), 0.58 + 0.42 * float(np.sin(a))) for a in angle]
        solids = [s.extrude(p.main, ring, (0, t, 0))]
        solids += [s.bar(frame, at(u, 0), at(u, 0.5), t) for u in (-0.4, 0.4)]
    elif kind == "slatted":
        count = int(rng.integers(2, 6))
        across = [2 * (i + 1) / (count + 1) - 1 for i in range(count)]
        solids = [*posts, rail, *(s.bar(p.main, at(u, 0), at(u, 0.97), 0.07) for u in across)]
    elif kind == "ladder":
        heights = np.linspace(0.3, 0.97, int(rng.integers(2, 5)))
        solids = [*posts, *(s.bar(p.main, at(-1, v), at(1, v), 0.11) for v in heights)]
    else:
        solids = [*posts, rail, s.bar(frame, at(-1, 0.35), at(1, 0.35), t)]
    word = kind if s.chance(rng, 0.5) else ("tall" if tall else "low")
    return solids, kind in ("solid", "round"), word


def _star(rng: Generator, p: Paint, h: float, wide: float) -> Solids:
    """Draw the foot of an office chair: a column, spokes and castors."""
    r, turn, count = wide * rng.uniform(0.42, 0.55), rng.uniform(0, 1), s.pick(rng, (4, 5))
    solids = [s.tube(p.metal, ((0, 0, 0.12), (0, 0, h)), (0.06, 0.06), 8)]
    for i in range(count):
        a = turn + 2 * np.pi * i / count
        end = (r * np.cos(a), r * np.sin(a), 0.1)
        solids.append(s.bar(p.dark, (0, 0, 0.18), end, 0.07))
        solids.append(s.box(p.dark, (end[0], end[1], 0.05), (0.1, 0.1, 0.1)))
    return solids


def _armrests(rng: Generator, p: Paint, frame: Floats, w: float, d: float, seat: float) -> Solids:
    """Draw armrests, closed or as rails on one or two posts."""
    h, t, x = rng.uniform(0.25, 0.42), rng.uniform(0.06, 0.12), w / 2
    y = d / 2 - rng.uniform(0.05, 0.2)
    if s.chance(rng, 0.3):
        return s.both(s.box(p.main, (x, 0, seat + h / 2 - 0.1), (1.4 * t, 0.95 * d, h + 0.2)))
    rail = s.box(p.second, (x, 0.02, seat + h), (1.3 * t, 0.95 * d, t))
    places = (y, 0.1 - d / 2) if s.chance(rng, 0.5) else (y,)
    posts = [s.bar(frame, (x, at, seat - 0.1), (x, at, seat + h), 0.7 * t) for at in places]
    return s.both(rail, *posts)


def _a(thing: str) -> str:
    return f"{'an' if thing[0] == 'o' else 'a'} {thing}"
