// Adds up sums that were made apart, and writes the output.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_FINISH_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_FINISH_HPP

#include "kernelwright/cpu/gemm/micro/epilogue.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

template <class Operation>
void add_slice(const finish_block& f, float* to, const float* from) {
  for (int64_t i = 0; i < f.rows; ++i, to += f.ld, from += f.ld) {
    for (int64_t j = 0; j < f.cols; j += kLanes) {
      const int64_t count = f.cols - j < kLanes ? f.cols - j : kLanes;
      store_first(to + j, Operation::add_sums(load_first(to + j, count), load_first(from + j, count)), count);
    }
  }
}

template <class Operation, class Epilogue>
void finish(const finish_block& f) {
  const auto slice = [&](int64_t index) { return index == 0 ? f.sums : f.others + (index - 1) * f.slice_stride; };
  if (f.tree) {
    for (int64_t apart = 1; apart < f.slices; apart *= 2) {
      for (int64_t s = 0; s + apart < f.slices; s += 2 * apart) add_slice<Operation>(f, slice(s), slice(s + apart));
    }
  } else {
    for (int64_t s = 1; s < f.slices; ++s) add_slice<Operation>(f, f.sums, slice(s));
  }
  Epilogue::write(f.sums, f.ld, f.rows, f.cols, f.to);
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_FINISH_HPP
