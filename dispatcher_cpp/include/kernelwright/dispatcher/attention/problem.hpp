// Attention as operations of the dispatcher: what the files of src/operations/attention call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP

#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/operation.hpp"

namespace kernelwright {

extern const Operation kAttention, kAttentionBackward, kAttentionPart, kAttentionCombine, kAttentionAppend,
    kAttentionDot, kAttentionDqDkDv, kAttentionConvertDq;

inline const kw_attention_problem& as_attention(const kw_problem& problem) {
  return reinterpret_cast<const kw_attention_problem&>(problem);
}
inline const kw_append_problem& as_append(const kw_problem& problem) {
  return reinterpret_cast<const kw_append_problem&>(problem);
}
inline const kw_attention_traits& attention_traits(const kw_kernel& kernel) {
  return *static_cast<const kw_attention_traits*>(kernel.traits);
}

// leaves_splits and dq_slices of a stage for which no kernel is chosen yet. Kernels never see them.
constexpr uint32_t kSplitsOpen = 2;
constexpr uint32_t kDqOpen = UINT32_MAX;

inline bool is_backward(uint32_t op) { return op == KW_OP_ATTENTION_BACKWARD || op >= KW_OP_ATTENTION_DOT; }

kw_status validate_attention(const kw_problem& problem);
kw_status validate_append(const kw_problem& problem);
// Null pointers that the problem needs; problem is valid.
kw_status validate_attention_args(const kw_problem& problem, const void* args);
kw_status validate_append_args(const kw_problem& problem, const void* args);

// What validate_attention and validate_append share; `what` begins the sentence.
kw_status check_most(const char* what, const char* field, uint32_t value, uint32_t most);
kw_status check_least(const char* what, const char* field, int64_t value, int64_t least);
kw_status check_dtype(const char* what, const char* field, uint32_t dtype);
struct AttentionTensor {
  const char* name;
  kw_attention_strides strides;
  int64_t requests, heads, rows, hdim;
  bool written;
};
kw_status check_attention_tensor(const char* what, const AttentionTensor& tensor);
kw_status check_pages(const char* what, int64_t pages, int64_t page_size, int64_t page_table_stride, uint32_t table,
                      uint32_t layout, int64_t longest);

void describe_attention(const kw_problem& problem, Text* text);
void attention_json(const kw_problem& problem, Text* text);
void describe_append(const kw_problem& problem, Text* text);
void append_json(const kw_problem& problem, Text* text);

// The most splits whose blocks all run at once: 0 where there are more blocks without any.
uint32_t splits_that_fill(const kw_attention_traits& traits, const kw_attention_problem& problem, const Place& place);

// Predicts the time of a kernel from the architecture's numbers.
//
// A forward kernel cuts queries into tiles of tile_m0 (of all heads that share K and V where packs_heads), and keys
// into num_splits parts of whole tiles of tile_n0. b = tiles * splits blocks run in w = ceil(b / units) waves, of which
// each block multiplies 2 tile_m0 keys (hdim_q + hdim_v), counted with the kernel's own head dimensions, times the part
// of the keys that the mask lets through. Each block reads its K and V at 48 bytes per clock (gemm/analytic.hpp),
// memory gives all of Q, K, V and O once; the launch takes the longest of the three, on a CPU compute + memory. So few
// blocks are slow however short their rows are, which is what splits are for: these pass through memory twice in 4
// bytes and cost a second launch of 4 us. A kernel for more masks than a problem needs takes 5 % longer.
//
// On NVIDIA GPUs this was fitted to times of an H200 (docs/benchmarks.md): a query and a key take
// 1.12 (hdim_q + hdim_v) + 110 products at the peak rate, + 87 in tiles of more than 128 rows; each tile 2 us more, the
// keys that it reads are counted in whole tiles, and with a mask or in group mode units take tiles one by one instead
// of in waves. A kernel that packs heads, whose blocks read keys of their own, takes waves of
//   2.5 us + max(clocks of a block by itself, clocks of those that share a unit, bytes at 93 % of the bandwidth)
// with 11.7 + bytes / 28 and 4.8 + bytes / 32 clocks for each key, 2 us for its launch, and 6 us + 0.18 us for each
// split to combine them.
//
// Gradients multiply 2 pairs (3 hdim_q + 2 hdim_v) in blocks of tile_n0 keys that walk over all queries, times
// work_percent; sums of dQ that are left pass through memory twice. The other stages and append move bytes only.
//
// Lengths of requests are on the device; an estimate takes the mean of queries, total_q / batch, and of keys
// total_k / batch, or max_seqlen_k where there is no total. Only what is said to be was fitted to measured times.
Estimate estimate_attention(const kw_kernel& kernel, const kw_problem& problem, const Place& place);
Estimate estimate_append(const kw_kernel& kernel, const kw_problem& problem, const Place& place);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP
