"""Rendering of solids from several sides: flat triangles, Lambert shading, a depth buffer.

A solid is a stack of rings, each a convex polygon with the same number of corners: two rectangles
make a box, two circles a cylinder, a chain of circles a fuselage. Everything is a loft, so there is
one way to cut solids into triangles.

A solid is lit once, in the world; only the camera moves. At azimuth a and elevation e it stands in
the direction c = (sin a cos e, cos a cos e, sin e) and sees a point p at

    depth = distance - p.c,   across = focal p.r / depth,   up = focal p.u / depth,

with r = (-cos a, sin a, 0), u = c x r, and the width of the picture as unit. Inverse depth is
linear on the picture, so each triangle is filled row by row with one multiplication per sample, and
the nearest triangle is the largest number. Only elementwise arithmetic: a picture depends on its
solids and on nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

NUMBERS = 1 << 16  # triangles that a key of the depth buffer can distinguish
_LANES = np.array([0, 16, 32])  # first bits of red, green and blue in a number


class Solid(NamedTuple):
    """Solid with rings (m, k, 3), m rings of k corners, and color (3,), RGB in [0, 1]."""

    rings: Floats
    color: Floats


class Camera(NamedTuple):
    """Position and field of view of a camera; the focal length is lens over sensor.

    By default it is at (0, 1, 0.6), with a lens of 35 mm and a sensor of 32 mm: a sphere of
    diameter 0.969 fills the picture.
    """

    distance: float = 1.36**0.5
    rise: float = 0.6  # the elevation's tangent
    focal: float = 35 / 32


class Light(NamedTuple):
    """Main light, weak light from the opposite side, and ambient light."""

    direction: tuple[float, float, float] = (0.35, 0.55, 0.76)
    sun: float = 0.62
    back: float = 0.12
    ambient: float = 0.42


class Mesh(NamedTuple):
    """Mesh of F triangles: corners (F, 3, 3), outward unit normals (F, 3), colors (F, 3)."""

    corners: Floats
    normals: Floats
    colors: Floats


def render(
    mesh: Mesh,
    azimuths: Sequence[float],
    size: int = 64,
    samples: int = 2,
    camera: Camera = Camera(),  # noqa: B008 (immutable)
    light: Light = Light(),  # noqa: B008
) -> Bytes:
    """Render pictures (views, 3, size, size) on white, with samples x samples rays per pixel.

    azimuths: in degrees, one per view.
    """
    V, S = len(azimuths), size * samples
    screen, facing = _project(mesh, np.radians(azimuths), camera)  # (V, F, 3, 3), (V, F)
    view, face = facing.nonzero()
    if len(face) >= NUMBERS:
        raise ValueError(f"{len(face)} visible triangles; at most {NUMBERS - 1} can be drawn")
    nearest = _fill(screen[view, face] * (S, S, 1.0), view, V, S)  # (V, S, S); 0: nothing
    light_of = np.full((len(face) + 1, 3), 255, np.int64)
    light_of[1:] = _lit(mesh, light)[face]
    packed = (light_of << _LANES).sum(1)[nearest]  # three in one: one look-up, one sum
    rays = samples * samples
    total = np.zeros((V, size, size), np.int64)
    for i, j in np.ndindex(samples, samples):
        total += packed[:, i::samples, j::samples]
    colors = total[:, None] >> _LANES[:, None, None] & 0xFFFF  # (V, 3, size, size)
    return np.asarray((colors + rays // 2) // rays, np.uint8)


def mesh_of(
    solids: Sequence[Solid],
    turn: float = 0.0,
    size: float = 1.0,
    at: Sequence[float] | Floats = (0.0, 0.0, 0.0),
) -> Mesh:
    """Convert solids to triangles, scaled, rotated about the vertical and translated.

    turn: in degrees, counter-clockwise from above; size: diameter of the enclosing sphere around
    the center of the bounding box; at: position (x, y, z) of that center.
    """
    alike: dict[tuple[int, ...], list[Solid]] = defaultdict(list)
    for solid in solids:
        alike[solid.rings.shape].append(solid)
    corners, hearts, colors = [], [], []
    for (m, k, _), group in alike.items():
        faces, slabs = _faces(m, k)
        rings = np.stack([s.rings for s in group])  # (P, m, k, 3)
        middles = rings.mean(2)
        corners.append(rings.reshape(len(group), m * k, 3)[:, faces].reshape(-1, 3, 3))
        hearts.append((middles[:, slabs] + middles[:, slabs + 1]).reshape(-1, 3) / 2)
        colors.append(np.repeat(np.stack([s.color for s in group]), len(faces), axis=0))
    points, inside = np.concatenate(corners), np.concatenate(hearts)
    low, high = points.min((0, 1)), points.max((0, 1))
    middle, place = (low + high) / 2, np.asarray(at)
    scale = size / 2 / np.sqrt(((points - middle) ** 2).sum(-1).max())
    points, inside = (_turned((p - middle) * scale, turn) + place for p in (points, inside))
    normals = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    length = np.sqrt((normals**2).sum(1))
    real = length > 1e-12  # the tip of a cone has triangles without area
    points, inside, normals = points[real], inside[real], normals[real] / length[real, None]
    inward = (normals * (points.mean(1) - inside)).sum(1) < 0
    normals[inward] *= -1
    return Mesh(points, normals, np.concatenate(colors)[real])


def _turned(points: Floats, degrees: float) -> Floats:
    """Rotate points (..., 3) counter-clockwise about the vertical."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y, z = (points[..., i] for i in range(3))
    return np.stack([c * x - s * y, s * x + c * y, z], axis=-1)


@cache
def _faces(m: int, k: int) -> tuple[Ints, Ints]:
    """Triangles (T, 3) as positions in a stack of m rings of k corners, and their lower rings (T,).

    A triangle lies on the outside of the slab between its lower ring and the next one.
    """
    i, j = np.divmod(np.arange((m - 1) * k), k)
    a, b = i * k + j, i * k + (j + 1) % k
    c = np.arange(1, k - 1)
    cap = np.stack([np.zeros_like(c), c, c + 1], axis=1)
    parts = [np.stack([a, b, b + k], 1), np.stack([a, b + k, a + k], 1), cap, cap + (m - 1) * k]
    slabs = [i, i, np.zeros_like(c), np.full_like(c, m - 2)]
    return np.concatenate(parts), np.concatenate(slabs)


def _lit(mesh: Mesh, light: Light) -> Bytes:
    """Colors (F, 3) in bytes of diffuse faces."""
    sun = np.array(light.direction)
    cosine = (mesh.normals * sun).sum(1) / np.sqrt((sun**2).sum())
    bright = light.ambient + np.where(cosine > 0, light.sun, -light.back) * cosine
    return np.asarray(np.round(255 * (mesh.colors * bright[:, None]).clip(0, 1)), np.uint8)


def _project(mesh: Mesh, azimuths: Floats, camera: Camera) -> tuple[Floats, NDArray[np.bool_]]:
    """Project corners to the picture, (V, F, 3, 3), and flag faces towards the camera, (V, F).

    Coordinates are x to the right and y down in [0, 1], and inverse depth.
    """
    e = np.arctan(camera.rise)
    sin, cos, zero = np.sin(azimuths), np.cos(azimuths), np.zeros(len(azimuths))
    c = np.stack([sin * np.cos(e), cos * np.cos(e), zero + np.sin(e)], axis=1)
    r = np.stack([-cos, sin, zero], axis=1)
    frame = np.stack([r, np.cross(c, r), c], axis=1)  # (V, 3, 3): right, up, towards the camera
    # explicit sums of products: a matrix product may round differently on other machines
    seen = sum(mesh.corners[..., i, None] * frame[:, None, None, :, i] for i in range(3))
    assert isinstance(seen, np.ndarray)
    inverse = 1 / (camera.distance - seen[..., 2])
    x = 0.5 + camera.focal * seen[..., 0] * inverse
    y = 0.5 - camera.focal * seen[..., 1] * inverse
    towards = camera.distance * c[:, None] - mesh.corners[:, 0]  # (V, F, 3)
    return np.stack([x, y, inverse], axis=-1), (towards * mesh.normals).sum(-1) > 0


def _fill(triangles: Floats, view: Ints, V: int, S: int) -> Ints:
    """Number of the nearest triangle (V, S, S), counted from 1; 0 if there is none.

    triangles (T, 3, 3): x and y of the corners in samples, inverse depth; view (T,).
    """
    by_y = np.take_along_axis(triangles, triangles[:, :, 1].argsort(1)[:, :, None], axis=1)
    x, y, w = by_y.transpose(2, 1, 0)  # each (3, T): upper, middle and lower corner
    start, end = [0, 0, 1], [2, 1, 2]  # edges (3, T): the long one, the two short ones
    run = y[end] - y[start]
    lean = (x[end] - x[start]) / np.where(run > 0, run, 1.0)  # of an edge, per row
    area = (x[1] - x[0]) * run[0] - (x[2] - x[0]) * run[1]
    slope = ((w[1] - w[0]) * run[0] - (w[2] - w[0]) * run[1]) / np.where(area == 0, np.inf, area)
    fall = (w[2] - w[0]) / np.where(run[0] > 0, run[0], 1.0)  # of inverse depth down the long edge

    t, row, _ = _ranges(*(_first(y[i], S) for i in (0, 2)))
    at = row + 0.5
    short = np.where(at < y[1][t], 1, 2) * len(triangles) + t
    xa = x[0][t] + lean[0][t] * (at - y[0][t])  # the row enters and leaves the triangle here
    xb = x[start].ravel()[short] + lean.ravel()[short] * (at - y[start].ravel()[short])
    depth = w[0][t] + fall[t] * (at - y[0][t]) + slope[t] * (0.5 - xa)  # at column 0

    _, column, count = _ranges(_first(np.minimum(xa, xb), S), _first(np.maximum(xa, xb), S))
    inverse = np.repeat(depth, count) + np.repeat(slope[t], count) * column
    key = (inverse * 2.0**40).astype(np.int64) * NUMBERS + np.repeat(t + 1, count)
    buffer = np.zeros(V * S * S, np.int64)
    np.maximum.at(buffer, np.repeat((view[t] * S + row) * S, count) + column, key)
    return (buffer & (NUMBERS - 1)).reshape(V, S, S)


def _first(edge: Floats, S: int) -> Ints:
    """First sample whose center is not before the edge; S if there is none."""
    return np.ceil(edge - 0.5).clip(0, S).astype(np.int64)


def _ranges(first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """Numbers first[i], ..., last[i] - 1 for each i: repeated i, the numbers, and their counts."""
    count = (last - first).clip(0)
    i = np.repeat(np.arange(len(count)), count)
    skipped = np.cumsum(count) - count
    return i, np.arange(len(i)) + np.repeat(first - skipped, count), count
