// Copies by TMA, barriers in shared memory, and what tells the two proxies apart.
#pragma once

#include <cuda.h>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/cutlass.h>

#include <cute/arch/copy_sm90_tma.hpp>

#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

using barrier = cutlass::arch::ClusterTransactionBarrier;

// The tensor map of rows of one operand, in boxes of `box` rows and 64 columns: element, row, head, request and c. In
// group mode, rows behind the end of a request are zeros by the two last coordinates (see forward/load.hpp).
template <class Element>
void encode_rows(CUtensorMap* map, const void* data, strides const& by, int64_t rows, int64_t heads, int64_t requests,
                 int hdim, int box, bool ends_on_device) {
  const int64_t wrapping = int64_t(1) << 34;  // times `edge`: a multiple of 2^64 bytes
  const cuuint64_t any = 0x7fff0000, bytes = sizeof(Element);
  const auto extent = [](int64_t x) { return cuuint64_t(x > 0 ? x : 1); };
  cuuint64_t extents[] = {cuuint64_t(hdim), extent(rows), extent(heads), extent(requests), 1};
  cuuint64_t apart[] = {by.row * bytes, by.head * bytes, by.request * bytes, 0};
  if (ends_on_device) {
    extents[1] = cuuint64_t(edge), extents[3] = extents[4] = any;
    apart[2] = by.row * bytes, apart[3] = (wrapping - by.row) * bytes;
  }
  const cuuint32_t boxes[] = {64, cuuint32_t(box), 1, 1, 1}, steps[] = {1, 1, 1, 1, 1};
  constexpr bool bfloat = cute::is_same_v<Element, cutlass::bfloat16_t>;
  cuTensorMapEncodeTiled(map, bfloat ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5,
                         const_cast<void*>(data), extents, apart, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// `Box` rows of all columns, 64 of them at a time.
template <int HDim, int Box>
CUTLASS_DEVICE void copy_rows(CUtensorMap const& map, uint64_t& done, char* to, int row, int head, int d, int c) {
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < HDim / 64; ++i) {
    cute::SM90_TMA_LOAD_5D::copy(&map, &done, static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL),
                                 to + i * Box * 128, i * 64, row, head, d, c);
  }
}

// Adds fp32 numbers in shared memory to memory, and waits until they were read.
CUTLASS_DEVICE void add_to_memory(float* to, uint32_t from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;\n" ::"l"(to),
      "r"(from), "r"(bytes)
      : "memory");
}
CUTLASS_DEVICE void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory"); }
CUTLASS_DEVICE void wait_until_added() { asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory"); }

// Four 8x8 matrices of 16-bit elements; every lane names a row of one of them.
CUTLASS_DEVICE void store_matrices(uint32_t row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(row), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

// The same, each stored as its transpose.
CUTLASS_DEVICE void store_transposed(uint32_t row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(row), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

}  // namespace kernelwright::cuda::attention
