// Random problems whose extents, strides, dilations, paddings and groups reach to 2^62.
//
// A problem starts small and dense; some of its numbers are then replaced. So many problems are valid though one or two
// of their numbers are extreme, and others are wrong in one place.
#ifndef KERNELWRIGHT_TESTS_BOUNDS_PROBLEMS_HPP
#define KERNELWRIGHT_TESTS_BOUNDS_PROBLEMS_HPP

#include <string.h>

#include <vector>

#include "kernelwright/attention.h"
#include "kernelwright/convolution.h"
#include "kernelwright/gemm.h"
#include "kernelwright/widths.h"

namespace bounds {

// splitmix64
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  int64_t below(int64_t count) { return static_cast<int64_t>(next() % static_cast<uint64_t>(count)); }
  bool one_in(int64_t count) { return below(count) == 0; }

  // Near a power of two, most often near those of 31 and 32 bits; what is below the least is the least.
  int64_t wild(int64_t least) {
    const int64_t near = below(5) - 2;
    const int64_t power = one_in(3) ? 30 + below(4) : below(one_in(4) ? 63 : 42);
    const int64_t value = (int64_t{1} << power) + near;
    return value < least ? least : value;
  }
  // A distance in memory that sparse operands can have: up to 2^34 elements, most often near 2^31 and 2^32.
  int64_t far(int64_t least) {
    const int64_t value = (int64_t{1} << (one_in(2) ? 30 + below(4) : 8 + below(27))) + below(5) - 2;
    return value < least ? least : value;
  }
  int64_t small(int64_t least) { return least + (one_in(8) ? below(300) : below(9)); }
};

// An array of any dtype: distances of dense lines, KW_TOO_LARGE cut to what a field can hold.
inline int64_t dense(int64_t a, int64_t b) {
  const int64_t product = kw_mul(a > 0 ? a : 1, b > 0 ? b : 1);
  return product == KW_TOO_LARGE ? int64_t{1} << 62 : product;
}

inline void spoil(Random& r, std::vector<int64_t*> fields, int64_t least) {
  for (int64_t count = r.below(4); count > 0; --count) {
    *fields[static_cast<size_t>(r.below(static_cast<int64_t>(fields.size())))] = r.wild(least);
  }
}

inline uint32_t some_dtype(Random& r, uint32_t usual) {
  return r.one_in(12) ? static_cast<uint32_t>(1 + r.below(7)) : usual;
}

inline kw_gemm_problem gemm(Random& r, uint32_t dtype) {
  kw_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = some_dtype(r, dtype);
  p.dtype_acc = KW_FP32;
  p.layout_a = static_cast<uint32_t>(r.below(2)), p.layout_b = static_cast<uint32_t>(r.below(2));
  if (dtype == KW_FP16) p.layout_a = KW_ROW_MAJOR, p.layout_b = KW_COL_MAJOR;  // those of the kernels
  const int64_t step = dtype == KW_FP16 && !r.one_in(4) ? 8 : 1;
  p.m = r.small(0) * step, p.n = r.small(0) * step, p.k = r.small(0) * step, p.batch = r.one_in(3) ? r.small(1) : 1;
  const bool sparse = r.one_in(3);  // small, but far apart in memory: problems that are executed
  if (!sparse) spoil(r, {&p.m, &p.n, &p.k, &p.batch}, r.below(3) == 0);
  const auto matrix = [&](uint32_t layout, int64_t rows, int64_t columns, int64_t* ld, int64_t* stride) {
    *ld = dense(layout == KW_ROW_MAJOR ? columns : rows, 1) + step * (r.one_in(3) ? r.below(3) : 0);
    if (sparse && r.one_in(2)) *ld = r.far(*ld) / step * step + step;
    *stride = dense(layout == KW_ROW_MAJOR ? rows : columns, *ld);
  };
  matrix(p.layout_a, p.m, p.k, &p.lda, &p.stride_a);
  matrix(p.layout_b, p.k, p.n, &p.ldb, &p.stride_b);
  matrix(p.layout_c, p.m, p.n, &p.ldc, &p.stride_c);
  if (r.one_in(4)) p.num_d = 2, p.activation = KW_ACTIVATION_RELU;
  for (uint32_t i = 0; i < p.num_d; ++i) matrix(p.layout_c, p.m, p.n, &p.ld_multi_d[i], &p.stride_multi_d[i]);
  if (!sparse && r.one_in(2))
    spoil(r, {&p.lda, &p.ldb, &p.ldc, &p.stride_a, &p.stride_b, &p.stride_c, &p.ld_multi_d[0]}, 0);
  p.alpha = 1, p.beta = r.one_in(3) ? 1 : 0;
  p.split_k = sparse || r.one_in(2) ? 0 : r.one_in(4) ? static_cast<uint32_t>(r.next()) : 1;
  return p;
}

// The groups live in `held`.
inline kw_grouped_gemm_problem grouped(Random& r, uint32_t dtype, std::vector<kw_gemm_group>* held) {
  const kw_gemm_problem first = gemm(r, dtype);
  held->clear();
  for (int64_t i = r.below(5); i >= 0; --i) {
    Random other = {r.next()};
    const kw_gemm_problem one = gemm(other, dtype);
    held->push_back({one.m, one.n, one.k, one.lda, one.ldb, one.ldc});
  }
  kw_grouped_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GROUPED_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = dtype, p.dtype_acc = KW_FP32;
  p.layout_a = first.layout_a, p.layout_b = first.layout_b;
  if (dtype == KW_FP32) p.layout_a = KW_ROW_MAJOR, p.layout_b = KW_COL_MAJOR;
  p.group_count = static_cast<int64_t>(held->size()), p.groups = held->data(), p.alpha = 1;
  return p;
}

// With a gap behind each point, line or plane where `gap` is its dimension.
inline void dense_image(int64_t* to, uint32_t layout, int64_t channels, const int64_t* extent, int64_t gap, Random& r) {
  int64_t next = layout == KW_CONV_NGCHW ? 1 : dense(channels, 1);
  for (int dim = 2; dim >= 0; --dim) {
    if (gap == dim && (dim < 2 || layout != KW_CONV_NGCHW)) next = r.far(next);
    to[2 + dim] = next, next = dense(next, extent[dim]);
  }
  to[1] = layout == KW_CONV_NGCHW ? next : 1;
  to[0] = layout == KW_CONV_NGCHW ? dense(next, channels) : next;
}

// Output points, or 1 where there is no such number.
inline int64_t outputs(const kw_conv_problem& p, int dim) {
  const int64_t padded = kw_add(p.extent[dim], kw_add(p.pad_left[dim], p.pad_right[dim]));
  const int64_t reach = kw_mul(p.dilation[dim], p.filter[dim] - 1);
  return padded == KW_TOO_LARGE || reach >= padded || p.stride[dim] < 1 ? 1 : (padded - reach - 1) / p.stride[dim] + 1;
}

inline kw_conv_problem convolution(Random& r, uint32_t op, uint32_t dtype) {
  kw_conv_problem p = {};
  p.base = {sizeof p, op};
  p.dtype_x = p.dtype_w = p.dtype_y = some_dtype(r, dtype);
  p.dtype_acc = KW_FP32;
  p.layout = r.one_in(6) ? uint32_t{KW_CONV_NGCHW} : static_cast<uint32_t>(r.below(3));
  p.groups = r.one_in(3) ? r.small(1) : 1;
  const int64_t step = dtype == KW_FP16 && !r.one_in(3) ? 8 : 1;
  int64_t c = r.one_in(4) ? 1 : r.small(1) * step, k = r.one_in(4) ? 1 : r.small(1) * step;
  p.n = r.small(r.one_in(8) ? 0 : 1);
  const bool sparse = r.one_in(3);  // as of GEMM
  if (!sparse) spoil(r, {&p.groups, &c, &k, &p.n}, 1);
  p.c = dense(p.groups, c), p.k = dense(p.groups, k);
  for (int dim = 0; dim < 3; ++dim) p.extent[dim] = p.filter[dim] = p.stride[dim] = p.dilation[dim] = 1;
  const int first = p.layout == KW_CONV_NGCHW ? 1 : 2 - static_cast<int>(p.layout);
  for (int dim = first; dim < 3; ++dim) {
    p.filter[dim] = 1 + r.below(4), p.stride[dim] = 1 + r.below(3), p.dilation[dim] = 1 + r.below(2);
    p.extent[dim] = 8 + r.small(0), p.pad_left[dim] = r.below(3), p.pad_right[dim] = r.below(3);
  }
  const int dim = first + static_cast<int>(r.below(3 - first));
  if (sparse) {
    if (r.one_in(2)) p.stride[dim] = r.wild(1);
    if (r.one_in(3)) p.filter[dim] = 1, p.dilation[dim] = r.wild(1);
  } else {
    spoil(r, {&p.extent[dim], &p.stride[dim], &p.dilation[dim], &p.pad_left[dim], &p.pad_right[dim], &p.filter[dim]},
          1);
    if (r.one_in(3)) p.stride[2] = r.wild(1), p.dilation[2] = r.wild(1);
  }
  if (r.one_in(2)) {  // what a filter reaches must lie in the image
    for (int i = first; i < 3; ++i) {
      const int64_t reach = kw_mul(p.dilation[i], p.filter[i] - 1);
      if (reach < INT64_C(1) << 61 && reach >= p.extent[i]) p.extent[i] = reach + 1 + r.below(3);
    }
  }
  int64_t out[3];
  for (int i = 0; i < 3; ++i) out[i] = outputs(p, i);
  dense_image(p.stride_x, p.layout, p.c, p.extent, sparse ? r.below(4) : 3, r);
  dense_image(p.stride_y, p.layout, p.k, out, sparse ? r.below(4) : 3, r);
  if (!sparse && r.one_in(3))
    spoil(r, {&p.stride_x[0], &p.stride_x[3], &p.stride_x[4], &p.stride_y[0], &p.stride_y[3]}, 0);
  p.split_k = op != KW_OP_CONV_BACKWARD_WEIGHT ? 1 : sparse || r.one_in(2) ? 0 : static_cast<uint32_t>(r.wild(1));
  p.alpha = 1, p.beta = r.one_in(4) ? 1 : 0;
  return p;
}

inline kw_attention_strides dense_rows(Random& r, int64_t heads, int64_t rows, int64_t hdim, bool group) {
  kw_attention_strides s = {};
  s.row = dense(heads, hdim), s.head = dense(hdim, 1), s.request = group ? 0 : dense(rows, s.row);
  if (r.one_in(16)) *(&s.request + r.below(3)) = r.wild(0);
  return s;
}

inline kw_attention_problem attention(Random& r, uint32_t op, uint32_t dtype) {
  kw_attention_problem p = {};
  p.base = {sizeof p, op};
  p.version = KW_ATTENTION_VERSION;
  p.dtype_q = p.dtype_kv = p.dtype_o = some_dtype(r, dtype);
  const bool backward = op == KW_OP_ATTENTION_BACKWARD;
  p.group = r.one_in(3) ? 1 : 0;
  p.batch = r.small(0), p.heads_kv = r.small(1);
  int64_t ratio = 1 + r.below(4);
  p.hdim_q = 8 * (1 + r.below(16)), p.hdim_v = r.one_in(2) ? p.hdim_q : 8 * (1 + r.below(16));
  p.max_seqlen_q = r.small(0), p.max_seqlen_k = r.small(0);
  spoil(r, {&p.batch, &p.heads_kv, &ratio, &p.max_seqlen_q, &p.max_seqlen_k}, r.below(2));
  if (r.one_in(8)) p.hdim_q = p.hdim_v = r.wild(1);
  p.heads_q = dense(p.heads_kv, ratio);
  if (p.group != 0) {
    p.total_q = kw_mul(p.batch, p.max_seqlen_q), p.total_k = kw_mul(p.batch, p.max_seqlen_k);
    if (p.total_q == KW_TOO_LARGE || r.one_in(3)) p.total_q = p.batch > 0 ? p.max_seqlen_q : 0;
    if (p.total_k == KW_TOO_LARGE || r.one_in(3)) p.total_k = p.batch > 0 ? p.max_seqlen_k : 0;
  }
  p.window_left = p.window_right = -1;
  if (r.one_in(2)) {
    p.mask = 1 + static_cast<uint32_t>(r.below(2)), p.window_right = 0;
    if (r.one_in(3)) p.window_left = r.wild(0), p.window_right = r.wild(0);
  }
  if (r.one_in(4)) p.bias = KW_BIAS_ELEMENTWISE, p.dtype_bias = dtype;
  if (r.one_in(6)) p.bias = KW_BIAS_ALIBI, p.dtype_bias = 0, p.slopes_stride = r.one_in(2) ? p.heads_q : r.wild(0);
  p.num_splits = 1;
  int64_t rows_k = p.group != 0 ? p.total_k : p.max_seqlen_k;
  if (!backward) {
    p.lse = static_cast<uint32_t>(r.below(2));
    p.num_splits = r.one_in(2) ? 0 : r.one_in(3) ? static_cast<uint32_t>(r.next()) : 1;
    if (r.one_in(3)) {  // pages
      p.page_table = 1 + static_cast<uint32_t>(r.below(2)), p.kv_lengths = p.page_table == KW_PAGES_BLOCK ? 1 : 0;
      p.total_k = 0, p.page_size = 8 * (1 + r.below(16)), p.pages = r.small(0);
      spoil(r, {&p.page_size, &p.pages}, 1);
      p.page_table_stride = kw_parts(p.max_seqlen_k, p.page_size) + (r.one_in(3) ? r.below(3) : 0);
      if (p.page_table == KW_PAGES_LIST) p.page_table_stride = 0;
      if (p.page_table == KW_PAGES_BLOCK && r.one_in(4)) p.page_table_stride = r.wild(0);
      rows_k = p.page_size;
    } else if (r.one_in(4)) {
      p.kv_lengths = 1;
    }
  }
  if (r.one_in(6)) p.dropout = 1, p.dropout_p = 0.5;
  if (backward && r.one_in(3)) p.deterministic = 1;
  const bool group = p.group != 0;
  const int64_t rows = group ? p.total_q : p.max_seqlen_q;
  p.q = dense_rows(r, p.heads_q, rows, p.hdim_q, group), p.o = dense_rows(r, p.heads_q, rows, p.hdim_v, group);
  p.k = dense_rows(r, p.heads_kv, rows_k, p.hdim_q, group && p.page_table == 0);
  p.v = dense_rows(r, p.heads_kv, rows_k, p.hdim_v, group && p.page_table == 0);
  if (p.bias == KW_BIAS_ELEMENTWISE && r.one_in(2)) p.bias_strides.row = dense(p.max_seqlen_k, 1);
  if (backward) {
    p.d_o = p.o, p.dq = p.q;
    p.dk = dense_rows(r, p.heads_kv, rows_k, p.hdim_q, group),
    p.dv = dense_rows(r, p.heads_kv, rows_k, p.hdim_v, group);
    if (p.bias == KW_BIAS_ELEMENTWISE && r.one_in(2)) {
      p.dbias = 1;
      p.dbias_strides.row = dense(p.max_seqlen_k, 1), p.dbias_strides.head = dense(rows, p.max_seqlen_k);
      p.dbias_strides.request = group ? 0 : dense(p.heads_q, p.dbias_strides.head);
    }
  }
  p.scale = 0.125;
  return p;
}

inline kw_append_problem append(Random& r, uint32_t dtype) {
  kw_append_problem p = {};
  p.base = {sizeof p, KW_OP_ATTENTION_APPEND};
  p.version = KW_ATTENTION_VERSION;
  p.dtype = some_dtype(r, dtype);
  p.batch = r.small(0), p.heads_kv = r.small(1), p.hdim_q = p.hdim_v = 8 * (1 + r.below(16));
  p.seqlen_new = r.small(0), p.capacity = p.seqlen_new + r.small(0);
  spoil(r, {&p.batch, &p.heads_kv, &p.seqlen_new, &p.capacity}, 0);
  if (p.capacity < p.seqlen_new) p.capacity = p.seqlen_new;
  if (r.one_in(2)) {
    p.rope = 1 + static_cast<uint32_t>(r.below(2)), p.dtype_rotary = dtype, p.rotary_dim = p.hdim_q;
    p.rotary_places = p.capacity, p.rotates_q = static_cast<uint32_t>(r.below(2));
    if (p.rotates_q != 0) p.heads_q = dense(p.heads_kv, 1 + r.below(3)), p.seqlen_q = p.seqlen_new;
    if (r.one_in(4)) p.rotary_places = r.wild(0);
    if (p.rotates_q != 0 && r.one_in(4)) p.seqlen_q = r.wild(0);
  }
  int64_t rows = p.capacity;
  if (r.one_in(2)) {
    p.page_table = KW_PAGES_BLOCK, p.page_size = 8 * (1 + r.below(16)), p.pages = r.small(1);
    spoil(r, {&p.page_size, &p.pages}, 1);
    p.page_table_stride = kw_parts(p.capacity, p.page_size) + (r.one_in(4) ? r.wild(0) : 0);
    if (p.page_table_stride < 0) p.page_table_stride = INT64_MAX;
    rows = p.page_size;
  }
  p.q = p.q_out = dense_rows(r, p.heads_q, p.seqlen_q, p.hdim_q, false);
  p.k = dense_rows(r, p.heads_kv, p.seqlen_new, p.hdim_q, false);
  p.v = dense_rows(r, p.heads_kv, p.seqlen_new, p.hdim_v, false);
  p.k_cache = dense_rows(r, p.heads_kv, rows, p.hdim_q, false);
  p.v_cache = dense_rows(r, p.heads_kv, rows, p.hdim_v, false);
  return p;
}

// A problem of any operation.
struct DrawnProblem {
  union {
    kw_problem base;
    kw_gemm_problem gemm;
    kw_grouped_gemm_problem grouped;
    kw_conv_problem conv;
    kw_attention_problem attention;
    kw_append_problem append;
  };
  std::vector<kw_gemm_group> groups;
  DrawnProblem() : attention() {}
};

inline constexpr const char* kOperations[] = {"gemm",        "grouped gemm", "conv forward",       "conv data",
                                              "conv weight", "attention",    "attention backward", "append"};
inline constexpr int64_t kOperationCount = sizeof kOperations / sizeof *kOperations;

// The problem of a seed; `kind` is an index of kOperations.
inline void draw(uint64_t seed, int64_t kind, uint32_t dtype, DrawnProblem* to) {
  Random r = {seed};
  switch (kind) {
    case 0:
      to->gemm = gemm(r, dtype);
      return;
    case 1:
      to->grouped = grouped(r, dtype, &to->groups);
      return;
    case 2:
    case 3:
    case 4:
      to->conv = convolution(r, static_cast<uint32_t>(KW_OP_CONV_FORWARD + kind - 2), dtype);
      return;
    case 5:
    case 6:
      to->attention = attention(r, kind == 5 ? KW_OP_ATTENTION : KW_OP_ATTENTION_BACKWARD, dtype);
      return;
    default:
      to->append = append(r, dtype);
  }
}

}  // namespace bounds

#endif  // KERNELWRIGHT_TESTS_BOUNDS_PROBLEMS_HPP
