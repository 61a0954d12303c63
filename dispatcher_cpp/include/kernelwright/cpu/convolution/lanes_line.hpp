// One line of outputs of a direct kernel, cut where other filter points leave the image.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_LANES_LINE_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_LANES_LINE_HPP

#include "kernelwright/cpu/convolution/lanes_plan.hpp"

namespace kernelwright::cpu {

// Filter points of one dimension that keep output j within the image: their image points ascend or descend with them.
inline range taps_within(const axis& a, int64_t j) {
  const auto point = [&](int64_t tap) { return a.low + (j * a.slab_step + a.tap_at + tap * a.tap_step) * a.grain; };
  const auto outside = [&](int64_t tap) { return point(tap) < 0 || point(tap) >= a.extent; };
  range r = {0, a.taps};
  while (r.begin < r.end && outside(r.begin)) ++r.begin;
  while (r.end > r.begin && outside(r.end - 1)) --r.end;
  return r;
}

// The image point that filter point 0 meets at output j, which may lie outside of the image.
inline int64_t first_point(const axis& a, int64_t j) { return a.low + (j * a.slab_step + a.tap_at) * a.grain; }

// What walks a line: outputs [begin, end) along W meet the filter points in `within`, of D, H, W.
struct line_part {
  int64_t begin, end;
  range within[3];
};

// Calls visit for parts of the line (d, h), in which every output meets the same filter points.
template <class Visit>
void cut_line(const sweep& s, int64_t d, int64_t h, const Visit& visit) {
  const axis& w = s.along[2];
  line_part part = {};
  part.within[0] = taps_within(s.along[0], d);
  part.within[1] = taps_within(s.along[1], h);
  // Between the first and the last output that meet all filter points, every one does.
  int64_t first = 0, last = w.outputs;
  const auto all = [&](int64_t j) {
    const range r = taps_within(w, j);
    return r.end - r.begin == w.taps;
  };
  while (first < last && !all(first)) ++first;
  while (last > first && !all(last - 1)) --last;
  for (int64_t j = 0; j < w.outputs; j = part.end) {
    part.begin = j;
    part.end = j == first && last > first ? last : j + 1;
    part.within[2] = taps_within(w, j);
    visit(part);
  }
}

// Lists the filter points of a part and the channels of a group: at `x` elements from the point that filter point 0
// meets, and at `units` of weights for each filter point of the problem and channel.
inline int64_t list_taps(const kw_conv_problem& p, const sweep& s, const line_part& part, const image_strides& x,
                         int64_t per_group, int64_t lanes, lanes_tap* taps) {
  int64_t count = 0;
  const range(&in)[3] = part.within;
  for (int64_t d = in[0].begin; d < in[0].end; ++d) {
    for (int64_t h = in[1].begin; h < in[1].end; ++h) {
      for (int64_t w = in[2].begin; w < in[2].end; ++w) {
        const int64_t at[3] = {d, h, w};
        int64_t point = 0, tap = 0;
        for (int dim = 0; dim < 3; ++dim) {
          const axis& a = s.along[dim];
          point += at[dim] * a.tap_step * a.grain * x.at[dim + 1];
          tap = tap * p.filter[dim] + a.tap_first + at[dim] * a.tap_period;
        }
        for (int64_t channel = 0; channel < per_group; ++channel) {
          taps[count++] = {point, (tap * per_group + channel) * lanes, channel};
        }
      }
    }
  }
  return count;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_LANES_LINE_HPP
