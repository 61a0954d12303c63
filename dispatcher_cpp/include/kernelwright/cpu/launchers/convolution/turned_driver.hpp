// Backward weight with vectors along the channels of dy, with however many threads come: see turned_plan.hpp.
//
// Rows of a register block are channels of x, which a slab (or the image) has side by side and nothing packs. The first
// tickets each sum some tiles of one slice in the workspace; the others add slices up, turn tiles round and write dw.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP

#include "kernelwright/cpu/launchers/common/thread_pool.hpp"
#include "kernelwright/cpu/launchers/convolution/outputs.hpp"
#include "kernelwright/cpu/launchers/convolution/slab.hpp"
#include "kernelwright/cpu/launchers/convolution/turned_plan.hpp"

namespace kernelwright::cpu {

class turned_job {
 public:
  turned_job(const conv_kernel& kernel, const turned_plan& plan, const kw_conv_args& args, void* workspace)
      : kernel_(kernel),
        plan_(plan),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        sweep_(make_sweep(plan.problem, 0)),
        next_(0),
        done_(0) {}

  void run() { run_in_pool(threads_now(plan_.threads), &turned_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    turned_job& job = *static_cast<turned_job*>(context);
    const turned_plan& plan = job.plan_;
    const int64_t total = plan.multiply_tasks + plan.finish_tasks;
    char* const own = job.memory_ + plan.private_offset + index * plan.private_bytes;
    auto* const slab = reinterpret_cast<float*>(own);
    auto* const dy = reinterpret_cast<float*>(own + plan.dy_offset);
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      if (ticket < plan.multiply_tasks) {
        job.multiply(ticket, slab, dy);
      } else {
        wait_until(job.done_, plan.multiply_tasks);
        job.finish(ticket - plan.multiply_tasks, dy);
      }
      __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) wait_until(job.done_, total);
  }

  // Tiles of a group: those of one panel of columns, filter point by filter point, after another.
  float* tile_at(int64_t slice, int64_t tile) const {
    const int64_t units = int64_t{kernel_.traits.warp_tile_m} * kernel_.traits.warp_tile_n;
    return reinterpret_cast<float*>(memory_ + static_cast<uint64_t>(slice) * plan_.slice_bytes) + tile * units;
  }
  int64_t rows_of(int64_t panel) const { return smaller(plan_.panel_rows, plan_.rows - panel * plan_.panel_rows); }
  int64_t columns_of(int64_t panel) const {
    const int64_t nr = kernel_.traits.warp_tile_n;
    return smaller(nr, plan_.columns - panel * nr);
  }

  void multiply(int64_t task, float* slab, float* dy) const {
    const kw_conv_problem& p = plan_.problem;
    const range rows = part(plan_.taps * plan_.row_panels, plan_.row_parts, task % plan_.row_parts);
    task /= plan_.row_parts;
    const range columns = part(plan_.column_panels, plan_.column_parts, task % plan_.column_parts);
    task /= plan_.column_parts;
    const int64_t group = task % p.groups, slice = task / p.groups;
    const range indices = part(plan_.cut.all(), plan_.slices, slice);
    for (int64_t index = indices.begin; index < indices.end; ++index) {
      const box b = box_at(plan_.cut, index, p.n, sweep_);
      weight_block w = {};
      w.first = index == indices.begin;
      for (int i = 0; i < 4; ++i) w.count[i] = b.size[i];
      const slab_layout layout = place_x(b, group, slab, w);
      place_dy(b, group, dy, w);
      for (int64_t panel = columns.begin; panel < columns.end; ++panel) {
        multiply_panel(w, layout, slice, group, panel, rows);
      }
    }
  }

  slab_layout place_x(const box& b, int64_t group, float* slab, weight_block& w) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides strides(p.stride_x);
    const int64_t channels = p.c / p.groups;
    const slab_source from = {static_cast<const char*>(args_.a) + group * channels * kernel_.input_bytes, strides.at,
                              channels, kernel_.fill};
    slab_layout layout = {};
    w.a = slab;
    if (plan_.x_in_place != 0) {
      layout = in_place_layout(sweep_, strides);
      w.a = reinterpret_cast<const float*>(from.image) + in_place_offset(sweep_, strides, b);
    } else {
      layout = layout_of(sweep_, b, plan_.pitch);
      fill_slab(kernel_, from, sweep_, b, layout, slab);
    }
    for (int i = 0; i < 4; ++i) {
      w.a_stride[i] = layout.stride[i] * (i == 0 ? 1 : sweep_.along[i - 1].slab_step);
    }
    return layout;
  }

  void place_dy(const box& b, int64_t group, float* dy, weight_block& w) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides strides(p.stride_y);
    int64_t first = group * plan_.columns;
    for (int i = 0; i < 4; ++i) first += b.first[i] * strides.at[i];
    const char* image = static_cast<const char*>(args_.b) + first * kernel_.input_bytes;
    if (plan_.dy_in_place != 0) {
      for (int i = 0; i < 4; ++i) w.b_stride[i] = strides.at[i];
      w.b = reinterpret_cast<const float*>(image);
      return;
    }
    w.b = dy;
    w.b_stride[3] = plan_.dy_pitch;
    for (int i = 2; i >= 0; --i) w.b_stride[i] = w.b_stride[i + 1] * b.size[i + 1];
    for (int64_t n = 0; n < b.size[0]; ++n) {
      for (int64_t d = 0; d < b.size[1]; ++d) {
        for (int64_t h = 0; h < b.size[2]; ++h, dy += w.b_stride[2]) {
          const int64_t at = n * strides.at[0] + d * strides.at[1] + h * strides.at[2];
          kernel_.fill(dy, plan_.dy_pitch, image + at * kernel_.input_bytes, strides.at[3], b.size[3], plan_.columns);
        }
      }
    }
  }

  void multiply_panel(weight_block w, const slab_layout& layout, int64_t slice, int64_t group, int64_t panel,
                      const range& rows) const {
    const axis(&along)[3] = sweep_.along;
    const int64_t taps_w = plan_.merged != 0 ? 1 : along[2].taps;
    const float* x = w.a;
    w.b += panel * kernel_.traits.warp_tile_n;
    w.cols = columns_of(panel);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t tap = row / plan_.row_panels, part_of_run = row % plan_.row_panels;
      const int64_t at[3] = {tap / taps_w / along[1].taps, tap / taps_w % along[1].taps, tap % taps_w};
      w.a = x + part_of_run * plan_.panel_rows;
      for (int dim = 0; dim < 3; ++dim) w.a += layout.tap(dim, at[dim]);
      w.rows = rows_of(part_of_run);
      w.sums = tile_at(slice, group * plan_.tiles() + panel * plan_.taps * plan_.row_panels + row);
      kernel_.weight(w);
    }
  }

  void finish(int64_t task, float* turned) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t nr = kernel_.traits.warp_tile_n, of_panel = plan_.taps * plan_.row_panels;
    const int64_t ld = kw_conv_filter_points(&p) * (p.c / p.groups);
    const range tiles = part(p.groups * plan_.tiles(), plan_.finish_tasks, task);
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const int64_t group = tile / plan_.tiles(), in_group = tile % plan_.tiles();
      const int64_t col = in_group / of_panel * nr, tap = in_group % of_panel / plan_.row_panels;
      const int64_t row = in_group % plan_.row_panels;
      finish_block f = {};
      f.sums = turned;
      f.slices = 1;
      f.rows = columns_of(in_group / of_panel);
      f.ld = f.cols = rows_of(row);
      add_slices(tile, f.cols, f.rows, turned);
      f.to = weight_output(kernel_, p, args_,
                           (group * plan_.columns + col) * ld + tap * plan_.rows + row * plan_.panel_rows, ld);
      kernel_.finish(f);
    }
  }

  // One slice after the other; rows of a tile become columns.
  void add_slices(int64_t tile, int64_t rows, int64_t columns, float* turned) const {
    const int64_t nr = kernel_.traits.warp_tile_n;
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      const float* sums = tile_at(slice, tile);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          float& to = turned[j * rows + i];
          to = slice == 0 ? sums[i * nr + j] : to + sums[i * nr + j];
        }
      }
    }
  }

  const conv_kernel& kernel_;
  const turned_plan& plan_;
  const kw_conv_args& args_;
  char* const memory_;
  const sweep sweep_;
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP
