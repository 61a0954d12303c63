"""Rules, as Pants itself provides them."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


from pants.engine.rules import concurrently, goal_rule, implicitly, rule

__all__ = ["concurrently", "goal_rule", "implicitly", "rule"]
