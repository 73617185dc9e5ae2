"""Airplanes: liners, jets, fighters, gliders, and propeller airplanes."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from vedute_bench.shapes import solids as s
from vedute_bench.shapes.solids import Design, Floats, Paint, Part, Solids


def airplane(rng: Generator) -> Design:
    """Draw a fuselage, wings and a tail, with jets, propellers or no engine."""
    p = s.paint(rng)
    kind = s.pick(rng, ("liner", "liner", "jet", "fighter", "propeller", "biplane", "glider"))
    build = {"fighter": _fighter, "propeller": _propeller, "biplane": _propeller, "glider": _glider}
    solids, traits = build.get(kind, _liner)(rng, p, kind)
    return Design(solids, p.name, traits)


def _fuselage(
    rng: Generator, p: Paint, r: float, blunt: float, rise: float, flat: float = 1.0
) -> Solids:
    """Fuselage from y = -1 to 1 with a cockpit; blunt: the nose's, in [0, 1]; rise: the tail's."""
    y = np.array([-1.0, -0.55, 0.55, 0.8, 0.93, 1.0])
    z = np.array([rise, 0.25 * rise, 0, 0, -0.1 * r, -0.2 * r])
    radii = r * np.array([0.25, 0.9, 1, 0.72 + 0.2 * blunt, 0.3 + 0.4 * blunt, 0.1 * blunt])
    glass = s.ball(p.glass, (0, rng.uniform(0.6, 0.74), 0.62 * r), (0.55 * r, 0.16, 0.5 * r), 8)
    return [s.tube(p.main, s.side(y, z), radii, 12, flat), glass]


def _wing(
    color: Floats,
    root: tuple[float, float, float],
    chords: tuple[float, float],
    span: float,
    sweep: float,
    rise: float = 0.0,
    thick: float = 0.04,
) -> Solids:
    """Left and right wing from the root's mid-chord, out by `span` and back by `sweep`."""
    x, y, z = root
    c, t = chords[0] / 2, chords[1] / 2
    tip = (x + span, y - sweep, z + rise)
    near, far = s.level((0, 0), (-c, c), 0)[1:3] + root, s.level((0, 0), (-t, t), 0)[1:3] + tip
    outline = np.array([near[0], far[0], far[1], near[1]])
    rings = [outline + np.array([0, 0, z]) for z in (-thick / 2, thick / 2)]
    rings[1][1:3, 2] -= thick / 2  # thinner at the tip
    return s.both(s.loft(color, *rings))


def _tail(rng: Generator, p: Paint, r: float, z: float, size: float) -> Part:
    """Draw a fin and a tailplane, possibly a T-tail or two fins."""
    h, c, y, sweep = size * rng.uniform(0.85, 1.2), size * 0.75, -0.84, size * rng.uniform(0.2, 0.7)
    back, front = y - 0.35 * c - sweep, y + 0.1 * c - sweep  # upper edge
    fin = s.side((y + c / 2, y - c / 2, back, front), (z, z, z + h, z + h))
    color, kind = s.pick(rng, (p.main, p.second)), s.pick(rng, ("plain", "plain", "high", "twin"))
    if kind == "twin":
        aside = fin + np.array([0.9 * size, 0, 0])
        plane = _wing(p.main, (0, y, z), (0.7 * c, 0.5 * c), 0.95 * size, 0.1)
        return [*plane, *s.both(s.extrude(color, aside, (0.035, 0, 0)))], ["two fins"]
    at = (0, y - sweep, z + h) if kind == "high" else (0, y, z)
    plane = _wing(p.main, at, (0.6 * c, 0.35 * c), size * rng.uniform(0.85, 1.15), 0.6 * sweep)
    return [s.extrude(color, fin, (0.04, 0, 0)), *plane], ["a high tail"] if kind == "high" else []


def _engine(p: Paint, x: float, y: float, z: float, r: float, length: float) -> Solids:
    """Nacelles on both sides, dark inside."""
    path = [(x, y - share * length, z) for share in (1, 0.3, 0)]
    hull = s.tube(p.second, path, (0.6 * r, r, r), 10)
    return s.both(hull, s.tube(p.dark, ((x, y, z), (x, y + 0.015, z)), 0.75 * r, 10))


def _blades(p: Paint, x: float, y: float, z: float, r: float, turn: float) -> Solids:
    """A spinner with two crossed pairs of blades."""
    solids = [s.tube(p.second, ((x, y, z), (x, y + 0.1, z)), (0.07, 0.01), 8)]
    for a in (turn, turn + np.pi / 2):
        dx, dz = r * np.cos(a), r * np.sin(a)
        solids.append(s.bar(p.dark, (x - dx, y + 0.03, z - dz), (x + dx, y + 0.03, z + dz), 0.045))
    return solids


def _liner(rng: Generator, p: Paint, kind: str) -> Part:
    """Draw a liner or jet: swept wings, jets under the wings or at the tail, windows."""
    r = rng.uniform(0.10, 0.15)
    solids = _fuselage(rng, p, r, rng.uniform(0.4, 1), 0.5 * r)
    span, sweep, chord = rng.uniform(0.75, 1.1), rng.uniform(0.25, 0.6), rng.uniform(0.38, 0.5)
    z, rise = -0.5 * r, rng.uniform(0, 0.12)
    color = s.pick(rng, (p.main, p.main, p.second))
    solids += _wing(color, (0, 0.1, z), (chord, 0.16), span, sweep, rise)
    tail, traits = _tail(rng, p, r, 0.5 * r, rng.uniform(0.3, 0.42))
    row = s.box(p.glass, (0.95 * r, 0, 0.25 * r), (0.12 * r, rng.uniform(0.8, 1.2), 0.035))
    solids += [*tail, *s.both(row)]
    if kind == "jet":
        engines = _engine(p, 1.45 * r, -0.45, 0.5 * r, rng.uniform(0.05, 0.08), 0.32)
        return solids + engines, [*traits, "two engines"]
    count = 2 if s.chance(rng, 0.3) else 1
    for i in range(count):
        x = (0.32 + 0.3 * i) * span
        solids += _engine(p, x, 0.28 - sweep * x / span, z - 0.08 + rise * x / span, 0.07, 0.3)
    return solids, [*traits, "swept wings", "four engines" if count == 2 else "two engines"]


def _fighter(rng: Generator, p: Paint, kind: str) -> Part:
    """Draw a fighter: pointed, with short broad wings at the back and intakes at the sides."""
    r = rng.uniform(0.09, 0.13)
    solids = _fuselage(rng, p, r, rng.uniform(0, 0.25), 0.2 * r, rng.uniform(0.8, 1))
    span, chord = rng.uniform(0.5, 0.75), rng.uniform(0.7, 1.0)
    color = s.pick(rng, (p.main, p.main, p.second))
    solids += _wing(color, (0, -0.3, 0), (chord, 0.15), span, 0.35 * chord)
    intake = s.box(p.second, (1.1 * r, -0.05, -0.1 * r), (0.8 * r, 0.8, 1.2 * r))
    nozzle = s.tube(p.dark, ((0, -1.08, 0.1 * r), (0, -0.95, 0.1 * r)), 0.6 * r, 10)
    tail, traits = _tail(rng, p, r, 0.3 * r, rng.uniform(0.3, 0.4))
    if s.chance(rng, 0.4):
        ends = [(0.8 * span, y, -0.05) for y in (-0.6, -0.1)]
        solids += s.both(s.tube(p.metal, ends, (0.04, 0.03), 6))
    return [*solids, nozzle, *tail, *s.both(intake)], [*traits, "delta wings"]


def _propeller(rng: Generator, p: Paint, kind: str) -> Part:
    """Draw a propeller airplane: straight wings, possibly two pairs, with one or two propellers."""
    r, turn = rng.uniform(0.12, 0.17), rng.uniform(0, np.pi)
    solids = _fuselage(rng, p, r, 1.0, 0.3 * r)
    span, chord = rng.uniform(0.8, 1.1), rng.uniform(0.3, 0.42)
    color, wings = s.pick(rng, (p.main, p.main, p.second)), (chord, chord * rng.uniform(0.6, 1.0))
    high = s.chance(rng, 0.5)
    solids += _wing(color, (0, 0.3, (0.95 if high else -0.6) * r), wings, span, 0.04, 0.05)
    tail, traits = _tail(rng, p, r, 0.4 * r, rng.uniform(0.26, 0.36))
    solids += tail
    low = -1.9 * r
    for x in (0.25, -0.25):  # wheels
        solids.append(s.tube(p.dark, ((x - 0.03, 0.35, low), (x + 0.03, 0.35, low)), 0.07, 10))
        solids.append(s.bar(p.metal, (0.4 * x, 0.3, -0.6 * r), (x, 0.35, low), 0.04))
    if kind == "biplane":
        z = (-0.6 if high else 1.5) * r
        solids += _wing(color, (0, 0.3, z), wings, span, 0.04, 0.05)
        ends = ((0.6 * span, 0.3, -0.6 * r), (0.6 * span, 0.3, (0.95 if high else 1.5) * r))
        solids += s.both(s.bar(p.metal, *ends, 0.035))
        return solids + _blades(p, 0, 0.98, 0, 0.3, turn), ["four wings", *traits, "a propeller"]
    if s.chance(rng, 0.35):
        z = (0.95 if high else -0.6) * r
        for x in (-0.4 * span, 0.4 * span):
            solids.append(s.tube(p.main, ((x, 0.15, z), (x, 0.6, z)), (0.04, 0.08), 8))
            solids += _blades(p, x, 0.6, z, 0.22, turn)
        return solids, ["straight wings", *traits, "two propellers"]
    return solids + _blades(p, 0, 0.98, 0, 0.3, turn), ["straight wings", *traits, "a propeller"]


def _glider(rng: Generator, p: Paint, kind: str) -> Part:
    """Draw a slender glider with long wings."""
    r = rng.uniform(0.08, 0.11)
    solids = _fuselage(rng, p, r, 0.7, 0.6 * r)
    color = s.pick(rng, (p.main, p.main, p.second))
    span, rise = rng.uniform(1.1, 1.5), rng.uniform(0, 0.2)
    solids += _wing(color, (0, 0.3, 0.6 * r), (0.24, 0.1), span, 0.06, rise)
    tail, traits = _tail(rng, p, r, 0.6 * r, 0.28)
    return solids + tail, ["long wings", *traits]
