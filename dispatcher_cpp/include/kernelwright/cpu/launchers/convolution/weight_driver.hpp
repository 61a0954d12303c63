// Backward weight with however many threads come: tasks are handed out in one fixed order by a ticket counter.
//
// The first tickets each sum some tiles of one slice in the workspace; the others add slices up and write dw.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP

#include "kernelwright/cpu/launchers/common/thread_pool.hpp"
#include "kernelwright/cpu/launchers/convolution/outputs.hpp"
#include "kernelwright/cpu/launchers/convolution/slab.hpp"
#include "kernelwright/cpu/launchers/convolution/weight_plan.hpp"

namespace kernelwright::cpu {

class weight_job {
 public:
  weight_job(const conv_kernel& kernel, const weight_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel),
        plan_(plan),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        sweep_(make_sweep(plan.problem, 0)),
        next_(0),
        done_(0) {}

  void run() { run_in_pool(threads_now(plan_.threads), &weight_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    weight_job& job = *static_cast<weight_job*>(context);
    const weight_plan& plan = job.plan_;
    const int64_t total = plan.multiply_tasks + plan.finish_tasks;
    char* const own = job.memory_ + plan.private_offset + index * plan.private_bytes;
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      if (ticket < plan.multiply_tasks) {
        job.multiply(ticket, reinterpret_cast<float*>(own), reinterpret_cast<float*>(own + plan.dy_offset));
      } else {
        wait_until(job.done_, plan.multiply_tasks);
        job.finish(ticket - plan.multiply_tasks);
      }
      __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) wait_until(job.done_, total);
  }

  int64_t tile_units() const { return int64_t{kernel_.traits.warp_tile_m} * kernel_.traits.warp_tile_n; }

  // Tiles of a group: one column of panels after another.
  float* tile_at(int64_t slice, int64_t group, int64_t column, int64_t row) const {
    const int64_t tile = group * plan_.tiles() + column * plan_.row_panels + row;
    return reinterpret_cast<float*>(memory_ + static_cast<uint64_t>(slice) * plan_.slice_bytes) + tile * tile_units();
  }

  void multiply(int64_t task, float* slab, float* dy) const {
    const kw_conv_problem& p = plan_.problem;
    const range rows = part(plan_.row_panels, plan_.row_parts, task % plan_.row_parts);
    task /= plan_.row_parts;
    const int64_t column_part = task % plan_.column_parts;
    task /= plan_.column_parts;
    const range panels = chunk_at(task % plan_.chunks);
    task /= plan_.chunks;
    const range columns = part(plan_.taps * (panels.end - panels.begin), plan_.column_parts, column_part);
    const int64_t group = task % p.groups, slice = task / p.groups;
    const range indices = part(plan_.cut.all(), plan_.slices, slice);
    for (int64_t index = indices.begin; index < indices.end; ++index) {
      const box b = box_at(plan_.cut, index, p.n, sweep_);
      weight_block w = {};
      w.first = index == indices.begin;
      w.a_stride[3] = kernel_.traits.warp_tile_m;
      w.a_stride[2] = (rows.end - rows.begin) * panel_units(kernel_.traits.warp_tile_m, b.size[3]);
      w.a_stride[1] = b.size[2] * w.a_stride[2];
      w.a_stride[0] = b.size[1] * w.a_stride[1];
      const slab_layout layout = place(b, group, panels, slab, w);
      pack_dy(b, group, rows, w.a_stride[2], dy);
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        multiply_column(w, layout, slice, group, panels, column, rows, dy);
      }
    }
  }

  // Panels of columns of a chunk of channels.
  range chunk_at(int64_t chunk) const {
    const int64_t begin = chunk * plan_.chunk_panels;
    return {begin, smaller(plan_.column_panels, begin + plan_.chunk_panels)};
  }

  // Fills the slab unless the image can be read in place; w.b is then where the first filter point begins.
  slab_layout place(const box& b, int64_t group, const range& panels, float* slab, weight_block& w) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides strides(p.stride_x);
    const int64_t per_group = p.c / p.groups, nr = kernel_.traits.warp_tile_n;
    const int64_t first = plan_.merged != 0 ? 0 : panels.begin * nr;
    const int64_t channels = plan_.merged != 0 ? per_group : smaller(per_group, panels.end * nr) - first;
    const slab_source from = {static_cast<const char*>(args_.a) + (group * per_group + first) * kernel_.input_bytes,
                              strides.at, channels, kernel_.fill};
    slab_layout layout = {};
    w.b = slab;
    if (plan_.in_place != 0) {
      layout = in_place_layout(sweep_, strides);
      w.b = reinterpret_cast<const float*>(from.image) + in_place_offset(sweep_, strides, b);
    } else {
      layout = layout_of(sweep_, b, plan_.pitch);
      fill_slab(kernel_, from, sweep_, b, layout, slab);
    }
    for (int i = 0; i < 4; ++i) {
      w.count[i] = b.size[i];
      w.b_stride[i] = layout.stride[i] * (i == 0 ? 1 : sweep_.along[i - 1].slab_step);
    }
    return layout;
  }

  void pack_dy(const box& b, int64_t group, const range& rows, int64_t line_units, float* dy) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t mr = kernel_.traits.warp_tile_m;
    const image_strides strides(p.stride_y);
    const int64_t row = group * plan_.rows + rows.begin * mr;
    const int64_t count = smaller(plan_.rows, rows.end * mr) - rows.begin * mr;
    for (int64_t n = 0; n < b.size[0]; ++n) {
      for (int64_t d = 0; d < b.size[1]; ++d) {
        for (int64_t h = 0; h < b.size[2]; ++h, dy += line_units) {
          const int64_t at = (b.first[0] + n) * strides.at[0] + (b.first[1] + d) * strides.at[1] +
                             (b.first[2] + h) * strides.at[2] + b.first[3] * strides.at[3] + row;
          kernel_.pack_dy(dy, static_cast<const char*>(args_.b) + at * kernel_.input_bytes, strides.at[3], count,
                          b.size[3]);
        }
      }
    }
  }

  // Column `local` of a chunk: one filter point after another, in each the chunk's panels.
  void multiply_column(weight_block w, const slab_layout& layout, int64_t slice, int64_t group, const range& panels,
                       int64_t local, const range& rows, const float* dy) const {
    const int64_t mr = kernel_.traits.warp_tile_m, nr = kernel_.traits.warp_tile_n;
    const int64_t count = panels.end - panels.begin, tap = local / count, panel = panels.begin + local % count;
    const int64_t column = tap * plan_.column_panels + panel, col = panel * nr;
    const axis(&along)[3] = sweep_.along;
    const int64_t taps_w = plan_.merged != 0 ? 1 : along[2].taps;
    const int64_t at[3] = {tap / taps_w / along[1].taps, tap / taps_w % along[1].taps, tap % taps_w};
    for (int dim = 0; dim < 3; ++dim) {
      w.b += layout.tap(dim, at[dim]);
    }
    w.b += col - panels.begin * nr;
    w.cols = smaller(nr, plan_.columns - col);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      w.a = dy + (row - rows.begin) * panel_units(mr, w.count[3]);
      w.rows = smaller(mr, plan_.rows - row * mr);
      w.sums = tile_at(slice, group, column, row);
      kernel_.weight(w);
    }
  }

  void finish(int64_t task) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t mr = kernel_.traits.warp_tile_m, nr = kernel_.traits.warp_tile_n;
    const int64_t ld = kw_conv_filter_points(&p) * (p.c / p.groups);
    const range tiles = part(p.groups * plan_.tiles(), plan_.finish_tasks, task);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const int64_t group = tile / plan_.tiles(), in_group = tile % plan_.tiles();
      const int64_t column = in_group / plan_.row_panels, row = in_group % plan_.row_panels * mr;
      const int64_t tap = column / plan_.column_panels, col = column % plan_.column_panels * nr;
      finish_block f = {};
      f.sums = tile_at(0, group, column, row / mr);
      f.others = tile_at(1, group, column, row / mr);
      f.ld = nr;
      f.rows = smaller(mr, plan_.rows - row);
      f.cols = smaller(nr, plan_.columns - col);
      f.slices = plan_.slices;
      f.slice_stride = static_cast<int64_t>(plan_.slice_bytes / 4);
      f.to = weight_output(kernel_, p, args_, (group * plan_.rows + row) * ld + tap * plan_.columns + col, ld);
      kernel_.finish(f);
    }
  }

  const conv_kernel& kernel_;
  const weight_plan& plan_;
  const kw_conv_args& args_;
  char* const memory_;
  const sweep sweep_;
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP
