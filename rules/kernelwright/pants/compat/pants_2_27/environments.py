"""Environments, whose modules moved in Pants 2.28."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


from pants.engine.environment import EnvironmentName
from pants.engine.rules import implicitly
from pants.version import PANTS_SEMVER

if PANTS_SEMVER.release >= (2, 28):
    from pants.core.environments import rules as environments  # type: ignore[import-not-found, unused-ignore]
    from pants.core.environments.target_types import (  # type: ignore[import-not-found, unused-ignore]
        RemotePlatformField,
    )
else:
    from pants.core.util_rules import environments  # type: ignore[attr-defined, no-redef, unused-ignore]
    from pants.core.util_rules.environments import (  # type: ignore[import-not-found, no-redef, unused-ignore]
        RemotePlatformField,
    )


async def environment(name: str, origin: str) -> EnvironmentName:
    """Return the environment called ``name``; ``origin`` is the option that holds the name."""
    request = environments.EnvironmentNameRequest(name, description_of_origin=origin)
    resolved: EnvironmentName = await environments.resolve_environment_name(request, **implicitly())
    return resolved


async def is_remote(environment: EnvironmentName) -> bool:
    """Whether an environment is a ``remote_environment``."""
    target = await environments.get_target_for_environment_name(environment, **implicitly())
    return bool(target.val is not None and target.val.has_field(RemotePlatformField))
