"""Cars, from sports cars to lorries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from vedute_bench.shapes import solids as s
from vedute_bench.shapes.solids import Design, Paint, Part, Solids

Span = tuple[float, float]  # start and end along the car


class Cabin(NamedTuple):
    """Cabin of a kind of car.

    It has a start and an end, relative to the middle, and the slope of the windscreen, all in
    lengths of the car; its height; and traits of the car.
    """

    start: float
    end: float
    high: float
    slope: float
    trait: str


CABINS = {
    "saloon": Cabin(-0.34, 0.20, 0.36, 0.10, "a trunk"),
    "hatchback": Cabin(-0.47, 0.20, 0.36, 0.08, "no trunk"),
    "sports": Cabin(-0.30, 0.14, 0.25, 0.14, "a low roof"),
    "pickup": Cabin(-0.10, 0.24, 0.40, 0.06, "a bed"),
    "van": Cabin(-0.49, 0.36, 0.58, 0.06, "a tall roof"),
    "lorry": Cabin(0.18, 0.47, 0.50, 0.04, "a load"),
    "open": Cabin(-0.22, 0.16, 0.22, 0.10, "an open roof"),
}


def car(rng: Generator) -> Design:
    """Draw a body, wheels, possibly a cabin with windows, a bed or a load, a spoiler or a rack."""
    p = s.paint(rng)
    kind = s.pick(rng, tuple(CABINS))
    cabin = CABINS[kind]
    length, wide = rng.uniform(2.0, 2.7), rng.uniform(0.9, 1.12)
    wheel = rng.uniform(0.17, 0.26)
    base = wheel * rng.uniform(0.7, 1.0)
    top = max(base + rng.uniform(0.30, 0.44), 2 * wheel)  # wheels end below it
    nose = 0.0 if kind in ("van", "lorry") else min(rng.uniform(0, 0.2), top - 2 * wheel)
    solids = _body(p, rng, length, wide, base, top, nose)
    span, high = (cabin.start * length, cabin.end * length), cabin.high * rng.uniform(0.85, 1.15)
    if kind == "open":
        solids += _cockpit(p, span, wide, top, high)
    else:
        solids += _cabin(p, span, cabin.slope * length, wide, top, high)
    if kind == "pickup":
        solids += _bed(p, (-0.5 * length, span[0]), wide, top, rng.uniform(0.08, 0.2))
    if kind == "lorry":
        load, color = rng.uniform(0.5, 0.85), s.pick(rng, (p.main, p.second))
        middle = (0, -0.165 * length, top + load / 2)
        solids.append(s.box(color, middle, (wide, 0.67 * length, load)))
    extra, words = _extras(rng, p, kind, length, wide, top, high)
    solids += [*_wheels(rng, p, length, wide, wheel), *extra]
    size = "large" if wheel > 0.215 else "small"
    return Design(solids, p.name, [cabin.trait, f"{size} wheels", *words])


def _body(
    p: Paint, rng: Generator, length: float, wide: float, base: float, top: float, nose: float
) -> Solids:
    """Body that bulges at the middle and is lower at the nose, with bumpers and lamps."""
    x, y = (-wide / 2, wide / 2), (-length / 2, length / 2)
    upper = s.level((0.94 * x[0], 0.94 * x[1]), (0.97 * y[0], 0.95 * y[1]), top)
    upper[2:, 2] -= nose  # the corners in front
    waist = base + 0.45 * (top - base)
    sill = s.level((0.96 * x[0], 0.96 * x[1]), (0.95 * y[0], 0.96 * y[1]), base)
    body = s.loft(p.main, sill, s.level(x, y, waist), upper)
    color, red = s.pick(rng, (p.dark, p.metal, p.main)), np.array([0.75, 0.1, 0.08])
    bumper = s.box(color, (0, 0, base + 0.05), (0.9 * wide, 1.02 * length, 0.1))
    z = waist + 0.02
    front = s.box(p.lamp, (0.36 * wide, 0.495 * length, z), (0.18 * wide, 0.03, 0.09))
    rear = s.box(red, (0.38 * wide, -0.495 * length, z), (0.14 * wide, 0.03, 0.1))
    grille = s.box(p.dark, (0, 0.495 * length, z - 0.02), (0.4 * wide, 0.03, 0.09))
    return [body, bumper, grille, *s.both(front, rear)]


def _cabin(p: Paint, span: Span, slope: float, wide: float, base: float, high: float) -> Solids:
    """Cabin of glass that narrows upwards, with pillars along its edges and a roof."""
    (a, b), x, u, top = span, 0.46 * wide, 0.38 * wide, base + high
    lower = s.level((-x, x), (a, b), base - 0.08)
    upper = s.level((-u, u), (a + 0.6 * slope, b - 1.3 * slope), top)
    roof = [upper + np.array([0, 0, z]) for z in (-0.03, 0.04)]
    pillars = [s.bar(p.main, lower[i], upper[i], 0.06) for i in (1, 2)]
    middles = [(ring[1] + ring[2]) / 2 for ring in (lower, upper)]
    pillars.append(s.bar(p.main, middles[0], middles[1], 0.08))
    return [s.loft(p.glass, lower, upper), s.loft(p.main, *roof), *s.both(*pillars)]


def _cockpit(p: Paint, span: Span, wide: float, top: float, high: float) -> Solids:
    """Open cabin: a dark interior, seats, and a sloping windscreen."""
    (a, b), x = span, 0.38 * wide
    hollow = s.box(p.dark, (0, (a + b) / 2, top), (2 * x, b - a, 0.03))
    seats = s.box(p.second, (0.2 * wide, a + 0.3 * (b - a), top + 0.1), (0.28 * wide, 0.14, 0.26))
    upper = (b - 0.15, top + high)
    screen = [(-x, b, top), (x, b, top), (0.85 * x, *upper), (-0.85 * x, *upper)]
    return [hollow, *s.both(seats), s.extrude(p.glass, screen, (0, 0.04, 0))]


def _bed(p: Paint, span: Span, wide: float, top: float, high: float) -> Solids:
    """Bed with low walls around a dark floor."""
    (a, b), x = span, 0.45 * wide
    floor = s.box(p.dark, (0, (a + b) / 2, top), (2 * x, b - a, 0.02))
    wall = s.box(p.main, (x, (a + b) / 2, top + high / 2 - 0.02), (0.06, b - a, high))
    gate = s.box(p.main, (0, a + 0.06, top + high / 2 - 0.02), (2 * x, 0.06, high))
    return [floor, gate, *s.both(wall)]


def _wheels(rng: Generator, p: Paint, length: float, wide: float, r: float) -> Solids:
    """Tyres with hubs, slightly outside the body."""
    x, hub = wide / 2, r * rng.uniform(0.45, 0.7)
    color = s.pick(rng, (p.metal, p.lamp * 0.8, p.second))
    solids = []
    for y in (-length * rng.uniform(0.29, 0.35), length * rng.uniform(0.29, 0.35)):
        solids.append(s.tube(p.dark, ((x - 0.16, y, r), (x + 0.03, y, r)), r, 14))
        solids.append(s.tube(color, ((x, y, r), (x + 0.045, y, r)), hub, 8))
    return s.both(*solids)


def _extras(
    rng: Generator, p: Paint, kind: str, length: float, wide: float, top: float, high: float
) -> Part:
    if kind in ("saloon", "sports", "open") and s.chance(rng, 0.35):
        z, y = top + rng.uniform(0.1, 0.2), -0.46 * length
        post = s.box(p.dark, (0.3 * wide, y, (top + z) / 2), (0.04, 0.05, z - top + 0.04))
        return [s.box(p.main, (0, y, z), (0.95 * wide, 0.16, 0.04)), *s.both(post)], ["a spoiler"]
    if kind in ("hatchback", "van") and s.chance(rng, 0.35):
        z = top + high + 0.08
        rail = s.bar(p.dark, (0.3 * wide, -0.3 * length, z), (0.3 * wide, 0.02 * length, z), 0.04)
        cross = [
            s.bar(p.dark, (-0.33 * wide, y * length, z), (0.33 * wide, y * length, z), 0.04)
            for y in (-0.28, -0.14, 0.0)
        ]
        return [*s.both(rail), *cross], ["a rack"]
    return [], []
