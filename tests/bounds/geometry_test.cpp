// What plans of CPU convolutions compute without a loop over strides, against that loop: for every small axis.
#include <stdio.h>
#include <stdlib.h>

#include "launchers/cpu/convolution/sweep_plan.hpp"

using namespace kernelwright::cpu;

namespace {

void require(bool condition, const kw_conv_problem& p, const char* what) {
  if (condition) return;
  fprintf(stderr, "geometry_test: %s: extent %lld filter %lld stride %lld dilation %lld padding %lld, %lld\n", what,
          static_cast<long long>(p.extent[2]), static_cast<long long>(p.filter[2]), static_cast<long long>(p.stride[2]),
          static_cast<long long>(p.dilation[2]), static_cast<long long>(p.pad_left[2]),
          static_cast<long long>(p.pad_right[2]));
  exit(1);
}

kw_conv_problem problem(int64_t extent, int64_t filter, int64_t stride, int64_t dilation, int64_t left, int64_t right) {
  kw_conv_problem p = {};
  p.base = {sizeof p, KW_OP_CONV_BACKWARD_DATA};
  p.layout = KW_CONV_NWGC, p.groups = p.n = p.c = p.k = p.split_k = 1;
  for (int dim = 0; dim < 3; ++dim) p.extent[dim] = p.filter[dim] = p.stride[dim] = p.dilation[dim] = 1;
  p.extent[2] = extent, p.filter[2] = filter, p.stride[2] = stride, p.dilation[2] = dilation;
  p.pad_left[2] = left, p.pad_right[2] = right;
  return p;
}

// Which filter point meets a point of dx, and at which output; by trying all.
bool meets(const kw_conv_problem& p, int64_t point, int64_t tap, int64_t* output) {
  const int64_t at = point + p.pad_left[2] - tap * p.dilation[2];
  *output = at / p.stride[2];
  return at % p.stride[2] == 0;
}

void check(const kw_conv_problem& p) {
  int64_t entries = 0, points = 0;
  bool inside = true;
  for (int64_t phase = 0; phase < p.stride[2]; ++phase) {
    const axis a = backward_axis(p, 2, phase);
    int64_t taps = 0, first = 0;
    for (int64_t tap = p.filter[2] - 1; tap >= 0; --tap) {
      int64_t output = 0;
      if (!meets(p, phase, tap, &output)) continue;
      ++taps, first = tap;
    }
    require(a.taps == taps && a.tap_first == first, p, "the filter points of a phase");
    require(a.inside() || a.outputs > 0, p, "a phase without points has no edge");
    inside = inside && a.inside();
    entries = larger(entries, a.entries(3));
    points += a.outputs;
    require(phase < phases(p) || a.outputs == 0, p, "phases behind the last one are empty");
  }
  require(points == p.extent[2], p, "phases hold every point once");
  require(longest_axis(p, 2).entries(3) == entries, p, "the longest phase");
  require(backward_inside(p, 2) == inside, p, "an image without an edge");
  const kw_conv_problem least = with_least_strides(p);
  require(kw_conv_out(&least, 2) == kw_conv_out(&p, 2), p, "outputs of a shorter stride");
  kw_conv_problem forward = p;
  forward.base.op = KW_OP_CONV_FORWARD;
  const kw_conv_problem shorter = with_least_strides(forward);
  require(kw_conv_out(&shorter, 2) == kw_conv_out(&p, 2), p, "outputs forward of a shorter stride");
  require(shorter.stride[2] == p.stride[2] || kw_conv_out(&p, 2) == 1, p, "a stride that leads somewhere");
  for (int64_t point = 0; point < p.extent[2]; ++point) {
    for (int64_t tap = 0; tap < p.filter[2]; ++tap) {
      int64_t one = 0, other = 0;
      const bool met = meets(p, point, tap, &one) && one >= 0 && one < kw_conv_out(&p, 2);
      const bool still = meets(least, point, tap, &other) && other >= 0 && other < kw_conv_out(&p, 2);
      require(met == still && (!met || one == other), p, "pairs of a shorter stride");
    }
  }
}

}  // namespace

int main() {
  int64_t count = 0;
  for (int64_t extent = 1; extent < 9; ++extent)
    for (int64_t filter = 1; filter < 6; ++filter)
      for (int64_t stride = 1; stride < 14; ++stride)
        for (int64_t dilation = 1; dilation < 8; ++dilation)
          for (int64_t left = 0; left < 6; ++left)
            for (int64_t right = 0; right < 4; ++right) {
              const kw_conv_problem p = problem(extent, filter, stride, dilation, left, right);
              if (dilation * (filter - 1) < extent + left + right) check(p), ++count;
            }
  const int64_t wide = (int64_t{1} << 61) - 1, odd = (int64_t{1} << 40) + 1;  // a prime, and 17 * 241 * 433 * 38737 * …
  const int64_t taps[] = {5, int64_t{1} << 35, wide - 3};
  for (int64_t t : taps) {
    const int64_t remainder = static_cast<int64_t>(
        product_modulo(static_cast<uint64_t>(t), static_cast<uint64_t>(odd), static_cast<uint64_t>(wide)));
    require(first_tap(wide, odd, remainder) == t, problem(1, 1, wide, odd, 0, 0), "a tap of a wide stride");
  }
  printf("geometry_test: %lld axes\n", static_cast<long long>(count));
  return 0;
}
