"""Import every module with semantics, which fills the table of modelled instructions."""

# ruff: noqa: F401
import kernelwright.simulator.instructions.matrix.multiply
import kernelwright.simulator.instructions.memory.atomics
import kernelwright.simulator.instructions.memory.buffer
import kernelwright.simulator.instructions.memory.cache
import kernelwright.simulator.instructions.memory.flat
import kernelwright.simulator.instructions.memory.lds
import kernelwright.simulator.instructions.memory.lds_lanes
import kernelwright.simulator.instructions.memory.scalar
import kernelwright.simulator.instructions.memory.scratch
import kernelwright.simulator.instructions.scalar.binary
import kernelwright.simulator.instructions.scalar.compare
import kernelwright.simulator.instructions.scalar.control
import kernelwright.simulator.instructions.scalar.floating
import kernelwright.simulator.instructions.scalar.modes
import kernelwright.simulator.instructions.scalar.unary
import kernelwright.simulator.instructions.vector.compare
import kernelwright.simulator.instructions.vector.dual
import kernelwright.simulator.instructions.vector.exchange
import kernelwright.simulator.instructions.vector.floating.arithmetic
import kernelwright.simulator.instructions.vector.floating.convert
import kernelwright.simulator.instructions.vector.floating.extremes
import kernelwright.simulator.instructions.vector.floating.float8
import kernelwright.simulator.instructions.vector.floating.rounding
import kernelwright.simulator.instructions.vector.floating.transcendental
import kernelwright.simulator.instructions.vector.integer.arithmetic
import kernelwright.simulator.instructions.vector.integer.logic
import kernelwright.simulator.instructions.vector.integer.permute
import kernelwright.simulator.instructions.vector.integer.wide
import kernelwright.simulator.instructions.vector.lanes
import kernelwright.simulator.instructions.vector.packed.dot
import kernelwright.simulator.instructions.vector.packed.halves
import kernelwright.simulator.instructions.vector.packed.mix
