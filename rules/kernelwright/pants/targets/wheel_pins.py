"""``wheel_pins``: requirements files that pin a wheel of this workspace."""

from __future__ import annotations

from pants.engine.target import COMMON_TARGET_FIELDS, Dependencies, MultipleSourcesField, StringField, Target
from pants.util.strutil import help_text


class PinnedWheelField(StringField):
    alias = "wheel"
    required = True
    help = "The `python_wheel` to pin."


class PinnedRequirementsField(MultipleSourcesField):
    alias = "requirements"
    required = True
    expected_file_extensions = (".txt",)
    help = "Hash-pinned requirements files."


class WheelPinsTarget(Target):
    alias = "wheel_pins"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, PinnedWheelField, PinnedRequirementsField)
    help = help_text(
        """
        Copies of hash-pinned requirements files, `<name>/<file>`, to each of which a wheel of this workspace is added,
        pinned by its digest. Beside each is the metadata with which Pants loads it out of a Python package:
        `<name>/<file>.metadata`.
        """
    )
