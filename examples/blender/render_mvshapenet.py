"""Renders a ShapeNetCore download as the dataset mvshapenet. Runs inside Blender (3.3 or later).

    blender --background --python examples/blender/render_mvshapenet.py -- ShapeNetCore.v2 OUT

Never run where vedute is developed: there is neither Blender nor ShapeNet. It follows what the MVP
paper tells: camera at (0, 1, 0.6) looking at the origin, 35 mm lens on a 32 mm sensor; a sun of
energy 10 and a weak one of 0.015 from the opposite side, no shadows; white ground; 64 x 64 pixels;
azimuths -90 to 90 in steps of 45 around the front. Writes OUT/<class>/<object>/<azimuth>.png, skips
what is there, and so goes on where it was ended. Put OUT into VEDUTE_DATA as mvshapenet.
"""

from __future__ import annotations

import sys
from math import cos, pi, radians, sin
from pathlib import Path

import bpy
from mathutils import Vector

SYNSETS = {
    "table": "04379243",
    "chair": "03001627",
    "car": "02958343",
    "airplane": "02691156",
    "rifle": "04090263",
}
AZIMUTHS = (-90, -45, 0, 45, 90)
DISTANCE, HEIGHT = 1.0, 0.6


def main(source: Path, out: Path) -> None:
    camera = stage()
    for name, synset in SYNSETS.items():
        for model in sorted((source / synset).glob("*/models/model_normalized.obj")):
            home = out / name / model.parents[1].name
            files = {azimuth: home / f"{azimuth}.png" for azimuth in AZIMUTHS}
            if all(file.is_file() for file in files.values()):
                continue
            home.mkdir(parents=True, exist_ok=True)
            parts = imported(model)
            for azimuth, file in files.items():
                place(camera, azimuth)
                bpy.context.scene.render.filepath = str(file)
                bpy.ops.render.render(write_still=True)
            for part in parts:
                bpy.data.objects.remove(part, do_unlink=True)
            bpy.ops.outliner.orphans_purge(do_recursive=True)


def stage() -> bpy.types.Object:
    """An empty scene with two suns, a white ground and a camera, which is returned."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 32
    scene.render.resolution_x = scene.render.resolution_y = 64
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"  # the loader puts white where nothing is
    scene.render.film_transparent = True
    scene.view_settings.view_transform = "Standard"
    tilt = (radians(37), 0.0, radians(107))
    for name, energy, specular, turn in (("sun", 10.0, 1.0, 0.0), ("back", 0.015, 0.0, pi)):
        light = bpy.data.lights.new(name, type="SUN")
        light.energy, light.specular_factor = energy, specular
        light.use_shadow = False
        lamp = bpy.data.objects.new(name, light)
        lamp.rotation_euler = (tilt[0] + turn, tilt[1], tilt[2])
        scene.collection.objects.link(lamp)
    lens = bpy.data.cameras.new("camera")
    lens.lens, lens.sensor_width = 35.0, 32.0
    camera = bpy.data.objects.new("camera", lens)
    scene.collection.objects.link(camera)
    scene.camera = camera
    return camera


def place(camera: bpy.types.Object, azimuth: float) -> None:
    """On its circle, looking at the origin; the front of a model looks along y after import."""
    a = radians(azimuth)
    camera.location = Vector((DISTANCE * sin(a), DISTANCE * cos(a), HEIGHT))
    camera.rotation_euler = (-camera.location).to_track_quat("-Z", "Y").to_euler()


def imported(model: Path) -> list[bpy.types.Object]:
    """The objects of a model; ShapeNet's up is y and its front is -z."""
    before = set(bpy.data.objects)
    bpy.ops.wm.obj_import(filepath=str(model), forward_axis="NEGATIVE_Z", up_axis="Y")
    return [thing for thing in bpy.data.objects if thing not in before]


if __name__ == "__main__":
    given = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if len(given) != 2:
        sys.exit("usage: blender --background --python render_mvshapenet.py -- SHAPENET OUT")
    main(Path(given[0]), Path(given[1]))
