"""What the pinned CK Tile cannot build of convolution, or builds wrongly."""

from kernelwright.codegen.violations import Rule

RULES: tuple[Rule, ...] = ()
