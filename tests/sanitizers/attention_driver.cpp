// Launches CPU kernels of attention on operands that end exactly at the end of their allocation, from one and from
// several threads, and compares with sums in double: forward, split and combined, out of pages, of 8 bits, backward,
// append.
#include <math.h>

#include "driver.hpp"
#include "kernelwright/attention/checks.h"

extern "C" {
extern const kw_kernel *const forward_under_test, *const slopes_under_test, *const splits_under_test;
extern const kw_kernel *const combine_under_test, *const dot_under_test, *const convert_under_test;
extern const kw_kernel *const gradient_under_test, *const append_under_test;
extern const kw_kernel *const eight_bits_under_test, *const narrow_under_test;
}

namespace {

void require(bool condition, const char* what) { ::require(condition, "attention", what); }

// An array of exactly `count` numbers between -1 and 1; several threads make theirs.
struct Array {
  float* at;
  explicit Array(int64_t count, int64_t seed = 0) : at(static_cast<float*>(malloc(static_cast<size_t>(count) * 4))) {
    for (int64_t i = 0; i < count; ++i) at[i] = static_cast<float>((i * 7919 + seed * 104729) % 2003) / 1001.0f - 1;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(at); }
};

struct Case {
  int64_t batch, heads, kv_heads, queries, keys, hdim, hdim_v;
  uint32_t mask;
  int64_t left, right;
};

constexpr Case kCases[] = {
    {1, 2, 1, 150, 70, 33, 20, KW_MASK_BOTTOM_RIGHT, -1, 0}, {2, 4, 2, 3, 100, 16, 16, KW_MASK_NONE, -1, -1},
    {1, 8, 1, 1, 90, 64, 40, KW_MASK_BOTTOM_RIGHT, 30, 0},   {1, 1, 1, 97, 131, 7, 65, KW_MASK_TOP_LEFT, 20, 5},
    {1, 6, 2, 10, 40, 24, 24, KW_MASK_TOP_LEFT, -1, 0},
};

kw_attention_problem problem_for(const Case& c) {
  kw_attention_problem p = {};
  p.base.struct_size = sizeof p;
  p.version = KW_ATTENTION_VERSION;
  p.dtype_q = p.dtype_kv = p.dtype_o = p.dtype_bias = KW_FP32;
  p.bias = KW_BIAS_ELEMENTWISE;
  p.mask = c.mask;
  p.lse = 1;
  p.num_splits = 1;
  p.batch = c.batch;
  p.heads_q = c.heads;
  p.heads_kv = c.kv_heads;
  p.hdim_q = c.hdim;
  p.hdim_v = c.hdim_v;
  p.max_seqlen_q = c.queries;
  p.max_seqlen_k = c.keys;
  p.window_left = c.left;
  p.window_right = c.right;
  p.scale = 0.5;
  const auto dense = [](int64_t rows, int64_t heads, int64_t hdim) {
    return kw_attention_strides{rows * heads * hdim, hdim, heads * hdim};
  };
  p.q = p.dq = dense(c.queries, c.heads, c.hdim);
  p.o = p.d_o = dense(c.queries, c.heads, c.hdim_v);
  p.k = p.dk = dense(c.keys, c.kv_heads, c.hdim);
  p.v = p.dv = dense(c.keys, c.kv_heads, c.hdim_v);
  p.bias_strides = p.dbias_strides = {c.heads * c.queries * c.keys, c.queries * c.keys, c.keys};
  return p;
}

kw_status status_of(const kw_kernel* kernel, kw_attention_problem p, const kw_attention_args& args) {
  p.base.op = kernel->op;
  return launched(*kernel, &p.base, &args);
}

void launch(const kw_kernel* kernel, const kw_attention_problem& p, const kw_attention_args& args) {
  require(status_of(kernel, p, args) == KW_OK, kernel->name);
}

// More keys than the plan has room for.
void refuse(const kw_kernel* kernel, const kw_attention_problem& p, const kw_attention_args& args) {
  require(status_of(kernel, p, args) == KW_INVALID_ARGUMENT, "too many keys");
}

// Sums in double.
struct Expected {
  double *o, *lse, *dq, *dk, *dv;
  Expected(const Case& c, const Array& q, const Array& k, const Array& v, const Array& bias, const Array& d_o) {
    const auto made = [](int64_t count) { return static_cast<double*>(calloc(static_cast<size_t>(count), 8)); };
    const int64_t rows = c.batch * c.heads * c.queries, keys = c.batch * c.keys * c.kv_heads;
    o = made(rows * c.hdim_v), lse = made(rows), dq = made(rows * c.hdim), dk = made(keys * c.hdim);
    dv = made(keys * c.hdim_v);
    double* const p = made(c.keys);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = row % c.queries, h = row / c.queries % c.heads, b = row / c.queries / c.heads;
      const int64_t kv = h / (c.heads / c.kv_heads), place = i + (c.mask == KW_MASK_TOP_LEFT ? 0 : c.keys - c.queries);
      const int64_t at_q = (b * c.queries + i) * c.heads + h;
      const auto at_k = [&](int64_t j) { return (b * c.keys + j) * c.kv_heads + kv; };
      double sum = 0, d = 0;
      for (int64_t j = 0; j < c.keys; ++j) {
        double s = bias.at[row * c.keys + j];
        for (int64_t e = 0; e < c.hdim; ++e) s += 0.5 * q.at[at_q * c.hdim + e] * k.at[at_k(j) * c.hdim + e];
        const bool seen = (c.left < 0 || j >= place - c.left) && (c.right < 0 || j <= place + c.right);
        p[j] = seen ? exp(s) : 0;
        sum += p[j];
      }
      lse[row] = log(sum);
      for (int64_t j = 0; j < c.keys; ++j) {
        p[j] /= sum == 0 ? 1 : sum;
        for (int64_t e = 0; e < c.hdim_v; ++e) {
          o[at_q * c.hdim_v + e] += p[j] * v.at[at_k(j) * c.hdim_v + e];
          dv[at_k(j) * c.hdim_v + e] += p[j] * d_o.at[at_q * c.hdim_v + e];
        }
      }
      for (int64_t e = 0; e < c.hdim_v; ++e) d += o[at_q * c.hdim_v + e] * d_o.at[at_q * c.hdim_v + e];
      for (int64_t j = 0; j < c.keys; ++j) {
        double dp = 0;
        for (int64_t e = 0; e < c.hdim_v; ++e) dp += d_o.at[at_q * c.hdim_v + e] * v.at[at_k(j) * c.hdim_v + e];
        const double ds = 0.5 * p[j] * (dp - d);
        for (int64_t e = 0; e < c.hdim; ++e) {
          dq[at_q * c.hdim + e] += ds * k.at[at_k(j) * c.hdim + e];
          dk[at_k(j) * c.hdim + e] += ds * q.at[at_q * c.hdim + e];
        }
      }
    }
    free(p);
  }
  Expected(const Expected&) = delete;
  Expected& operator=(const Expected&) = delete;
  ~Expected() {
    double* const all[] = {o, lse, dq, dk, dv};
    for (double* each : all) free(each);
  }
};

void compare(const Array& actual, const double* wanted, int64_t count, const char* what) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(actual.at[i]);
    const bool same = isinf(wanted[i]) ? value == wanted[i] : fabs(value - wanted[i]) < 1e-4;
    require(same, what);
  }
}

// The same keys in pages of seven rows, in descending order; the last page ends where the allocation does.
void check_pages(const Case& c, kw_attention_problem p, kw_attention_args args, const Expected& wanted) {
  constexpr int64_t kSize = 7;
  const int64_t each = (c.keys + kSize - 1) / kSize, pages = each * c.batch;
  Array k(pages * kSize * c.kv_heads * c.hdim), v(pages * kSize * c.kv_heads * c.hdim_v);
  auto* const table = static_cast<int32_t*>(malloc(static_cast<size_t>(pages) * 4));
  auto* const lengths = static_cast<int32_t*>(malloc(static_cast<size_t>(c.batch) * 4));
  for (int64_t b = 0; b < c.batch; ++b) {
    lengths[b] = static_cast<int32_t>(c.keys);
    for (int64_t j = 0; j < c.keys; ++j) {
      const int64_t page = pages - 1 - b * each - j / kSize, row = page * kSize + j % kSize;
      table[b * each + j / kSize] = static_cast<int32_t>(page);
      const auto move = [&](float* to, const void* from, int64_t width) {
        memcpy(to + row * width, static_cast<const float*>(from) + (b * c.keys + j) * width,
               static_cast<size_t>(width) * 4);
      };
      move(k.at, args.k, c.kv_heads * c.hdim);
      move(v.at, args.v, c.kv_heads * c.hdim_v);
    }
  }
  p.page_table = KW_PAGES_BLOCK;
  p.kv_lengths = 1;
  p.pages = pages;
  p.page_size = kSize;
  p.page_table_stride = each;
  p.k.request = kSize * p.k.row;
  p.v.request = kSize * p.v.row;
  const int64_t rows = c.batch * c.heads * c.queries;
  Array o(rows * c.hdim_v);
  args.k = k.at;
  args.v = v.at;
  args.o = o.at;
  args.page_table = table;
  args.seqlens_k = lengths;
  launch(forward_under_test, p, args);
  compare(o, wanted.o, rows * c.hdim_v, "O out of pages");
  lengths[0] = static_cast<int32_t>(c.keys + 1);
  refuse(forward_under_test, p, args);
  free(table);
  free(lengths);
}

void check(const Case& c) {
  const int64_t rows = c.batch * c.heads * c.queries, keys = c.batch * c.keys * c.kv_heads;
  Array q(rows * c.hdim, 1), k(keys * c.hdim, 2), v(keys * c.hdim_v, 3), bias(rows * c.keys, 4),
      d_o(rows * c.hdim_v, 5);
  const Expected wanted(c, q, k, v, bias, d_o);
  Array o(rows * c.hdim_v), lse(rows), d(rows), sums(rows * c.hdim), o_splits(5 * rows * c.hdim_v),
      lse_splits(5 * rows);
  Array dq(rows * c.hdim), dk(keys * c.hdim), dv(keys * c.hdim_v), dbias(rows * c.keys);
  kw_attention_problem p = problem_for(c);
  kw_attention_args args = {};
  args.struct_size = sizeof args;
  args.q = q.at, args.k = k.at, args.v = v.at, args.o = o.at, args.bias = bias.at, args.lse = lse.at;
  args.o_splits = o_splits.at, args.lse_splits = lse_splits.at, args.d_o = d_o.at, args.d = d.at;
  args.dq = dq.at, args.dk = dk.at, args.dv = dv.at, args.dbias = dbias.at, args.dq_sums = sums.at;
  launch(forward_under_test, p, args);
  compare(o, wanted.o, rows * c.hdim_v, "O");
  compare(lse, wanted.lse, rows, "LSE");
  check_pages(c, p, args, wanted);
  kw_attention_problem split = p;
  split.num_splits = 5;
  split.leaves_splits = 1;
  launch(splits_under_test, split, args);
  split.leaves_splits = 0;
  launch(combine_under_test, split, args);
  compare(o, wanted.o, rows * c.hdim_v, "O of splits");
  compare(lse, wanted.lse, rows, "LSE of splits");
  p.lse = 0;
  launch(dot_under_test, p, args);
  p.dq_slices = 1;
  p.dbias = 1;
  launch(gradient_under_test, p, args);
  launch(convert_under_test, p, args);
  compare(dq, wanted.dq, rows * c.hdim, "dQ");
  compare(dk, wanted.dk, keys * c.hdim, "dK");
  compare(dv, wanted.dv, keys * c.hdim_v, "dV");
  p.dropout = 1;
  p.dropout_p = 0.25;
  launch(gradient_under_test, p, args);  // for the sanitizers: tests in Python compare numbers
  p.dq_slices = p.dbias = p.dtype_bias = 0;
  p.bias = KW_BIAS_ALIBI;
  launch(slopes_under_test, p, args);
}

void check_append() {
  constexpr int64_t kRows = 3, kHdim = 20, kCapacity = 9;
  Array k(kRows * kHdim, 1), v(kRows * kHdim, 2), cache(kCapacity * kHdim), values(kCapacity * kHdim);
  Array cos(kCapacity * 5, 3), sin(kCapacity * 5, 4);
  auto* const before = static_cast<int32_t*>(malloc(4));
  *before = 6;
  kw_append_problem p = {};
  p.base = {sizeof p, KW_OP_ATTENTION_APPEND};
  p.version = KW_ATTENTION_VERSION;
  p.dtype = p.dtype_rotary = KW_FP32;
  p.rope = KW_ROPE_HALF;
  p.batch = p.heads_kv = 1;
  p.hdim_q = p.hdim_v = kHdim;
  p.seqlen_new = kRows;
  p.capacity = p.rotary_places = kCapacity;
  p.rotary_dim = 10;
  p.k = p.v = {kRows * kHdim, kHdim, kHdim};
  p.k_cache = p.v_cache = {kCapacity * kHdim, kHdim, kHdim};
  kw_append_args args = {sizeof args, 0,         nullptr, nullptr, k.at,   v.at,
                         cache.at,    values.at, before,  nullptr, cos.at, sin.at};
  const kw_kernel* const kernel = append_under_test;
  void* plan = nullptr;
  require(posix_memalign(&plan, 64, kernel->plan_bytes) == 0 && kernel->plan(kernel, &p.base, plan) == KW_OK, "append");
  const kw_cpu_launch where = {{sizeof where, 0, nullptr, nullptr, 0}, &kernelwright::process_threads()};
  require(kernel->launch(kernel, plan, &where.base, &args) == KW_OK, "append");
  const float* const last = cache.at + 8 * kHdim;
  const float turned = k.at[2 * kHdim] * cos.at[40] - k.at[2 * kHdim + 5] * sin.at[40];
  require(fabsf(last[0] - turned) < 1e-6f && last[19] == k.at[59] && values.at[179] == v.at[59], "appended rows");
  *before = 7;
  require(kernel->launch(kernel, plan, &where.base, &args) == KW_INVALID_ARGUMENT, "a full cache");
  free(plan);
  free(before);
}

// What 8 bits stand for (e4m3 of OCP), none of them NaN.
double number_of(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
  return (code & 0x80) != 0 ? -size : size;
}

// Numbers of 8 bits up to 0.9, with a factor for each request, head and block of rows; `wide` is what they stand for.
struct Narrow {
  static constexpr int64_t kBlock = 16;
  uint8_t* at;
  Array factors, wide;
  Narrow(int64_t batch, int64_t rows, int64_t heads, int64_t hdim, int64_t seed)
      : at(static_cast<uint8_t*>(malloc(static_cast<size_t>(batch * rows * heads * hdim)))),
        factors(batch * heads * ((rows + kBlock - 1) / kBlock), seed),
        wide(batch * rows * heads * hdim) {
    for (int64_t i = 0; i < batch * rows * heads * hdim; ++i) {
      const int64_t head = i / hdim % heads, row = i / hdim / heads % rows, b = i / hdim / heads / rows;
      at[i] = static_cast<uint8_t>((i * 31 + seed) % 54 | (i % 3 == 0 ? 0x80 : 0));
      const float factor = factors.at[(b * heads + head) * ((rows + kBlock - 1) / kBlock) + row / kBlock];
      wide.at[i] = static_cast<float>(number_of(at[i])) * factor;
    }
  }
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
  ~Narrow() { free(at); }
};

void check_8_bits(const Case& c) {
  const int64_t rows = c.batch * c.heads * c.queries;
  const Narrow q(c.batch, c.queries, c.heads, c.hdim, 1), k(c.batch, c.keys, c.kv_heads, c.hdim, 2);
  const Narrow v(c.batch, c.keys, c.kv_heads, c.hdim_v, 3);
  Array bias(rows * c.keys, 4), d_o(rows * c.hdim_v), o(rows * c.hdim_v), lse(rows);
  const Expected wanted(c, q.wide, k.wide, v.wide, bias, d_o);
  kw_attention_problem p = problem_for(c);
  p.dtype_q = p.dtype_kv = KW_FP8;
  p.qscale = KW_QSCALE_BLOCK_SCALE;
  p.scale_block_q = p.scale_block_k = Narrow::kBlock;
  kw_attention_args args = {};
  args.struct_size = sizeof args;
  args.q = q.at, args.k = k.at, args.v = v.at, args.o = o.at, args.bias = bias.at, args.lse = lse.at;
  args.descale_q = q.factors.at, args.descale_k = k.factors.at, args.descale_v = v.factors.at;
  launch(eight_bits_under_test, p, args);
  compare(o, wanted.o, rows * c.hdim_v, "O of 8-bit operands");
  compare(lse, wanted.lse, rows, "LSE of 8-bit operands");
  auto* const codes = static_cast<uint8_t*>(malloc(static_cast<size_t>(rows * c.hdim_v)));
  const float factor = 300;
  p.dtype_o = KW_FP8;
  args.o = codes;
  args.scale_o = &factor;
  launch(narrow_under_test, p, args);
  for (int64_t i = 0; i < rows * c.hdim_v; ++i) {
    const double exact = fmin(fmax(300 * wanted.o[i], -448), 448);
    require(fabs(number_of(codes[i]) - exact) <= fabs(exact) / 15.9 + 1.0 / 1000, "O of 8 bits");
  }
  free(codes);
}

void* check_all(void*) {
  for (const Case& one : kCases) check(one);
  for (const Case& one : kCases) check_8_bits(one);
  check_append();
  return nullptr;
}

}  // namespace

int main() { return run("attention", check_all); }
