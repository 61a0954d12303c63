// Register blocks: one function for every number of rows and vectors that an edge of a matrix can leave.
#ifndef KERNELWRIGHT_CPU_COMMON_REGISTER_BLOCK_HPP
#define KERNELWRIGHT_CPU_COMMON_REGISTER_BLOCK_HPP

namespace kernelwright::cpu {
namespace {

// run[vectors - 1][rows - 1] is Multiplier::run<rows, vectors>; Multiplier has this as a friend where that is private.
template <class Multiplier, class Function, int MostVectors, int MostRows>
struct register_blocks {
  Function run[MostVectors][MostRows];

  template <int Vectors, int Rows>
  constexpr void fill() {
    run[Vectors - 1][Rows - 1] = &Multiplier::template run<Rows, Vectors>;
    if constexpr (Rows > 1) {
      fill<Vectors, Rows - 1>();
    } else if constexpr (Vectors > 1) {
      fill<Vectors - 1, MostRows>();
    }
  }
  constexpr register_blocks() : run() { fill<MostVectors, MostRows>(); }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_COMMON_REGISTER_BLOCK_HPP
