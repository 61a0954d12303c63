// Depthwise forward where points lie side by side: each channel of each image is a plane of its own.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLANE_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLANE_DRIVER_HPP

#include "launchers/cpu/common/room.hpp"
#include "launchers/cpu/common/threads.hpp"
#include "launchers/cpu/convolution/outputs.hpp"
#include "launchers/cpu/convolution/slab.hpp"

namespace kernelwright::cpu {

struct plane_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t reserved;
  int64_t lines, parts;     // outputs along H of a slab, slabs of a plane
  int64_t run, remainders;  // of a line of the slab: points with one remainder by the stride, how many remainders
  uint64_t weights_offset, taps_offset, private_bytes, workspace_bytes;
};

// A slab leaves the first-level cache room for outputs.
constexpr int64_t kPlaneUnits = 6 << 10;

inline plane_plan make_plane_plan(const kw_conv_problem& p, uint32_t threads_allowed) {
  plane_plan plan = {};
  plan.problem = p;
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  const sweep s = make_sweep(p, 0);
  const axis &h = s.along[1], &w = s.along[2];
  plan.remainders = w.slab_step;
  plan.run = divide_up(w.entries(w.outputs), w.slab_step);
  const int64_t line = plan.run * plan.remainders;
  int64_t lines = h.outputs;
  while (lines > 1 && kw_mul(h.entries(lines), line) > kPlaneUnits) lines = divide_up(lines, 2);
  plan.parts = divide_up(h.outputs, lines);
  plan.lines = divide_up(h.outputs, plan.parts);
  plan.weights_offset = room(kw_add(kw_mul(h.entries(plan.lines), line), kSlabSpare), 4);
  plan.taps_offset = behind(plan.weights_offset, room(kw_add(s.taps(), kSpareUnits), 4));
  plan.private_bytes = behind(plan.taps_offset, room(s.taps(), 8));
  plan.workspace_bytes = behind_all(0, plan.threads, plan.private_bytes);
  return plan;
}

class plane_job {
 public:
  plane_job(const conv_kernel& kernel, const plane_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel),
        plan_(plan),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        sweep_(make_sweep(plan.problem, 0)),
        next_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &plane_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    plane_job& job = *static_cast<plane_job*>(context);
    char* const own = job.memory_ + index * job.plan_.private_bytes;
    const int64_t total = job.plan_.problem.n * job.plan_.problem.c * job.plan_.parts;
    job.place_taps(reinterpret_cast<int64_t*>(own + job.plan_.taps_offset));
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) return;
      job.multiply(ticket, own);
    }
  }

  int64_t line_units() const { return plan_.run * plan_.remainders; }

  void place_taps(int64_t* taps) const {
    const axis &h = sweep_.along[1], &w = sweep_.along[2];
    for (int64_t i = 0; i < h.taps; ++i) {
      for (int64_t j = 0; j < w.taps; ++j) {
        const int64_t entry = w.tap_at + j * w.tap_step;
        *taps++ = (h.tap_at + i * h.tap_step) * line_units() + entry % w.slab_step * plan_.run + entry / w.slab_step;
      }
    }
  }

  void multiply(int64_t task, char* own) const {
    const kw_conv_problem& p = plan_.problem;
    const range lines = part(sweep_.along[1].outputs, plan_.parts, task % plan_.parts);
    const int64_t channel = task / plan_.parts % p.c, n = task / plan_.parts / p.c, taps = sweep_.taps();
    auto* slab = reinterpret_cast<float*>(own);
    auto* weights = reinterpret_cast<float*>(own + plan_.weights_offset);
    const int64_t from = n * p.stride_x[0] + channel * p.stride_x[1];
    fill(static_cast<const char*>(args_.a) + from * kernel_.input_bytes, lines, slab);
    kernel_.widen(weights, static_cast<const char*>(args_.b) + channel * taps * kernel_.input_bytes, 1, taps);
    plane_block b = {};
    b.weights = weights;
    b.taps = reinterpret_cast<const int64_t*>(own + plan_.taps_offset);
    b.tap_count = taps;
    b.outputs = sweep_.along[2].outputs;
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      b.slab = slab + (line - lines.begin) * sweep_.along[1].slab_step * line_units();
      b.to = conv_output(kernel_, p, args_, 0);
      move_output(kernel_, n * p.stride_y[0] + channel * p.stride_y[1] + line * p.stride_y[3], &b.to);
      kernel_.plane(b);
    }
  }

  void fill(const char* plane, const range& lines, float* slab) const {
    const kw_conv_problem& p = plan_.problem;
    const axis& h = sweep_.along[1];
    const int64_t entries = h.entries(lines.end - lines.begin);
    for (int64_t i = 0; i < entries; ++i, slab += line_units()) {
      const int64_t at = lines.begin * h.slab_step * h.grain + h.low + i * h.grain;
      if (at < 0 || at >= h.extent) {
        clear(slab, line_units());
      } else {
        fill_line(plane + at * p.stride_x[3] * kernel_.input_bytes, slab);
      }
    }
  }

  // Remainder by remainder; whole vectors are stored, so what follows a run is written after it.
  void fill_line(const char* line, float* to) const {
    const axis& w = sweep_.along[2];
    const int64_t step = w.grain * w.slab_step;  // image points from one of a remainder to the next
    for (int64_t r = 0; r < plan_.remainders; ++r, to += plan_.run) {
      const int64_t begin = w.low + r * w.grain;
      const int64_t before = begin >= 0 ? 0 : smaller(plan_.run, divide_up(-begin, step));
      const int64_t reach = w.extent - begin;
      const int64_t end = reach <= 0 ? before : larger(before, smaller(plan_.run, divide_up(reach, step)));
      clear(to, before);
      const char* point = line + (begin + before * step) * plan_.problem.stride_x[4] * kernel_.input_bytes;
      kernel_.widen(to + before, point, step * plan_.problem.stride_x[4], end - before);
      clear(to + end, plan_.run - end);
    }
  }

  const conv_kernel& kernel_;
  const plane_plan& plan_;
  const kw_conv_args& args_;
  char* const memory_;
  const sweep sweep_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLANE_DRIVER_HPP
