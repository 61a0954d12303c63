// Direct kernels for groups of few channels, with however many threads come.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_DRIVER_HPP

#include <string.h>

#include "launchers/cpu/common/tickets.hpp"
#include "launchers/cpu/convolution/lanes_plan.hpp"
#include "launchers/cpu/convolution/outputs.hpp"
#include "launchers/cpu/convolution/slab.hpp"

namespace kernelwright::cpu {

// The first tasks order weights by lanes, the next ones write outputs or sum slices of dw, the last ones write dw.
class lanes_job {
 public:
  lanes_job(const conv_kernel& kernel, const lanes_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel), plan_(plan), args_(args), memory_(static_cast<char*>(workspace)) {}

  void run() { run_parts(threads_now(plan_.threads), &lanes_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    lanes_job& job = *static_cast<lanes_job*>(context);
    const lanes_plan& plan = job.plan_;
    const int64_t multiply_end = plan.pack_tasks + plan.multiply_tasks;
    const int64_t ends[] = {plan.pack_tasks, multiply_end, multiply_end + plan.finish_tasks};
    char* const own = job.memory_ + plan.private_offset + index * plan.private_bytes;
    job.tickets_.hand_out(ends, index, [&](int stage, int64_t task) {
      if (stage == 0) {
        job.pack(part(plan.vectors, plan.pack_tasks, task));
      } else if (stage == 1) {
        job.multiply(task, own);
      } else {
        job.finish(part(plan.vectors, plan.finish_tasks, task), reinterpret_cast<float*>(own));
      }
    });
  }

  int64_t lanes_of(int64_t vector) const { return smaller(kernel_.lanes, plan_.channels - vector * kernel_.lanes); }
  float* weights_at(int64_t slice, int64_t vector) const {
    return reinterpret_cast<float*>(memory_) + (slice * plan_.vectors + vector) * plan_.vector_units;
  }

  // Lane l of (filter point, channel in the group) is the weight between channel l and that channel of its group. In
  // forward l is an output channel, in backward data an input channel.
  void pack(const range& vectors) const {
    const char* weights = static_cast<const char*>(args_.b);
    const int64_t u = plan_.per_group, taps = plan_.taps;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      float* to = weights_at(0, v);
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t i = 0; i < u; ++i, to += kernel_.lanes) {
          if (u == 1 || !is_backward(plan_.problem)) {
            const int64_t from = (v * kernel_.lanes * taps + tap) * u + i;
            kernel_.widen(to, weights + from * kernel_.input_bytes, taps * u, lanes_of(v));
            continue;
          }
          for (int64_t lane = 0; lane < lanes_of(v); lane += u) {
            float copy[2 * kSpareUnits];
            const int64_t from = ((v * kernel_.lanes + lane + i) * taps + tap) * u;
            kernel_.widen(copy, weights + from * kernel_.input_bytes, 1, u);
            memcpy(to + lane, copy, static_cast<size_t>(u) * 4);
          }
        }
      }
    }
  }

  // A box of outputs of some vectors, or for backward weight all boxes of a slice.
  void multiply(int64_t task, char* own) const {
    const range vectors = part(plan_.vectors, plan_.chunks, task % plan_.chunks);
    task /= plan_.chunks;
    if (!sums_weights(plan_.problem)) {
      const sweep s = make_sweep(plan_.problem, task / plan_.cut.all());
      return multiply_box(s, task % plan_.cut.all(), 0, vectors, own);
    }
    const sweep s = make_sweep(plan_.problem, 0);
    memset(weights_at(task, vectors.begin), 0,
           static_cast<size_t>((vectors.end - vectors.begin) * plan_.vector_units) * 4);
    const range indices = part(plan_.cut.all(), plan_.slices, task);
    for (int64_t index = indices.begin; index < indices.end; ++index) multiply_box(s, index, task, vectors, own);
  }

  void multiply_box(const sweep& s, int64_t index, int64_t slice, const range& vectors, char* own) const {
    const kw_conv_problem& p = plan_.problem;
    const box b = box_at(plan_.cut, index, p.n, s);
    if (b.empty()) return;
    auto* slab = reinterpret_cast<float*>(own);
    auto* taps = reinterpret_cast<lanes_tap*>(own + plan_.taps_offset);
    const image_strides x(is_backward(p) ? p.stride_y : p.stride_x);
    const int64_t channel = vectors.begin * kernel_.lanes;
    const int64_t channels = smaller(plan_.channels, vectors.end * kernel_.lanes) - channel;
    const slab_source from = {static_cast<const char*>(args_.a) + channel * kernel_.input_bytes, x.at, channels,
                              kernel_.fill_lanes};
    const slab_layout layout = layout_of(s, b, (vectors.end - vectors.begin) * kernel_.lanes);
    if (s.taps() > 0) fill_slab(kernel_, from, s, b, layout, slab);
    const int64_t count = list_taps(s, layout, taps);
    if (sums_weights(p)) {
      sum_box(s, b, layout, slice, vectors, slab, taps, count);
    } else {
      write_box(s, b, layout, vectors, slab, reinterpret_cast<pixel_tile*>(own + plan_.tiles_offset), taps, count);
    }
  }

  // Filter points of the phase, W innermost, and the channels of a group.
  int64_t list_taps(const sweep& s, const slab_layout& layout, lanes_tap* taps) const {
    const axis(&along)[3] = s.along;
    int64_t count = 0;
    for (int64_t index = 0; index < s.taps(); ++index) {
      const int64_t at[3] = {index / along[2].taps / along[1].taps, index / along[2].taps % along[1].taps,
                             index % along[2].taps};
      int64_t point = 0, tap = 0;
      for (int dim = 0; dim < 3; ++dim) {
        point += layout.tap(dim, at[dim]);
        tap = tap * plan_.problem.filter[dim] + along[dim].tap_first + at[dim] * along[dim].tap_period;
      }
      for (int64_t channel = 0; channel < plan_.per_group; ++channel) {
        taps[count++] = {point, (tap * plan_.per_group + channel) * kernel_.lanes, channel};
      }
    }
    return count;
  }

  void write_box(const sweep& s, const box& b, const slab_layout& layout, const range& vectors, const float* slab,
                 pixel_tile* tiles, const lanes_tap* taps, int64_t count) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides y(is_backward(p) ? p.stride_x : p.stride_y);
    lanes_block block = {};
    block.a_row = s.along[2].slab_step * layout.stride[3];
    block.tiles = tiles;
    block.tile_count = tile_box(s, b, layout, y, tiler(tiles, kLanesHalf));
    block.taps = taps;
    block.tap_count = count;
    block.per_group = plan_.per_group;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      block.slab = slab + (v - vectors.begin) * kernel_.lanes;
      block.w = weights_at(0, v);
      block.channels = lanes_of(v);
      block.to = conv_output(kernel_, p, args_, v * kernel_.lanes);
      block.to.ldc *= s.along[2].step;
      kernel_.lanes_direct(block);
    }
  }

  void sum_box(const sweep& s, const box& b, const slab_layout& layout, int64_t slice, const range& vectors,
               const float* slab, const lanes_tap* taps, int64_t count) const {
    const image_strides y(plan_.problem.stride_y);
    lanes_weight_block block = {};
    int64_t first = 0;
    for (int i = 0; i < 4; ++i) {
      block.count[i] = b.size[i];
      block.slab_stride[i] = layout.stride[i] * (i == 0 ? 1 : s.along[i - 1].slab_step);
      block.dy_stride[i] = y.at[i];
      first += b.first[i] * y.at[i];
    }
    block.per_group = plan_.per_group;
    block.taps = taps;
    block.tap_count = count;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      block.slab = slab + (v - vectors.begin) * kernel_.lanes;
      block.dy = static_cast<const char*>(args_.b) + (first + v * kernel_.lanes) * kernel_.input_bytes;
      block.sums = weights_at(slice, v);
      block.channels = lanes_of(v);
      kernel_.lanes_weight(block);
    }
  }

  // Adds the slices up, one after the other, turns [filter point][channel][lane] round, and writes.
  void finish(const range& vectors, float* turned) const {
    const int64_t columns = plan_.taps * plan_.per_group, lanes = kernel_.lanes;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      for (int64_t lane = 0; lane < lanes_of(v); ++lane) {
        for (int64_t column = 0; column < columns; ++column) {
          float sum = 0;
          for (int64_t slice = 0; slice < plan_.slices; ++slice) sum += weights_at(slice, v)[column * lanes + lane];
          turned[lane * columns + column] = sum;
        }
      }
      finish_block f = {};
      f.sums = turned;
      f.slices = 1;
      f.ld = f.cols = columns;
      f.rows = lanes_of(v);
      f.to = weight_output(kernel_, plan_.problem, args_, v * lanes * columns, columns);
      kernel_.finish(f);
    }
  }

  const conv_kernel& kernel_;
  const lanes_plan& plan_;
  const kw_conv_args& args_;
  char* const memory_;
  tickets tickets_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_DRIVER_HPP
