// Forward and backward data with however many threads come.
//
// The first tasks pack weights; the others each multiply one box of outputs by some panels of weights, and wait until
// all weights are packed.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_DRIVER_HPP

#include "launchers/cpu/common/tickets.hpp"
#include "launchers/cpu/convolution/outputs.hpp"
#include "launchers/cpu/convolution/slab.hpp"

namespace kernelwright::cpu {

class sweep_job {
 public:
  sweep_job(const conv_kernel& kernel, const sweep_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel),
        plan_(plan),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        units_(divide_up(plan.channels, kernel.traits.warp_tile_k)) {}

  void run() { run_parts(threads_now(plan_.threads), &sweep_job::participate, this); }

 private:
  // What a thread keeps from one task to the next.
  struct own_state {
    float* memory;      // for slabs
    const float* slab;  // there, or in the image
    pixel_tile* tiles;
    int64_t tile_count;
    int64_t *a_taps, *b_taps;
    float* partial;
    int64_t filled;  // the slab: task / column_parts; -1 = none
    sweep s;
    box b;
    slab_layout layout;
  };

  static void participate(void* context, uint32_t index) {
    sweep_job& job = *static_cast<sweep_job*>(context);
    const sweep_plan& plan = job.plan_;
    own_state own = job.state_of(index);
    const int64_t ends[] = {plan.pack_tasks, plan.pack_tasks + plan.multiply_tasks};
    job.tickets_.hand_out(ends, index, [&](int stage, int64_t task) {
      if (stage == 0) {
        job.pack(task);
      } else {
        job.multiply(task, own);
      }
    });
  }

  own_state state_of(uint32_t index) const {
    char* own = memory_ + plan_.private_offset + index * plan_.private_bytes;
    own_state state = {};
    state.slab = state.memory = reinterpret_cast<float*>(own);
    state.tiles = reinterpret_cast<pixel_tile*>(own + plan_.tiles_offset);
    state.a_taps = reinterpret_cast<int64_t*>(own + plan_.taps_offset);
    state.b_taps = state.a_taps + plan_.taps;
    state.partial = reinterpret_cast<float*>(own + plan_.partial_offset);
    state.filled = -1;
    return state;
  }

  int64_t run_at(int64_t index) const { return smaller(plan_.run, units_ - index * plan_.run); }
  int64_t panel_stride() const { return plan_.taps * units_ * kernel_.traits.warp_tile_n; }
  float* panel_at(int64_t group, int64_t panel) const {
    return reinterpret_cast<float*>(memory_) + (group * plan_.panels + panel) * panel_stride();
  }

  // Weights of a group whose few columns lie apart: of each filter point, all channels of a column, then of the next.
  float* few_at(int64_t group) const {
    return reinterpret_cast<float*>(memory_ + plan_.few_offset) + group * plan_.taps * units_ * plan_.columns;
  }

  // Within a panel: one block of channels after another, in each of them one filter point after another.
  int64_t weights_at(int64_t run_index, int64_t tap, int64_t width) const {
    return (plan_.taps * run_index * plan_.run + tap * run_at(run_index)) * width;
  }

  void pack(int64_t task) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t nr = kernel_.traits.warp_tile_n, depth = kernel_.traits.warp_tile_k;
    const range taps = part(plan_.taps, plan_.pack_parts, task % plan_.pack_parts);
    const int64_t panel = task / plan_.pack_parts % plan_.panels, group = task / plan_.pack_parts / plan_.panels;
    const int64_t per_group = p.c / p.groups, out_per_group = p.k / p.groups, ld = plan_.taps * per_group;
    const char* weights =
        static_cast<const char*>(args_.b) + group * out_per_group * ld * static_cast<int64_t>(kernel_.input_bytes);
    const int64_t col = panel * nr, cols = smaller(nr, plan_.columns - col);
    for (int64_t run = 0; run * plan_.run < units_; ++run) {
      const int64_t channel = run * plan_.run * depth, count = smaller(run_at(run) * depth, plan_.channels - channel);
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        const int64_t from =
            is_backward(p) ? channel * ld + tap * per_group + col : col * ld + tap * per_group + channel;
        float* const packed = panel_at(group, panel) + weights_at(run, tap, nr);
        kernel_.pack_weights(packed, weights + from * kernel_.input_bytes, ld, cols, count);
        if (plan_.few != 0) turn(packed, few_at(group) + weights_at(run, tap, plan_.columns));
      }
    }
  }

  // One filter point of a panel, for few columns.
  void turn(const float* packed, float* to) const {
    for (int64_t col = 0; col < plan_.columns; ++col) {
      for (int64_t unit = 0; unit < units_; ++unit) *to++ = packed[unit * kernel_.traits.warp_tile_n + col];
    }
  }

  void multiply(int64_t task, own_state& own) const {
    const int64_t column_part = task % plan_.column_parts, slab = task / plan_.column_parts;
    const int64_t group = slab % plan_.problem.groups;
    if (own.filled != slab) {
      own.filled = slab;
      const int64_t index = slab / plan_.problem.groups;
      own.s = make_sweep(plan_.problem, index / plan_.cut.all());
      own.b = box_at(plan_.cut, index % plan_.cut.all(), plan_.problem.n, own.s);
      if (!own.b.empty()) prepare(own, group);
    }
    if (own.b.empty()) return;
    const range panels = part(plan_.panels, plan_.column_parts, column_part);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) multiply_panel(own, group, panel);
  }

  void prepare(own_state& own, int64_t group) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides strides(is_backward(p) ? p.stride_y : p.stride_x);
    const slab_source from = {static_cast<const char*>(args_.a) + group * plan_.channels * kernel_.input_bytes,
                              strides.at, plan_.channels, kernel_.fill};
    if (plan_.in_place != 0) {
      own.layout = in_place_layout(own.s, strides);
      own.slab = reinterpret_cast<const float*>(from.image) + in_place_offset(own.s, strides, own.b);
    } else {
      own.layout = layout_of(own.s, own.b, plan_.pitch);
      if (own.s.taps() > 0) fill_slab(kernel_, from, own.s, own.b, own.layout, own.memory);
    }
    const image_strides to(is_backward(p) ? p.stride_x : p.stride_y);
    own.tile_count = tile_box(own.s, own.b, own.layout, to, tiler(own.tiles, (kernel_.traits.warp_tile_m + 1) / 2));
  }

  // Filter points begin to end of a phase, numbered with W innermost.
  void place_taps(own_state& own, int64_t begin, int64_t end, int64_t run_index, bool merged) const {
    const axis(&along)[3] = own.s.along;
    const kw_conv_problem& p = plan_.problem;
    const int64_t taps_w = merged ? 1 : along[2].taps;
    for (int64_t index = begin; index < end; ++index) {
      const int64_t at[3] = {index / taps_w / along[1].taps, index / taps_w % along[1].taps, index % taps_w};
      int64_t a = run_index * plan_.run, tap = 0;
      for (int dim = 0; dim < 3; ++dim) {
        a += own.layout.tap(dim, at[dim]);
        tap = tap * p.filter[dim] + along[dim].tap_first + at[dim] * along[dim].tap_period;
      }
      own.a_taps[index - begin] = a;
      own.b_taps[index - begin] =
          weights_at(run_index, tap, plan_.few != 0 ? plan_.columns : kernel_.traits.warp_tile_n);
    }
  }

  void multiply_panel(own_state& own, int64_t group, int64_t panel) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t nr = kernel_.traits.warp_tile_n, col = panel * nr;
    const axis& w = own.s.along[2];
    // Few channels: points that are neighbours along W and their channels are one longer run.
    const bool merged =
        plan_.few == 0 && plan_.run >= units_ && own.layout.stride[3] == units_ && w.tap_step == 1 && w.tap_period == 1;
    const int64_t taps = merged ? own.s.taps() / w.taps : own.s.taps();
    taps_block b = {};
    b.slab = own.slab;
    b.a_row = w.slab_step * own.layout.stride[3];
    b.tiles = own.tiles;
    b.tile_count = own.tile_count;
    b.a_taps = own.a_taps;
    b.b_taps = own.b_taps;
    b.b = plan_.few != 0 ? few_at(group) : panel_at(group, panel);
    b.cols = smaller(nr, plan_.columns - col);
    b.to = conv_output(kernel_, p, args_, group * plan_.columns + col);
    b.to.ldc *= w.step;
    b.first = true;
    for (int64_t run_index = 0; run_index == 0 || run_index * plan_.run < units_; ++run_index) {
      b.run = run_at(run_index) * (merged ? w.taps : 1);
      const int64_t each = larger(1, plan_.pass_steps / larger(1, b.run));
      for (int64_t tap = 0; tap == 0 || tap < taps; tap += each) {
        b.tap_count = smaller(each, taps - tap);
        b.last = tap + each >= taps && (run_index + 1) * plan_.run >= units_;
        b.partial = b.first && b.last ? nullptr : own.partial;
        place_taps(own, tap, tap + b.tap_count, run_index, merged);
        (plan_.few != 0 ? kernel_.few : kernel_.taps)(b);
        b.first = false;
      }
    }
  }

  const conv_kernel& kernel_;
  const sweep_plan& plan_;
  const kw_conv_args& args_;
  char* const memory_;
  const int64_t units_;
  tickets tickets_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_DRIVER_HPP
