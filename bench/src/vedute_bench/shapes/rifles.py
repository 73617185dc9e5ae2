"""Rifles: a receiver with a barrel, a stock and attachments."""

from __future__ import annotations

from itertools import pairwise

from numpy.random import Generator

from vedute_bench.shapes import solids as s
from vedute_bench.shapes.rendering import Solid
from vedute_bench.shapes.solids import Design, Floats, Paint, Part


def rifle(rng: Generator) -> Design:
    """Draw a rifle; the barrel begins at y = 0, the end of the receiver."""
    p = s.paint(rng)
    length, h, w = rng.uniform(0.45, 0.75), rng.uniform(0.14, 0.2), rng.uniform(0.08, 0.12)
    steel = s.pick(rng, (p.dark, p.metal))
    pairs = ((p.main, p.main), (p.main, p.second), (p.main, steel), (steel, p.main))
    body, wood = s.pick(rng, pairs)
    solids = [s.box(body, (0, -length / 2, 0), (w, length, h))]
    barrel, traits = _barrel(rng, p, steel, h, w)
    stock, more = _stock(rng, p, steel, wood, -length, h, w)
    solids += barrel + stock
    traits += more
    grip = rng.uniform(0.2, 0.3)
    y = -length * rng.uniform(0.72, 0.9)
    solids.append(_slab(p.main, y, -h / 2, 0.13, (-0.35 * grip, -grip), 0.8 * w))
    guard = [(0, y + 0.2, -h / 2), (0, y + 0.2, -h / 2 - 0.1), (0, y + 0.02, -h / 2 - 0.1)]
    solids += [s.bar(steel, a, b, 0.03) for a, b in pairwise(guard)]
    for part in (_magazine, _sight):
        drawn, word = part(rng, p, steel, length, h, w)
        solids += drawn
        traits += word
    if s.chance(rng, 0.25):
        y, z = rng.uniform(0.35, 0.6), -h / 2
        solids += s.both(s.bar(steel, (0.02, y, 0), (0.16, y + 0.05, z - 0.25), 0.04, 6))
        traits.append("two legs")
    if s.chance(rng, 0.4):
        ends = (0, -0.4 * length, 0.2 * h), (w + 0.1, -0.45 * length, 0.2 * h)
        solids.append(s.bar(steel, *ends, 0.04, 6))
    return Design(solids, p.name, traits)


def _slab(
    color: Floats, y: float, z: float, deep: float, lean: tuple[float, float], wide: float
) -> Solid:
    """Slab that hangs from (y, z), `deep` along y, with its lower end shifted by `lean`."""
    dy, dz = lean
    a, b = y - deep / 2, y + deep / 2
    return s.extrude(color, s.side((a, b, b + dy, a + dy), (z, z, z + dz, z + dz)), (wide, 0, 0))


def _barrel(rng: Generator, p: Paint, steel: Floats, h: float, w: float) -> Part:
    """Draw a barrel with a guard around its first part, possibly a muzzle or a second tube."""
    long = s.chance(rng, 0.5)
    reach = rng.uniform(0.95, 1.35) if long else rng.uniform(0.5, 0.8)
    r, z = rng.uniform(0.025, 0.042), 0.15 * h
    cover = reach * rng.uniform(0.4, 0.75)
    solids = [s.tube(steel, ((0, 0, z), (0, reach, z)), (1.2 * r, r), 8)]
    kind = s.pick(rng, ("square", "round", "fore", "pump"))
    if kind == "square":
        solids.append(s.box(p.main, (0, cover / 2, 0), (0.95 * w, cover, 0.8 * h)))
    elif kind == "round":
        ends = (0, 0, 0.1 * h), (0, cover, 0.1 * h)
        solids.append(s.tube(p.main, ends, (0.5 * h, 0.4 * h), 10))
    elif kind == "fore":
        side = [(0, 0, 0), (0, cover, 0.05 * h), (0, cover, -0.25 * h), (0, 0, -h / 2)]
        solids.append(s.extrude(p.main, side, (w, 0, 0)))
    else:
        solids.append(s.tube(steel, ((0, 0, -0.3 * h), (0, 0.8 * reach, -0.3 * h)), r, 8))
        y = rng.uniform(0.15, 0.3)
        solids.append(s.tube(p.main, ((0, y, -0.25 * h), (0, y + 0.35, -0.25 * h)), 0.42 * h, 10))
    if s.chance(rng, 0.4):
        solids.append(s.tube(steel, ((0, reach - 0.02, z), (0, reach + 0.14, z)), 1.8 * r, 8))
    if s.chance(rng, 0.6):
        solids.append(s.box(steel, (0, 0.95 * reach, z + 0.07), (0.03, 0.05, 0.12)))
    return solids, [f"a {'long' if long else 'short'} barrel"]


def _stock(
    rng: Generator, p: Paint, steel: Floats, wood: Floats, y: float, h: float, w: float
) -> Part:
    """Draw a stock: full, with a hole, a tube with a plate, a frame, or none."""
    reach, drop = rng.uniform(0.45, 0.7), rng.uniform(0.05, 0.16)
    kind = s.pick(rng, ("full", "full", "hollow", "tube", "frame", "none"))
    end, top, low = y - reach, h / 2 - 0.02 - drop / 2, -h / 2 - drop
    butt = s.box(p.dark, (0, end, (top + low) / 2), (0.9 * w, 0.05, top - low))
    if kind == "full":
        side = [(0, y, h / 2 - 0.02), (0, y, -h / 2 + 0.03), (0, end, low), (0, end, top)]
        return [s.extrude(wood, side, (0.85 * w, 0, 0)), butt], ["a solid stock"]
    if kind == "hollow":
        above = s.bar(wood, (0, y, 0.2 * h), (0, end, top - 0.04), 0.09)
        below = s.bar(wood, (0, y, -h / 2), (0, end, low + 0.04), 0.07)
        return [above, below, butt], ["a hollow stock"]
    if kind == "tube":
        rear = _slab(wood, end + 0.12, top, 0.24, (-0.04, low - top), 0.8 * w)
        rod = s.tube(steel, ((0, y, 0.1 * h), (0, end, 0.1 * h)), 0.05, 8)
        return [rod, rear, butt], ["a short stock"]
    if kind == "frame":
        rod = s.bar(steel, (0, y, 0.2 * h), (0, end, 0.2 * h), 0.045, 6)
        return [rod, s.bar(steel, (0, end, 0.2 * h), (0, end, low), 0.05)], ["a thin stock"]
    return [], ["no stock"]


def _magazine(rng: Generator, p: Paint, steel: Floats, length: float, h: float, w: float) -> Part:
    """Draw a magazine under the receiver: straight, curved, a drum, or none."""
    kind = s.pick(rng, ("straight", "curved", "drum", "none"))
    y, z = -length * rng.uniform(0.15, 0.4), -h / 2
    deep, tall = rng.uniform(0.13, 0.2), rng.uniform(0.2, 0.36)
    color = s.pick(rng, (steel, p.main, p.second))
    if kind == "straight":
        return [_slab(color, y, z, deep, (0.03, -tall), 0.7 * w)], ["a magazine"]
    if kind == "curved":
        solids = []
        for dy, dz in ((0.02, -0.4 * tall), (0.06, -0.35 * tall), (0.1, -0.3 * tall)):
            solids.append(_slab(color, y, z, deep, (dy, dz), 0.7 * w))
            y, z = y + dy, z + dz
        return solids, ["a curved magazine"]
    if kind == "drum":
        r = 0.5 * tall
        drum = s.tube(color, ((-0.8 * w, y, z - r), (0.8 * w, y, z - r)), r, 12)
        return [drum, s.box(color, (0, y, z - 0.04), (0.7 * w, 0.12, 0.1))], ["a drum"]
    return [], []


def _sight(rng: Generator, p: Paint, steel: Floats, length: float, h: float, w: float) -> Part:
    """Draw a scope on two feet, a carrying handle, or two small sights."""
    kind = s.pick(rng, ("scope", "scope", "handle", "iron", "iron"))
    y, z = -length * rng.uniform(0.4, 0.6), h / 2 + rng.uniform(0.07, 0.12)
    if kind == "scope":
        r, half = rng.uniform(0.035, 0.05), rng.uniform(0.2, 0.36)
        at = [(0, y + half * t, z) for t in (-1, -0.6, -0.5, 0.5, 0.6, 1)]
        color = s.pick(rng, (steel, p.second))
        bells = s.tube(color, at, [1.5 * r, 1.4 * r, r, r, 1.6 * r, 1.8 * r], 8)
        middle, size = (z + h / 2) / 2, (0.04, 0.06, z - h / 2)
        feet = [s.box(steel, (0, y + t * half, middle), size) for t in (-0.4, 0.4)]
        return [bells, *feet], ["a scope"]
    if kind == "handle":
        ends = [(0, y - 0.16, z + 0.03), (0, y + 0.16, z + 0.03)]
        feet = [s.bar(steel, e, (0, e[1], h / 2 - 0.02), 0.05) for e in ends]
        return [s.bar(steel, ends[0], ends[1], 0.05), *feet], ["a handle"]
    return [s.box(steel, (0, -0.85 * length, h / 2 + 0.03), (0.04, 0.05, 0.08))], []
