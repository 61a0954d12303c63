"""Package indexes, whose configuration was renamed in Pants 2.32."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


from pants.engine.rules import implicitly
from pants.version import PANTS_SEMVER

if PANTS_SEMVER.release >= (2, 32):
    from pants.backend.python.util_rules.pex_requirements import (  # type: ignore[attr-defined, unused-ignore]
        ResolveConfig,
        ResolveConfigRequest,
        determine_resolve_config,
    )
else:
    from pants.backend.python.util_rules.pex_requirements import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        ResolvePexConfig as ResolveConfig,
    )
    from pants.backend.python.util_rules.pex_requirements import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        ResolvePexConfigRequest as ResolveConfigRequest,
    )
    from pants.backend.python.util_rules.pex_requirements import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        determine_resolve_pex_config as determine_resolve_config,
    )


async def python_repositories() -> ResolveConfig:
    """Return the configured sources of Python packages."""
    return await determine_resolve_config(ResolveConfigRequest(None), **implicitly())
