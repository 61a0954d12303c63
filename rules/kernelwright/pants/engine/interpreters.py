"""The Python of this machine that pip works for: Pants would use its own, which may be too old for a package."""

from __future__ import annotations

import shlex
from typing import Sequence

from kernelwright.pants.engine.exit_codes import BadInput

# Exit code of a shell script if the command of ``finding`` prints nothing.
_NO_INTERPRETER = 85


def finding(pex: Sequence[str], constraints: Sequence[str]) -> str:
    """Return a shell command that prints the interpreters that satisfy ``constraints``, best first.

    ``pex`` is a command line of pex, which starts with its interpreter and its file and names a search path.
    """
    search_path = pex[pex.index("--python-path") + 1]
    find = (*pex[:2], "interpreter", "inspect", "--python-path", search_path)
    find += tuple(f"--interpreter-constraint={constraint}" for constraint in constraints)
    return f"PEX_SCRIPT=pex3 {shlex.join(find)}"


def check_found(exit_code: int, needs: str, constraints: Sequence[str]) -> None:
    """Raise BadInput if no Python satisfies the constraints of ``needs``."""
    if exit_code == _NO_INTERPRETER:
        wanted = " or ".join(constraints)
        raise BadInput(f"{needs} needs {wanted}; add such a Python to [python-bootstrap].search_path")
