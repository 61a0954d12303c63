// Launches CPU kernels of convolution on operands that end exactly at the end of their allocation, from one and from
// several threads, and compares small integers with sums in double.
#include "driver.hpp"
#include "kernelwright/convolution/checks.h"

extern "C" {
extern const kw_kernel* const kernels_under_test[];
}

namespace {

// An array of exactly `count` small integers; several threads make theirs.
struct Array {
  float* at;
  int64_t count;
  Array(int64_t size, int64_t seed)
      : at(static_cast<float*>(malloc(static_cast<size_t>(size) * sizeof(float)))), count(size) {
    for (int64_t i = 0; i < size; ++i) at[i] = static_cast<float>((i * 7 + seed * 3) % 5 - 2);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(at); }
};

struct Case {
  int64_t groups, c, k, n, extent[3], filter[3], stride[3], dilation[3], left[3], right[3];
};

constexpr Case kCases[] = {
    {1, 19, 37, 2, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {2, 34, 40, 1, {3, 6, 5}, {2, 3, 1}, {1, 2, 3}, {1, 1, 1}, {1, 0, 0}, {0, 2, 0}},
    {24, 24, 24, 2, {1, 12, 17}, {1, 3, 5}, {1, 2, 1}, {1, 2, 1}, {0, 2, 2}, {0, 1, 2}},
    {4, 16, 16, 1, {1, 1, 40}, {1, 1, 3}, {1, 1, 2}, {1, 1, 2}, {0, 0, 3}, {0, 0, 0}},
    {1, 3, 20, 1, {1, 20, 21}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}},
    {1, 64, 33, 3, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {1, 3, 48, 2, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {1, 24, 80, 3, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {2, 70, 6, 1, {1, 7, 9}, {1, 3, 3}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {1, 23, 2, 2, {1, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
};

kw_conv_problem problem_for(const kw_kernel& kernel, const Case& c) {
  const kw_conv_traits& t = *static_cast<const kw_conv_traits*>(kernel.traits);
  kw_conv_problem p = {};
  p.base = {sizeof p, kernel.op};
  p.dtype_x = p.dtype_w = p.dtype_y = p.dtype_acc = KW_FP32;
  p.layout = t.layout;
  p.bias = t.bias;
  p.residual = t.residual;
  p.activation = t.activation;
  if (t.activation == KW_ACTIVATION_ANY) {
    p.bias = c.k % 2;
    p.residual = c.extent[2] % 2;
    p.activation = c.n == 2 ? KW_ACTIVATION_NONE : KW_ACTIVATION_RELU;
  }
  p.split_k = 1;
  p.groups = c.groups;
  p.n = c.n;
  p.c = c.c;
  p.k = c.k;
  for (int dim = 0; dim < 3; ++dim) {
    p.extent[dim] = c.extent[dim];
    p.filter[dim] = c.filter[dim];
    p.stride[dim] = c.stride[dim];
    p.dilation[dim] = c.dilation[dim];
    p.pad_left[dim] = c.left[dim];
    p.pad_right[dim] = c.right[dim];
  }
  const auto dense = [&](int64_t* to, int64_t channels, int64_t d, int64_t h, int64_t w) {
    const bool first = t.layout == KW_CONV_NGCHW;
    const int64_t point = first ? 1 : channels;
    const int64_t strides[] = {channels * d * h * w, first ? d * h * w : 1, h * w * point, w * point, point};
    memcpy(to, strides, sizeof strides);
  };
  dense(p.stride_x, p.c, p.extent[0], p.extent[1], p.extent[2]);
  dense(p.stride_y, p.k, kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2));
  p.alpha = 1;
  return p;
}

// Calls visit with the elements of x, w and y of every product of the problem.
template <class Visit>
void every_product(const kw_conv_problem& p, const Visit& visit) {
  const int64_t per_group = p.c / p.groups, out_per_group = p.k / p.groups, points = kw_conv_filter_points(&p);
  const int64_t out[3] = {kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)};
  for (int64_t index = 0; index < p.n * out[0] * out[1] * out[2] * points; ++index) {
    const int64_t t = index % points, o = index / points % (out[0] * out[1] * out[2]);
    const int64_t n = index / points / (out[0] * out[1] * out[2]);
    const int64_t tap[3] = {t / p.filter[2] / p.filter[1], t / p.filter[2] % p.filter[1], t % p.filter[2]};
    const int64_t at[3] = {o / out[2] / out[1], o / out[2] % out[1], o % out[2]};
    int64_t x = n * p.stride_x[0], y = n * p.stride_y[0];
    bool inside = true;
    for (int dim = 0; dim < 3; ++dim) {
      const int64_t q = at[dim] * p.stride[dim] + tap[dim] * p.dilation[dim] - p.pad_left[dim];
      inside = inside && q >= 0 && q < p.extent[dim];
      x += q * p.stride_x[dim + 2];
      y += at[dim] * p.stride_y[dim + 2];
    }
    for (int64_t k = 0; inside && k < p.k; ++k) {
      for (int64_t c = 0; c < per_group; ++c) {
        visit(x + (k / out_per_group * per_group + c) * p.stride_x[1], (k * points + t) * per_group + c,
              y + k * p.stride_y[1]);
      }
    }
  }
}

void check(const kw_kernel& kernel, const Case& one) {
  const kw_conv_problem p = problem_for(kernel, one);
  char reason[256] = "";
  if (kernel.supports(&kernel, &p.base, reason, sizeof reason) != KW_OK) return;  // layouts with channels outside
  const int64_t sizes[] = {p.n * p.stride_x[0], p.k * (p.c / p.groups) * kw_conv_filter_points(&p),
                           p.n * p.stride_y[0]};
  Array x(sizes[0], 1), w(sizes[1], 2), y(sizes[2], 3), bias(p.k, 4), residual(sizes[2], 5);
  Array* const a = kernel.op == KW_OP_CONV_BACKWARD_DATA ? &y : &x;
  Array* const b = kernel.op == KW_OP_CONV_WEIGHT_SLICES ? &y : &w;
  Array* const out = kernel.op == KW_OP_CONV_FORWARD ? &y : kernel.op == KW_OP_CONV_BACKWARD_DATA ? &x : &w;
  auto* expected = static_cast<double*>(calloc(static_cast<size_t>(out->count), sizeof(double)));
  every_product(p, [&](int64_t i, int64_t j, int64_t o) {
    if (out == &y) expected[o] += static_cast<double>(x.at[i]) * w.at[j];
    if (out == &x) expected[i] += static_cast<double>(y.at[o]) * w.at[j];
    if (out == &w) expected[j] += static_cast<double>(x.at[i]) * y.at[o];
  });
  const kw_conv_args args = {sizeof args, 0, a->at, b->at, out->at, bias.at, residual.at};
  require(launched(kernel, &p.base, &args) == KW_OK, kernel.name, "launch");
  for (int64_t i = 0; i < out->count; ++i) {
    double value = expected[i];
    if (p.bias != 0) value += bias.at[i % p.k];
    if (p.residual != 0) value += residual.at[i];
    if (p.activation == KW_ACTIVATION_RELU && value < 0) value = 0;
    require(static_cast<double>(out->at[i]) == value, kernel.name, "wrong result");
  }
  free(expected);
}

void* check_all(void*) {
  for (const kw_kernel* const* kernel = kernels_under_test; *kernel != nullptr; ++kernel) {
    for (const Case& one : kCases) check(**kernel, one);
  }
  return nullptr;
}

}  // namespace

int main() { return run("convolution", check_all); }
