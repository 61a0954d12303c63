// Adds up sums that were made apart, and writes the output.
#ifndef TILEWRIGHT_CPU_FINISH_HPP
#define TILEWRIGHT_CPU_FINISH_HPP

#include "tilewright/cpu/epilogue.hpp"
#include "tilewright/cpu/operation.hpp"

namespace tilewright::cpu {
namespace {

template <class Operation, class Epilogue>
void finish(const finish_block& f) {
  if (f.slices > 1) {
    for (int64_t i = 0; i < f.rows; ++i) {
      float* line = f.sums + i * f.ld;
      for (int64_t j = 0; j < f.cols; j += kLanes) {
        const int64_t count = f.cols - j < kLanes ? f.cols - j : kLanes;
        vec sum = load_first(line + j, count);
        for (int64_t s = 1; s < f.slices; ++s) {
          sum = Operation::add_sums(sum, load_first(line + s * f.slice_stride + j, count));
        }
        store_first(line + j, sum, count);
      }
    }
  }
  Epilogue::write(f.sums, f.ld, f.rows, f.cols, f.to);
}

}  // namespace
}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_FINISH_HPP
