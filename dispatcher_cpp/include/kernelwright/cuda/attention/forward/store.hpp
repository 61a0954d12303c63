// What a forward kernel leaves of a tile, from the threads that hold it.
#pragma once

#include "kernelwright/cuda/attention/forward/flashinfer.hpp"
#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

struct output {
  void* o;
  int64_t row, head, request;  // strides of O in elements
  int32_t hdim;                // a multiple of 8, at most that of the kernel
  float* lse;                  // or null
  int64_t lse_head, lse_request;

  CUTLASS_DEVICE float* lse_of(tile const& t) const {
    return lse + t.request * lse_request + t.head * lse_head + t.q.start;
  }

  // Of a tile whose queries see no key: O = 0, and LSE is that of the sink, or -inf.
  template <class Element, int M, int Threads>
  CUTLASS_DEVICE void store_nothing(tile const& t, int thread, float sink) const {
    constexpr int vector = 16 / sizeof(Element);
    const int vectors = hdim / vector, first = t.index * M, count = cutlass::fast_min(M, t.q.count - first);
    auto* const to =
        static_cast<Element*>(o) + t.request * request + t.head * head + (int64_t(t.q.start) + first) * row;
    for (int i = thread; i < count * vectors; i += Threads) {
      *reinterpret_cast<uint4*>(to + i / vectors * row + i % vectors * vector) = uint4{};
    }
    if (lse == nullptr) return;
    for (int i = thread; i < count; i += Threads) lse_of(t)[first + i] = sink;
  }

  // O and LSE of the rows of this thread; `sums` is what wgmma leaves, LSE of a row is in each thread of its quad. O
  // goes out of registers, so that no group of warps waits for another one, nor for room in shared memory.
  template <class Element, int M, int HDim, class Sums, class Lse>
  CUTLASS_DEVICE void store(Sums const& sums, Lse const& values, int thread, tile const& t) const {
    const int in_quad = thread % 4, first = t.index * M + thread / 32 * 16 + thread % 32 / 4;
    auto* const to = static_cast<Element*>(o) + t.request * request + t.head * head +
                     (int64_t(t.q.start) + first) * row + 8 * in_quad;
    using plain = std::conditional_t<cute::is_same_v<Element, cutlass::bfloat16_t>, bfloat16, half>;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < rows_of_thread; ++i) {
      const int row_of = first + 8 * i;
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < HDim / 8; j += 4) {
        uint32_t x[4];
        CUTLASS_PRAGMA_UNROLL
        for (int k = 0; k < 4; ++k) {  // the columns 8 (j + k) + 2 in_quad and the next one
          const int at = 4 * (j + k) + 2 * i;
          x[k] = pair_of<plain>(sums(at), sums(at + 1));
        }
        transpose_in_quad(x, in_quad);
        if (row_of < t.q.count && 8 * (j + in_quad) < hdim) store_16_bytes(to + 8 * i * row + 8 * j, x);
      }
      if (lse != nullptr && in_quad == 0 && row_of < t.q.count) lse_of(t)[row_of] = values(i);
    }
  }

 private:
  static constexpr int rows_of_thread = 2;

  // Of four words in each of four threads: thread i gets the i-th of all of them, in the order of threads.
  CUTLASS_DEVICE static void transpose_in_quad(uint32_t (&x)[4], int in_quad) {
    exchange(x[0], x[1], in_quad % 2, 1), exchange(x[2], x[3], in_quad % 2, 1);
    exchange(x[0], x[2], in_quad / 2, 2), exchange(x[1], x[3], in_quad / 2, 2);
  }

  // The thread without `upper` gives its second word for the first word of the one with it.
  CUTLASS_DEVICE static void exchange(uint32_t& first, uint32_t& second, bool upper, int distance) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? first : second, distance);
    if (upper) {
      first = got;
    } else {
      second = got;
    }
  }
};

}  // namespace kernelwright::cuda::attention
