"""The floors of each package, lowest first. A module imports from its own floor and the floors below it, never upwards.

An entry names a module or a folder, relative to the package; the longest match counts. ``""`` is everything that
no other entry names: the modules and the public surface at the top of the package.
"""

from __future__ import annotations

LAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "arch": (("",),),
    "codegen": (
        ("dtypes", "violations", "registry", "trees", "c_text", "c_names", "inputs", "supervision"),
        ("actions", "templates"),
        ("kernel",),
        ("fields", "operation"),
        ("symbols",),
        ("toolchains", "resources", "lean", "batching", "heuristics", "formulas", "descriptions"),
        ("selecting", "backends"),
        ("folder_operation", "tiled"),
        ("operations", "planning", "packaging"),
        ("building",),
        ("interface",),
        ("",),
    ),
    "dispatch": (("",),),
    "files": (("",),),
    "jit": (("",),),
    "problems": (("",),),
    "pants": (
        ("compat.versions", "subsystems", "damaged_store", "generator_data", "pins"),
        ("compat.pants_2_17", "compat.pants_2_27"),
        ("compat",),
        ("engine", "performance"),
        ("targets",),
        ("util_rules",),
        ("goals",),
        ("contents",),
        ("",),
    ),
    "torch": (
        ("dispatchers", "activations", "schemas"),
        ("road", "prepacking"),
        ("fallback",),
        ("gradients", "inputs", "operator"),
        ("operators",),
        ("adoption",),
        ("",),
    ),
    "simulator": (
        ("errors",),
        ("code",),
        ("machine",),
        ("instructions",),
        ("checks",),
        ("counting",),
        ("run",),
        ("tools",),
        ("",),
    ),
    "tile_engine": (
        ("operation",),
        ("problems",),
        ("learning.attention", "learning.convolution", "learning.gemm"),
        ("operations",),
        ("registry",),
        ("problems.registry", "enumerating"),
        ("measuring",),
        ("results",),
        ("learning", "remembering"),
        ("report",),
        ("",),
        ("interface",),
    ),
}


def layer(package: str, module: str) -> int:
    """The floor of a module, 0 is the lowest."""
    floors = {name: floor for floor, names in enumerate(LAYERS[package]) for name in names}
    parts = module.split(".") if module else []
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in floors:
            return floors[name]
    return floors[""]
