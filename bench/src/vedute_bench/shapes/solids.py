"""Solids of which furniture and vehicles consist, and their colors."""

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
Part = tuple[Solids, list[str]]  # solids of an object, and their traits
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
    """Colors of one object, drawn from the same distribution for every class.

    name, main: the main color; second: color of some parts; metal: a gray; dark, glass, lamp.
    """

    name: str
    main: Floats
    second: Floats
    metal: Floats
    dark: Floats
    glass: Floats
    lamp: Floats


class Design(NamedTuple):
    """Object with x to its right, y to its front, z up, in any unit of length.

    color: name of its main color; traits: descriptions such as "four thin legs".
    """

    solids: Solids
    color: str
    traits: list[str]


def paint(rng: Generator) -> Paint:
    name = pick(rng, tuple(PALETTE))
    main = _shade(rng, np.array(PALETTE[name]))
    other = np.array(PALETTE[pick(rng, tuple(PALETTE))])
    # gray has no saturation
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
    """Box with edges along the axes."""
    return Solid(np.asarray(center) + _CUBE * np.asarray(size), color)


def loft(color: Floats, *rings: Floats) -> Solid:
    """Solid from polygon to polygon."""
    return Solid(np.stack(rings), color)


def level(x: tuple[float, float], y: tuple[float, float], z: float) -> Floats:
    """Rectangle (4, 3) at height z."""
    (a, b), (c, d) = x, y
    return np.array([(a, c, z), (b, c, z), (b, d, z), (a, d, z)])


def side(y: Sequence[float] | Floats, z: Sequence[float] | Floats) -> Floats:
    """Polygon or path (k, 3) in the plane x = 0."""
    return np.stack([np.zeros(len(y)), y, z], axis=1)


def extrude(color: Floats, outline: Sequence[Point] | Floats, along: Point) -> Solid:
    """Solid from a flat convex polygon (k, 3), with half of the thickness on either side."""
    polygon, half = np.asarray(outline), np.asarray(along) / 2
    return Solid(np.stack([polygon - half, polygon + half]), color)


def tube(
    color: Floats,
    path: Sequence[Point] | Floats,
    radii: float | Sequence[float] | Floats,
    sides: int = 10,
    flat: float = 1.0,
) -> Solid:
    """Solid of regular polygons along a path (m, 3), perpendicular to the line between its ends.

    `flat` scales them along their second axis, which is the more vertical one.
    """
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
    """Straight leg, post or rail; `thick`: width of a square one, diameter of the others."""
    radius = thick / 2 * (2**0.5 if sides == 4 else 1.0)
    return tube(color, (start, end), radius, sides)


def ball(color: Floats, center: Point, radii: Point, sides: int = 10) -> Solid:
    """Ellipsoid."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, 6)
    ring = np.empty((6, sides, 3))
    ring[..., :2] = np.cos(angle)[:, None, None] * _circle(sides)
    ring[..., 2] = np.sin(angle)[:, None]
    return Solid(np.asarray(center) + ring * np.asarray(radii), color)


def mirrored(solid: Solid, axis: int = 0) -> Solid:
    """Mirror image of a solid."""
    sign = np.ones(3)
    sign[axis] = -1
    return Solid(solid.rings * sign, solid.color)


def both(*solids: Solid, axis: int = 0) -> Solids:
    """Solids with their mirror images, left and right or along another axis."""
    return [*solids, *(mirrored(s, axis) for s in solids)]


def _shade(rng: Generator, color: Floats) -> Floats:
    """Vary a color slightly in brightness and hue."""
    shaded: Floats = (color * rng.uniform(0.85, 1.1) + rng.normal(0, 0.02, 3)).clip(0.03, 1)
    return shaded


def _circle(sides: int) -> Floats:
    """Regular polygon (sides, 2) with flat sides towards the axes."""
    angle = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


_CUBE = np.stack([level((-0.5, 0.5), (-0.5, 0.5), z) for z in (-0.5, 0.5)])
