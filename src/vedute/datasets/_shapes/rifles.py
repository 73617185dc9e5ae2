"""Rifles: a receiver, a barrel in front of it, a stock behind it, and what hangs on them."""

from __future__ import annotations

from itertools import pairwise

from numpy.random import Generator

from vedute.datasets._shapes.rendering import Solid
from vedute.datasets._shapes.solids import (
    Design,
    Floats,
    Paint,
    bar,
    both,
    box,
    chance,
    extrude,
    paint,
    pick,
    tube,
)


def rifle(rng: Generator) -> Design:
    """y = 0 where the receiver ends and the barrel begins."""
    p = paint(rng)
    length, h, w = rng.uniform(0.45, 0.75), rng.uniform(0.14, 0.2), rng.uniform(0.08, 0.12)
    steel = pick(rng, (p.dark, p.metal))
    body, wood = pick(rng, ((p.main, p.main), (p.main, p.second), (p.main, steel), (steel, p.main)))
    solids = [box(body, (0, -length / 2, 0), (w, length, h))]
    barrel, traits = _barrel(rng, p, steel, h, w)
    stock, more = _stock(rng, p, steel, wood, -length, h, w)
    solids += barrel + stock
    traits += more
    grip = rng.uniform(0.2, 0.3)
    y = -length * rng.uniform(0.72, 0.9)
    solids.append(_slab(p.main, y, -h / 2, 0.13, (-0.35 * grip, -grip), 0.8 * w))
    guard = [(0, y + 0.2, -h / 2), (0, y + 0.2, -h / 2 - 0.1), (0, y + 0.02, -h / 2 - 0.1)]
    solids += [bar(steel, a, b, 0.03) for a, b in pairwise(guard)]
    for part in (_magazine, _sight):
        found, word = part(rng, p, steel, length, h, w)
        solids += found
        traits += word
    if chance(rng, 0.25):
        y, z = rng.uniform(0.35, 0.6), -h / 2
        solids += both(bar(steel, (0.02, y, 0), (0.16, y + 0.05, z - 0.25), 0.04, 6))
        traits.append("two legs")
    if chance(rng, 0.4):
        solids.append(
            bar(steel, (0, -0.4 * length, 0.2 * h), (w + 0.1, -0.45 * length, 0.2 * h), 0.04, 6)
        )
    return Design(solids, p.name, traits)


def _slab(
    color: Floats, y: float, z: float, deep: float, lean: tuple[float, float], wide: float
) -> Solid:
    """Hangs from (y, z): deep along y, ends `lean` further."""
    dy, dz = lean
    side = [
        (0, y - deep / 2, z),
        (0, y + deep / 2, z),
        (0, y + deep / 2 + dy, z + dz),
        (0, y - deep / 2 + dy, z + dz),
    ]
    return extrude(color, side, (wide, 0, 0))


def _barrel(
    rng: Generator, p: Paint, steel: Floats, h: float, w: float
) -> tuple[list[Solid], list[str]]:
    """Long or short, with a guard around its first part, perhaps a muzzle or a second tube."""
    long = chance(rng, 0.5)
    reach = rng.uniform(0.95, 1.35) if long else rng.uniform(0.5, 0.8)
    r, z = rng.uniform(0.025, 0.042), 0.15 * h
    cover = reach * rng.uniform(0.4, 0.75)
    solids = [tube(steel, ((0, 0, z), (0, reach, z)), (1.2 * r, r), 8)]
    kind = pick(rng, ("square", "round", "fore", "pump"))
    if kind == "square":
        solids.append(box(p.main, (0, cover / 2, 0), (0.95 * w, cover, 0.8 * h)))
    elif kind == "round":
        solids.append(tube(p.main, ((0, 0, 0.1 * h), (0, cover, 0.1 * h)), (0.5 * h, 0.4 * h), 10))
    elif kind == "fore":
        side = [(0, 0, 0), (0, cover, 0.05 * h), (0, cover, -0.25 * h), (0, 0, -h / 2)]
        solids.append(extrude(p.main, side, (w, 0, 0)))
    else:
        solids.append(tube(steel, ((0, 0, -0.3 * h), (0, 0.8 * reach, -0.3 * h)), r, 8))
        y = rng.uniform(0.15, 0.3)
        solids.append(tube(p.main, ((0, y, -0.25 * h), (0, y + 0.35, -0.25 * h)), 0.42 * h, 10))
    if chance(rng, 0.4):
        solids.append(tube(steel, ((0, reach - 0.02, z), (0, reach + 0.14, z)), 1.8 * r, 8))
    if chance(rng, 0.6):
        solids.append(box(steel, (0, 0.95 * reach, z + 0.07), (0.03, 0.05, 0.12)))
    return solids, [f"a {'long' if long else 'short'} barrel"]


def _stock(
    rng: Generator, p: Paint, steel: Floats, wood: Floats, y: float, h: float, w: float
) -> tuple[list[Solid], list[str]]:
    """Full, with a hole, a tube with a plate, a frame, or none: then it ends in the receiver."""
    reach, drop = rng.uniform(0.45, 0.7), rng.uniform(0.05, 0.16)
    kind = pick(rng, ("full", "full", "hollow", "tube", "frame", "none"))
    end, top, low = y - reach, h / 2 - 0.02 - drop / 2, -h / 2 - drop
    butt = box(p.dark, (0, end, (top + low) / 2), (0.9 * w, 0.05, top - low))
    if kind == "full":
        side = [(0, y, h / 2 - 0.02), (0, y, -h / 2 + 0.03), (0, end, low), (0, end, top)]
        return [extrude(wood, side, (0.85 * w, 0, 0)), butt], ["a solid stock"]
    if kind == "hollow":
        above = bar(wood, (0, y, 0.2 * h), (0, end, top - 0.04), 0.09)
        below = bar(wood, (0, y, -h / 2), (0, end, low + 0.04), 0.07)
        return [above, below, butt], ["a hollow stock"]
    if kind == "tube":
        rear = _slab(wood, end + 0.12, top, 0.24, (-0.04, low - top), 0.8 * w)
        return [tube(steel, ((0, y, 0.1 * h), (0, end, 0.1 * h)), 0.05, 8), rear, butt], [
            "a short stock"
        ]
    if kind == "frame":
        rods = [
            bar(steel, (0, y, 0.2 * h), (0, end, 0.2 * h), 0.045, 6),
            bar(steel, (0, end, 0.2 * h), (0, end, low), 0.05),
        ]
        return rods, ["a thin stock"]
    return [], ["no stock"]


def _magazine(
    rng: Generator, p: Paint, steel: Floats, length: float, h: float, w: float
) -> tuple[list[Solid], list[str]]:
    """Straight, curved, a drum or none, under the receiver."""
    kind = pick(rng, ("straight", "curved", "drum", "none"))
    y, z = -length * rng.uniform(0.15, 0.4), -h / 2
    deep, tall = rng.uniform(0.13, 0.2), rng.uniform(0.2, 0.36)
    color = pick(rng, (steel, p.main, p.second))
    if kind == "straight":
        return [_slab(color, y, z, deep, (0.03, -tall), 0.7 * w)], ["a magazine"]
    if kind == "curved":
        steps = [(0.02, -0.4 * tall), (0.06, -0.35 * tall), (0.1, -0.3 * tall)]
        solids = []
        for dy, dz in steps:
            solids.append(_slab(color, y, z, deep, (dy, dz), 0.7 * w))
            y, z = y + dy, z + dz
        return solids, ["a curved magazine"]
    if kind == "drum":
        r = 0.5 * tall
        drum = tube(color, ((-0.8 * w, y, z - r), (0.8 * w, y, z - r)), r, 12)
        return [drum, box(color, (0, y, z - 0.04), (0.7 * w, 0.12, 0.1))], ["a drum"]
    return [], []


def _sight(
    rng: Generator, p: Paint, steel: Floats, length: float, h: float, w: float
) -> tuple[list[Solid], list[str]]:
    """A scope on two feet, a carrying handle, or two small sights."""
    kind = pick(rng, ("scope", "scope", "handle", "iron", "iron"))
    y, z = -length * rng.uniform(0.4, 0.6), h / 2 + rng.uniform(0.07, 0.12)
    if kind == "scope":
        r, half = rng.uniform(0.035, 0.05), rng.uniform(0.2, 0.36)
        at = [(0, y + half * t, z) for t in (-1, -0.6, -0.5, 0.5, 0.6, 1)]
        color = pick(rng, (steel, p.second))
        bells = tube(color, at, [1.5 * r, 1.4 * r, r, r, 1.6 * r, 1.8 * r], 8)
        feet = [
            box(steel, (0, y + s * half, (z + h / 2) / 2), (0.04, 0.06, z - h / 2))
            for s in (-0.4, 0.4)
        ]
        return [bells, *feet], ["a scope"]
    if kind == "handle":
        ends = [(0, y - 0.16, z + 0.03), (0, y + 0.16, z + 0.03)]
        feet = [bar(steel, e, (0, e[1], h / 2 - 0.02), 0.05) for e in ends]
        return [bar(steel, ends[0], ends[1], 0.05), *feet], ["a handle"]
    return [box(steel, (0, -0.85 * length, h / 2 + 0.03), (0.04, 0.05, 0.08))], []
