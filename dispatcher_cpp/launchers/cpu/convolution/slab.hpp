// Fills a slab with the part of an image that a box of outputs meets; what lies outside of the image is zero.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SLAB_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SLAB_HPP

#include <string.h>

#include "launchers/cpu/convolution/sweep_plan.hpp"

namespace kernelwright::cpu {

// One slab to fill: `image` is at the first channel of the group, `strides` are elements.
struct slab_source {
  const char* image;
  const int64_t* strides;  // images, D, H, W
  int64_t channels;
  fill_function fill;
};

// An image that is read where it lies, as if it were a slab.
inline slab_layout in_place_layout(const sweep& s, const image_strides& strides) {
  slab_layout l = {};
  l.stride[0] = strides.at[0];
  for (int dim = 0; dim < 3; ++dim) {
    l.stride[dim + 1] = strides.at[dim + 1] * s.along[dim].grain;
    place_taps_densely(s.along[dim], dim, l);
  }
  return l;
}

// Elements from the image's first point to that of the slab.
inline int64_t in_place_offset(const sweep& s, const image_strides& strides, const box& b) {
  int64_t offset = b.first[0] * strides.at[0];
  for (int dim = 0; dim < 3; ++dim) {
    const axis& a = s.along[dim];
    offset += (b.first[dim + 1] * a.slab_step * a.grain + a.low) * strides.at[dim + 1];
  }
  return offset;
}

inline void clear(float* to, int64_t units) { memset(to, 0, static_cast<size_t>(units) * 4); }

// Points of one line: those before and behind the image are zero.
inline void fill_line(const conv_kernel& kernel, const slab_source& from, const axis& w, int64_t first_output,
                      int64_t entries, const char* line, float* to, int64_t pitch) {
  const int64_t begin = first_output * w.slab_step * w.grain + w.low;
  const int64_t before = begin >= 0 ? 0 : smaller(entries, divide_up(-begin, w.grain));
  const int64_t reach = w.extent - begin;  // image points from the first entry to the end
  const int64_t end = reach <= 0 ? before : larger(before, smaller(entries, divide_up(reach, w.grain)));
  clear(to, before * pitch);
  const char* point = line + (begin + before * w.grain) * from.strides[3] * kernel.input_bytes;
  if (end > before)
    from.fill(to + before * pitch, pitch, point, from.strides[3] * w.grain, end - before, from.channels);
  clear(to + end * pitch, (entries - end) * pitch);
}

inline void fill_slab(const conv_kernel& kernel, const slab_source& from, const sweep& s, const box& b,
                      const slab_layout& l, float* slab) {
  const int64_t pitch = l.stride[3];
  const auto coordinate = [&](int dim, int64_t entry) {
    const axis& a = s.along[dim];
    const int64_t gap = l.gaps[dim];
    if (gap != 0) entry = a.tap_at + entry / gap * a.tap_step + entry % gap;
    return b.first[dim + 1] * a.slab_step * a.grain + a.low + entry * a.grain;
  };
  for (int64_t n = 0; n < b.size[0]; ++n) {
    for (int64_t i = 0; i < l.entries[0]; ++i) {
      const int64_t d = coordinate(0, i);
      for (int64_t j = 0; j < l.entries[1]; ++j) {
        const int64_t h = coordinate(1, j);
        float* line = slab + n * l.stride[0] + i * l.stride[1] + j * l.stride[2];
        if (d < 0 || d >= s.along[0].extent || h < 0 || h >= s.along[1].extent) {
          clear(line, l.entries[2] * pitch);
          continue;
        }
        const int64_t offset = (b.first[0] + n) * from.strides[0] + d * from.strides[1] + h * from.strides[2];
        const char* source = from.image + offset * kernel.input_bytes;
        fill_line(kernel, from, s.along[2], b.first[3], l.entries[2], source, line, pitch);
      }
    }
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SLAB_HPP
