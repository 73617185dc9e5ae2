"""The few solids that furniture and vehicles are made of, and what they are painted with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from vedute_bench.shapes.rendering import Solid

Floats = NDArray[np.float64]
Point = tuple[float, float, float] | Floats
Solids = list[Solid]
Part = tuple[Solids, list[str]]  # solids of an object, and what can be said about them
T = TypeVar("T")

PALETTE = {
    "red": (0.84, 0.14, 0.12),
    "orange": (0.97, 0.53, 0.10),
    "yellow": (0.96, 0.85, 0.20),
    "green": (0.20, 0.62, 0.25),
    "blue": (0.15, 0.35, 0.80),
    "purple": (0.50, 0.22, 0.62),
    "pink": (0.97, 0.58, 0.74),
    "gray": (0.56, 0.57, 0.58),
}
WOOD = np.array([0.55, 0.37, 0.22])


class Paint(NamedTuple):
    """The colors of one object, drawn in the same way for every class.

    name, main: most of what is seen; second: some parts; metal: a gray; dark, glass, lamp.
    """

    name: str
    main: Floats
    second: Floats
    metal: Floats
    dark: Floats
    glass: Floats
    lamp: Floats


class Design(NamedTuple):
    """An object: x to its right, y to its front, z up, in any unit of length.

    color: name of its main color; traits: what can be said about it, "four thin legs"
    """

    solids: Solids
    color: str
    traits: list[str]


def paint(rng: Generator) -> Paint:
    name = pick(rng, tuple(PALETTE))
    main = _shade(rng, np.array(PALETTE[name]))
    other = np.array(PALETTE[pick(rng, tuple(PALETTE))])
    # what is called gray has no color at all
    seconds = (0.7 * main, main) if name == "gray" else (0.7 * main, main, WOOD, other)
    return Paint(
        name,
        main,
        second=_shade(rng, pick(rng, seconds)),
        metal=np.full(3, rng.uniform(0.2, 0.75)),
        dark=np.full(3, rng.uniform(0.10, 0.22)),
        glass=np.array([0.30, 0.38, 0.45]) * rng.uniform(0.6, 1.5),
        lamp=np.array([0.98, 0.95, 0.75]),
    )


def pick(rng: Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


def chance(rng: Generator, p: float) -> bool:
    return bool(rng.random() < p)


def box(color: Floats, center: Point, size: Point) -> Solid:
    """Edges along the axes."""
    return Solid(np.asarray(center) + _CUBE * np.asarray(size), color)


def loft(color: Floats, *rings: Floats) -> Solid:
    """From polygon to polygon."""
    return Solid(np.stack(rings), color)


def level(x: tuple[float, float], y: tuple[float, float], z: float) -> Floats:
    """A rectangle (4, 3) at height z."""
    (a, b), (c, d) = x, y
    return np.array([(a, c, z), (b, c, z), (b, d, z), (a, d, z)])


def side(y: Sequence[float] | Floats, z: Sequence[float] | Floats) -> Floats:
    """A polygon or path (k, 3) in the plane x = 0."""
    return np.stack([np.zeros(len(y)), y, z], axis=1)


def extrude(color: Floats, outline: Sequence[Point] | Floats, along: Point) -> Solid:
    """A flat convex polygon (k, 3) given a thickness, half of it on either side."""
    polygon, half = np.asarray(outline), np.asarray(along) / 2
    return Solid(np.stack([polygon - half, polygon + half]), color)


def tube(
    color: Floats,
    path: Sequence[Point] | Floats,
    radii: float | Sequence[float] | Floats,
    sides: int = 10,
    flat: float = 1.0,
) -> Solid:
    """Regular polygons along a path (m, 3), all perpendicular to the line from its first point to
    its last; `flat` squeezes them along their second axis, which is the more upright one."""
    middles = np.asarray(path, np.float64)
    axis = middles[-1] - middles[0]
    axis = axis / np.sqrt((axis**2).sum())
    side = np.array([axis[1], -axis[0], 0.0]) if abs(axis[2]) < 0.99 else np.array([1.0, 0.0, 0.0])
    side = side / np.sqrt((side**2).sum())
    other = np.cross(side, axis)
    ring = _circle(sides)[:, :1] * side + flat * _circle(sides)[:, 1:] * other  # (sides, 3)
    wide = np.broadcast_to(np.asarray(radii, np.float64), len(middles))
    return Solid(middles[:, None] + wide[:, None, None] * ring, color)


def bar(color: Floats, start: Point, end: Point, thick: float, sides: int = 4) -> Solid:
    """A straight leg, post or rail; `thick`: width of a square one, diameter of the others."""
    radius = thick / 2 * (2**0.5 if sides == 4 else 1.0)
    return tube(color, (start, end), radius, sides)


def ball(color: Floats, center: Point, radii: Point, sides: int = 10) -> Solid:
    """An ellipsoid."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, 6)
    ring = np.empty((6, sides, 3))
    ring[..., :2] = np.cos(angle)[:, None, None] * _circle(sides)
    ring[..., 2] = np.sin(angle)[:, None]
    return Solid(np.asarray(center) + ring * np.asarray(radii), color)


def mirrored(solid: Solid, axis: int = 0) -> Solid:
    """The same on the other side."""
    sign = np.ones(3)
    sign[axis] = -1
    return Solid(solid.rings * sign, solid.color)


def both(*solids: Solid, axis: int = 0) -> Solids:
    """Left and right, or along another axis."""
    return [*solids, *(mirrored(s, axis) for s in solids)]


def _shade(rng: Generator, color: Floats) -> Floats:
    """The color a little lighter or darker, and a little off."""
    shaded: Floats = (color * rng.uniform(0.85, 1.1) + rng.normal(0, 0.02, 3)).clip(0.03, 1)
    return shaded


def _circle(sides: int) -> Floats:
    """A regular polygon (sides, 2) with flat sides towards the axes."""
    angle = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


_CUBE = np.stack([level((-0.5, 0.5), (-0.5, 0.5), z) for z in (-0.5, 0.5)])
