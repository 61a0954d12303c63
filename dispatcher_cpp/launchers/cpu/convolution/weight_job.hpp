// Backward weight with however many threads come, whichever operand has the vectors.
//
// The first tasks each sum some tiles of one slice in the workspace; the others add slices up and write dw.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_JOB_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_JOB_HPP

#include "launchers/cpu/common/tickets.hpp"
#include "launchers/cpu/convolution/outputs.hpp"
#include "launchers/cpu/convolution/slab.hpp"
#include "launchers/cpu/convolution/weight_plan.hpp"

namespace kernelwright::cpu {

// What operands of both ways have.
struct weight_memory {
  const conv_kernel& kernel;
  const weight_cut& cut;
  const kw_conv_args& args;
  char* memory;
  sweep s;

  float* tile_at(int64_t slice, int64_t tile) const {
    const int64_t units = int64_t{kernel.traits.warp_tile_m} * kernel.traits.warp_tile_n;
    return reinterpret_cast<float*>(memory + static_cast<uint64_t>(slice) * cut.slice_bytes) + tile * units;
  }

  // Where a filter point, or a merged run of them, begins: points of D, H, W.
  void tap_at(int64_t tap, int64_t (&at)[3]) const {
    const int64_t w = cut.merged != 0 ? 1 : s.along[2].taps;
    at[0] = tap / w / s.along[1].taps, at[1] = tap / w % s.along[1].taps, at[2] = tap % w;
  }

  // Fills the slab with channels of a group unless the image can be read in place. `from` is then where the first
  // filter point begins, and `steps` from one output to the next.
  slab_layout place_x(const box& b, int64_t group, int64_t first, int64_t channels, float* slab, const float** from,
                      int64_t (&steps)[4]) const {
    const kw_conv_problem& p = cut.problem;
    const image_strides strides(p.stride_x);
    const slab_source source = {
        static_cast<const char*>(args.a) + (group * (p.c / p.groups) + first) * kernel.input_bytes, strides.at,
        channels, kernel.fill};
    slab_layout layout = {};
    *from = slab;
    if (cut.x_in_place != 0) {
      layout = in_place_layout(s, strides);
      *from = reinterpret_cast<const float*>(source.image) + in_place_offset(s, strides, b);
    } else {
      layout = layout_of(s, b, cut.pitch);
      fill_slab(kernel, source, s, b, layout, slab);
    }
    for (int i = 0; i < 4; ++i) steps[i] = layout.stride[i] * (i == 0 ? 1 : s.along[i - 1].slab_step);
    return layout;
  }
};

// `Operands` says which of them rows and columns of tiles are: straight_weights or turned_weights.
template <typename Operands>
class weight_job {
 public:
  weight_job(const conv_kernel& kernel, const typename Operands::plan_type& plan, const kw_conv_args& args,
             void* workspace)
      : plan_(plan),
        operands_(weight_memory{kernel, plan, args, static_cast<char*>(workspace), make_sweep(plan.problem, 0)}, plan) {
  }

  void run() { run_parts(threads_now(plan_.threads), &weight_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    weight_job& job = *static_cast<weight_job*>(context);
    const weight_cut& plan = job.plan_;
    char* const own = job.operands_.memory + plan.private_offset + index * plan.private_bytes;
    auto* const slab = reinterpret_cast<float*>(own);
    auto* const dy = reinterpret_cast<float*>(own + plan.dy_offset);
    const int64_t ends[] = {plan.multiply_tasks, plan.multiply_tasks + plan.finish_tasks};
    job.tickets_.hand_out(ends, index, [&](int stage, int64_t task) {
      if (stage == 0) {
        job.multiply(task, slab, dy);
      } else {
        job.finish(task, dy);
      }
    });
  }

  void multiply(int64_t task, float* slab, float* dy) const {
    const int64_t groups = plan_.problem.groups;
    const typename Operands::share share = operands_.share_of(&task);
    const int64_t group = task % groups, slice = task / groups;
    const range indices = part(plan_.cut.all(), plan_.slices, slice);
    for (int64_t index = indices.begin; index < indices.end; ++index) {
      const box b = box_at(plan_.cut, index, plan_.problem.n, operands_.s);
      weight_block w = {};
      w.first = index == indices.begin;
      for (int i = 0; i < 4; ++i) w.count[i] = b.size[i];
      operands_.multiply(b, slice, group, share, slab, dy, w);
    }
  }

  void finish(int64_t task, float* own) const {
    const range tiles = part(plan_.problem.groups * plan_.tiles(), plan_.finish_tasks, task);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      operands_.finish(tile / plan_.tiles(), tile % plan_.tiles(), own);
    }
  }

  const typename Operands::plan_type& plan_;
  const Operands operands_;
  tickets tickets_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_JOB_HPP
