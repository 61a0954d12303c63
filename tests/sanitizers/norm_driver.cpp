// Launches CPU kernels of norms on operands that end exactly at the end of their allocation, from one and from several
// threads. Rows are the same numbers again and again, so results of rows are equal, and known where all are 1.
#include "driver.hpp"
#include "kernelwright/norm/operands.h"

extern "C" {
extern const kw_kernel* const kernels_under_test[];
}

namespace {

// Rows of exactly as many bytes as they need; elements are 1 and -1 in turns, or are poisoned.
struct Rows {
  unsigned char* at;
  int64_t bytes;
  Rows(int64_t rows, int64_t columns, int64_t stride, uint32_t dtype, bool poisoned) {
    const int64_t item = kw_dtype_bytes(dtype), count = rows == 0 ? 0 : (rows - 1) * stride + columns;
    bytes = count * item;
    at = static_cast<unsigned char*>(malloc(static_cast<size_t>(bytes)));
    memset(at, 0xff, static_cast<size_t>(bytes));
    for (int64_t i = 0; i < count && !poisoned; ++i) {
      const uint32_t fp32 = i % stride % 2 == 0 ? 0x3f800000u : 0xbf800000u;
      const auto half = static_cast<uint16_t>(dtype == KW_BF16 ? fp32 >> 16 : (fp32 >> 16 & 0x8000u) | 0x3c00u);
      if (item == 4) memcpy(at + i * 4, &fp32, 4);
      if (item == 2) memcpy(at + i * 2, &half, 2);
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { free(at); }
};

struct Case {
  int64_t rows, columns, gap;
  bool vectors, residual;
};

constexpr Case kCases[] = {{1, 1, 0, true, true},      {3, 16, 0, true, false},  {5, 130, 7, false, true},
                           {70, 33, 1, true, true},    {0, 40, 0, true, true},   {9, 4099, 0, true, true},
                           {300, 511, 3, true, false}, {2, 31, 5, false, false}, {40, 2048, 0, true, true}};

void check(const kw_kernel& kernel, const Case& one) {
  const auto& traits = *static_cast<const kw_norm_traits*>(kernel.traits);
  kw_norm_problem p = {};
  p.base = {sizeof p, kernel.op};
  p.dtype_x = p.dtype_w = traits.dtype_x;
  p.dtype_y = traits.dtype_y;
  p.rows = one.rows, p.columns = one.columns;
  p.weight = one.vectors, p.bias = one.vectors && kw_norm_is_layer(&p), p.residual = one.residual;
  const bool backward = kw_norm_is_backward(&p), sum = kw_norm_writes_sum(&p);
  const int64_t stride = one.columns + one.gap;
  p.stride_x = p.stride_y = stride;
  p.stride_residual = one.residual ? stride : 0, p.stride_sum = sum ? stride : 0, p.stride_dy = backward ? stride : 0;
  p.epsilon = 1e-5;
  const auto rows = [&](uint32_t dtype, bool poisoned) { return Rows(p.rows, p.columns, stride, dtype, poisoned); };
  const auto vector = [&](bool poisoned) { return Rows(1, p.columns, p.columns, p.dtype_w, poisoned); };
  const Rows x = rows(p.dtype_x, false), residual = rows(p.dtype_x, false), dy = rows(p.dtype_x, false);
  const Rows y = rows(p.dtype_y, true), total = rows(p.dtype_x, true), scales(1, p.rows, p.rows, KW_FP32, true);
  const Rows weight = vector(false), bias = vector(false), dweight = vector(true), dbias = vector(true);
  kw_norm_args args = {};
  args.struct_size = sizeof args;
  args.x = x.at, args.residual = residual.at, args.dy = dy.at, args.y = y.at, args.sum = total.at;
  args.weight = weight.at, args.bias = bias.at, args.dweight = dweight.at, args.dbias = dbias.at;
  args.scales = reinterpret_cast<float*>(scales.at);
  require(launched(kernel, &p.base, &args) == KW_OK, kernel.name, "launch");
  const int64_t item = kw_dtype_bytes(p.dtype_y), row_bytes = p.columns * item;
  for (int64_t row = 0; row < p.rows; ++row) {
    const unsigned char* const at = y.at + row * stride * item;
    require(memcmp(at, y.at, static_cast<size_t>(row_bytes)) == 0, kernel.name, "rows differ");
    for (int64_t gap = row_bytes; gap < stride * item && row + 1 < p.rows; ++gap) {
      require(at[gap] == 0xff, kernel.name, "a gap was written");
    }
  }
  if (!backward && item == 4 && p.rows != 0) {  // of 1 and -1, or 2 and -2, times 1 and -1
    float first = 0;
    memcpy(&first, y.at, sizeof first);
    require(first > 0.999f && first < 1.001f, kernel.name, "wrong result");
  }
}

void* check_all(void*) {
  for (const kw_kernel* const* kernel = kernels_under_test; *kernel != nullptr; ++kernel) {
    for (const Case& one : kCases) check(**kernel, one);
  }
  return nullptr;
}

}  // namespace

int main() { return run("norms", check_all); }
