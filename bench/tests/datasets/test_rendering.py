"""Pictures are what a slow ray caster sees."""

from __future__ import annotations

import numpy as np
import pytest

from vedute_bench.shapes import rendering
from vedute_bench.shapes.rendering import Camera, Mesh, Solid, mesh_of, render

SQUARE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]) / 2
RED, BLUE = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def box(color: np.ndarray, center: tuple, size: tuple) -> Solid:
    rings = np.stack([np.column_stack([SQUARE, np.full(4, z)]) for z in (-0.5, 0.5)])
    return Solid(rings * size + center, color)


def ball(sides: int = 24) -> Solid:
    a, b = np.linspace(-np.pi / 2, np.pi / 2, 13), 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(b), np.sin(b), np.zeros(sides)], axis=1)
    return Solid(np.cos(a)[:, None, None] * ring + np.sin(a)[:, None, None] * [0, 0, 1], RED)


SCENE = [
    box(RED, (0, 0, 0), (1, 2, 0.3)),
    box(BLUE, (0.3, 0.4, 0.6), (0.2, 0.5, 1)),
    Solid(ball(7).rings + np.array([0, -0.5, 0.8]), BLUE),
]


def ray_cast(mesh: Mesh, azimuth: float, size: int, camera: Camera) -> np.ndarray:
    """Which triangle (size, size) the ray through each pixel's center meets first; -1: none."""
    a, e = np.radians(azimuth), np.arctan(camera.rise)
    c = np.array([np.sin(a) * np.cos(e), np.cos(a) * np.cos(e), np.sin(e)])
    r = np.array([-np.cos(a), np.sin(a), 0])
    u = np.cross(c, r)
    p, q, s = mesh.corners.transpose(1, 0, 2)
    out = np.full((size, size), -1)
    for i, j in np.ndindex(size, size):
        across, up = (j + 0.5) / size - 0.5, 0.5 - (i + 0.5) / size
        ray = across * r + up * u - camera.focal * c
        matrix = np.stack([q - p, s - p, np.broadcast_to(-ray, p.shape)], axis=2)
        v, w, t = np.linalg.solve(matrix, (camera.distance * c - p)[..., None])[..., 0].T
        hit = (v >= 0) & (w >= 0) & (v + w <= 1) & (t > 0)
        if hit.any():
            out[i, j] = np.where(hit, t, np.inf).argmin()
    return out


@pytest.mark.parametrize("azimuth", [-90, 17, 45])
def test_pictures_are_those_of_a_ray_caster(azimuth):
    mesh, size = mesh_of(SCENE, turn=10, size=0.9, at=(0.02, -0.03, 0.01)), 20
    seen = ray_cast(mesh, azimuth, size, Camera())
    colors = np.vstack([rendering._lit(mesh, rendering.Light()), [[255, 255, 255]]])
    image = render(mesh, [azimuth], size, samples=1)[0].transpose(1, 2, 0)
    same = (image == colors[seen]).all(-1)
    assert 0.15 < (seen >= 0).mean() < 0.7
    assert same.all()


def test_samples_are_averaged():
    mesh = mesh_of(SCENE)
    fine = render(mesh, [30], 32, samples=1)[0].astype(float)
    mean = fine.reshape(3, 16, 2, 16, 2).mean((2, 4))
    assert np.abs(render(mesh, [30], 16, samples=2)[0] - mean).max() <= 0.5


def test_normals_look_outwards():
    for solid in SCENE:
        mesh = mesh_of([solid])
        p, q, r = mesh.corners.transpose(1, 0, 2)
        area = np.sqrt((np.cross(q - p, r - p) ** 2).sum(1)) / 2
        assert (area[:, None] * mesh.normals).sum(0) == pytest.approx(0, abs=1e-12)  # closed
        assert (area * (mesh.normals * p).sum(1)).sum() > 0  # three times its volume


def test_the_front_looks_at_azimuth_zero_and_its_right_side_at_ninety():
    front, right = box(RED, (0, 0.5, 0), (1, 0.01, 1)), box(BLUE, (0.5, 0, 0), (0.01, 1, 1))
    views = render(mesh_of([front, right], size=0.6), [0, 90, 45], 32).astype(int)
    red, blue = views[:, 0] > views[:, 2] + 30, views[:, 2] > views[:, 0] + 30
    assert red[0].sum() > 5 * blue[0].sum()
    assert blue[1].sum() > 5 * red[1].sum()
    assert red[2].any(0).nonzero()[0].mean() > blue[2].any(0).nonzero()[0].mean()


def test_size_is_that_of_the_sphere_around_and_the_largest_fills_the_picture():
    mesh = mesh_of(SCENE, turn=33, size=0.7, at=(0.1, 0, 0))
    assert np.sqrt(((mesh.corners - (0.1, 0, 0)) ** 2).sum(-1)).max() == pytest.approx(0.35)
    seen, _ = rendering._project(mesh_of([ball()], size=0.969), np.radians([0, 45]), Camera())
    for low, high in ((seen[..., i].min(), seen[..., i].max()) for i in range(2)):
        assert 0 <= low < 0.01
        assert 0.99 < high <= 1


def test_light_and_shade():
    top, mesh = rendering.Light(direction=(0, 0, 1)), mesh_of([box(RED, (0, 0, 0), (1, 1, 1))])
    colors, z = rendering._lit(mesh, top)[:, 0], mesh.normals[:, 2]
    for up, bright in ((1, 0.42 + 0.62), (0, 0.42), (-1, 0.42 + 0.12)):
        assert (colors[np.isclose(z, up)] == min(255, round(255 * bright))).all()


def test_a_picture_of_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(rendering, "NUMBERS", 4)
    with pytest.raises(ValueError, match=r"visible triangles; at most 3"):
        render(mesh_of(SCENE), [0], 8)
