// Direct kernels for groups of few channels, with however many threads come.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_LANES_DRIVER_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_LANES_DRIVER_HPP

#include <string.h>

#include "kernelwright/cpu/common/thread_pool.hpp"
#include "kernelwright/cpu/convolution/lanes_line.hpp"
#include "kernelwright/cpu/convolution/outputs.hpp"

namespace kernelwright::cpu {

// The first tickets order weights by lanes, the next ones write outputs or sum slices of dw, the last ones write dw.
class lanes_job {
 public:
  lanes_job(const conv_kernel& kernel, const lanes_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel), plan_(plan), args_(args), memory_(static_cast<char*>(workspace)), next_(0), done_(0) {}

  void run() { run_in_pool(threads_now(plan_.threads), &lanes_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    lanes_job& job = *static_cast<lanes_job*>(context);
    const lanes_plan& plan = job.plan_;
    const int64_t multiply_end = plan.pack_tasks + plan.multiply_tasks, total = multiply_end + plan.finish_tasks;
    char* const own = job.memory_ + plan.private_offset + index * plan.private_bytes;
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      if (ticket < plan.pack_tasks) {
        job.pack(part(plan.vectors, plan.pack_tasks, ticket));
      } else if (ticket < multiply_end) {
        wait_until(job.done_, plan.pack_tasks);
        job.multiply(ticket - plan.pack_tasks, own);
      } else {
        wait_until(job.done_, multiply_end);
        job.finish(part(plan.vectors, plan.finish_tasks, ticket - multiply_end), reinterpret_cast<float*>(own));
      }
      __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) wait_until(job.done_, total);
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

  void multiply(int64_t task, char* own) const {
    const kw_conv_problem& p = plan_.problem;
    const range vectors = part(plan_.vectors, plan_.vector_parts, task % plan_.vector_parts);
    task /= plan_.vector_parts;
    const int64_t slice = task % plan_.line_parts;
    const range lines = part(plan_.lines, plan_.line_parts, slice);
    const sweep s = make_sweep(p, task / plan_.line_parts);
    auto* taps = reinterpret_cast<lanes_tap*>(own);
    if (sums_weights(p)) {
      taps = reinterpret_cast<lanes_tap*>(own + align_bytes(4u * static_cast<uint64_t>(plan_.vector_units)));
      memset(weights_at(slice, vectors.begin), 0,
             static_cast<size_t>((vectors.end - vectors.begin) * plan_.vector_units) * 4);
    }
    // Vectors outside: the lines of one are read again from the first-level cache.
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      for (int64_t line = lines.begin; line < lines.end; ++line) walk_line(s, line, slice, v, taps);
    }
  }

  void walk_line(const sweep& s, int64_t line, int64_t slice, int64_t vector, lanes_tap* taps) const {
    const kw_conv_problem& p = plan_.problem;
    const sweep most = is_backward(p) ? make_sweep(p, 0) : s;
    const int64_t heights = larger(1, most.along[1].outputs), depths = larger(1, most.along[0].outputs);
    const int64_t h = line % heights, d = line / heights % depths, n = line / heights / depths;
    if (n >= p.n || h >= s.along[1].outputs || d >= s.along[0].outputs) return;
    const image_strides x(is_backward(p) ? p.stride_y : p.stride_x), y(is_backward(p) ? p.stride_x : p.stride_y);
    const int64_t channel = vector * kernel_.lanes;
    cut_line(s, d, h, [&](const line_part& part) {
      const int64_t count = list_taps(p, s, part, x, plan_.per_group, kernel_.lanes, taps);
      const int64_t output[3] = {d, h, part.begin};
      int64_t from = n * x.at[0] + channel, to = n * y.at[0];
      for (int dim = 0; dim < 3; ++dim) {
        const axis& a = s.along[dim];
        from += first_point(a, output[dim]) * x.at[dim + 1];
        to += (a.first + output[dim] * a.step) * y.at[dim + 1];
      }
      const int64_t x_step = s.along[2].slab_step * s.along[2].grain * x.at[3];
      // The first point may lie outside of the image: its address is only a base.
      const void* base = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(args_.a) +
                                                       static_cast<uintptr_t>(from * kernel_.input_bytes));
      if (sums_weights(p)) {
        lanes_weight_block b = {};
        b.x = base;
        b.dy = static_cast<const char*>(args_.b) + (to + channel) * kernel_.input_bytes;
        b.sums = weights_at(slice, vector);
        b.channels = lanes_of(vector);
        b.per_group = plan_.per_group;
        b.outputs = part.end - part.begin;
        b.x_step = x_step;
        b.dy_step = y.at[3];
        b.taps = taps;
        b.tap_count = count;
        return kernel_.lanes_weight(b);
      }
      lanes_block b = {};
      b.x = base;
      b.w = weights_at(0, vector);
      b.channels = lanes_of(vector);
      b.w_vector = plan_.vector_units;
      b.per_group = plan_.per_group;
      b.outputs = part.end - part.begin;
      b.x_step = x_step;
      b.taps = taps;
      b.tap_count = count;
      b.to = conv_output(kernel_, p, args_, channel);
      b.to.ldc *= s.along[2].step;
      move_output(kernel_, to, &b.to);
      kernel_.lanes_direct(b);
    });
  }

  // Adds the slices up, one after the other, turns [filter point][channel][lane] round, and writes.
  void finish(const range& vectors, float* turned) const {
    const int64_t columns = plan_.taps * plan_.per_group, lanes = kernel_.lanes;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      for (int64_t lane = 0; lane < lanes_of(v); ++lane) {
        for (int64_t column = 0; column < columns; ++column) {
          float sum = 0;
          for (int64_t slice = 0; slice < plan_.line_parts; ++slice) sum += weights_at(slice, v)[column * lanes + lane];
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
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_LANES_DRIVER_HPP
