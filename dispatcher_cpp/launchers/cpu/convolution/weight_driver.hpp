// Backward weight with vectors along the channels of x: rows of a register block are channels of dy, which are packed.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP

#include "launchers/cpu/convolution/weight_job.hpp"

namespace kernelwright::cpu {

class straight_weights : public weight_memory {
 public:
  using plan_type = weight_plan;
  // Of a task: panels of rows, and of a chunk's panels in all filter points.
  struct share {
    range rows, columns, panels;
  };

  straight_weights(const weight_memory& memory, const weight_plan& plan) : weight_memory(memory), plan_(plan) {}

  // Leaves group and slice in *task.
  share share_of(int64_t* task) const {
    share mine = {};
    mine.rows = part(plan_.row_panels, plan_.row_parts, *task % plan_.row_parts);
    *task /= plan_.row_parts;
    const int64_t column_part = *task % plan_.column_parts;
    *task /= plan_.column_parts;
    mine.panels = chunk_at(*task % plan_.chunks);
    *task /= plan_.chunks;
    mine.columns = part(plan_.taps * (mine.panels.end - mine.panels.begin), plan_.column_parts, column_part);
    return mine;
  }

  void multiply(const box& b, int64_t slice, int64_t group, const share& of, float* slab, float* dy,
                weight_block w) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t mr = kernel.traits.warp_tile_m, nr = kernel.traits.warp_tile_n, per_group = p.c / p.groups;
    w.a_stride[3] = mr;
    w.a_stride[2] = (of.rows.end - of.rows.begin) * panel_units(mr, b.size[3]);
    w.a_stride[1] = b.size[2] * w.a_stride[2];
    w.a_stride[0] = b.size[1] * w.a_stride[1];
    const int64_t first = plan_.merged != 0 ? 0 : of.panels.begin * nr;
    const int64_t channels = plan_.merged != 0 ? per_group : smaller(per_group, of.panels.end * nr) - first;
    const slab_layout layout = place_x(b, group, first, channels, slab, &w.b, w.b_stride);
    pack_dy(b, group, of.rows, w.a_stride[2], dy);
    for (int64_t column = of.columns.begin; column < of.columns.end; ++column) {
      multiply_column(w, layout, slice, group, of.panels, column, of.rows, dy);
    }
  }

  void finish(int64_t group, int64_t tile, float*) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t mr = kernel.traits.warp_tile_m, nr = kernel.traits.warp_tile_n;
    const int64_t ld = kw_conv_filter_points(&p) * (p.c / p.groups);
    const int64_t column = tile / plan_.row_panels, row = tile % plan_.row_panels * mr;
    const int64_t tap = column / plan_.column_panels, col = column % plan_.column_panels * nr;
    finish_block f = {};
    f.sums = tile_at(0, group * plan_.tiles() + tile);
    f.others = tile_at(1, group * plan_.tiles() + tile);
    f.ld = nr;
    f.rows = smaller(mr, plan_.rows - row);
    f.cols = smaller(nr, plan_.columns - col);
    f.slices = plan_.slices;
    f.slice_stride = static_cast<int64_t>(plan_.slice_bytes / 4);
    f.to = weight_output(kernel, p, args, (group * plan_.rows + row) * ld + tap * plan_.columns + col, ld);
    kernel.finish(f);
  }

 private:
  // Panels of columns of a chunk of channels.
  range chunk_at(int64_t chunk) const {
    const int64_t begin = chunk * plan_.chunk_panels;
    return {begin, smaller(plan_.column_panels, begin + plan_.chunk_panels)};
  }

  void pack_dy(const box& b, int64_t group, const range& rows, int64_t line_units, float* dy) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t mr = kernel.traits.warp_tile_m;
    const image_strides strides(p.stride_y);
    const int64_t row = group * plan_.rows + rows.begin * mr;
    const int64_t count = smaller(plan_.rows, rows.end * mr) - rows.begin * mr;
    for (int64_t n = 0; n < b.size[0]; ++n) {
      for (int64_t d = 0; d < b.size[1]; ++d) {
        for (int64_t h = 0; h < b.size[2]; ++h, dy += line_units) {
          const int64_t at = (b.first[0] + n) * strides.at[0] + (b.first[1] + d) * strides.at[1] +
                             (b.first[2] + h) * strides.at[2] + b.first[3] * strides.at[3] + row;
          kernel.pack_dy(dy, static_cast<const char*>(args.b) + at * kernel.input_bytes, strides.at[3], count,
                         b.size[3]);
        }
      }
    }
  }

  // Column `local` of a chunk: one filter point after another, in each the chunk's panels. Tiles of a group are one
  // column of panels after another.
  void multiply_column(weight_block w, const slab_layout& layout, int64_t slice, int64_t group, const range& panels,
                       int64_t local, const range& rows, const float* dy) const {
    const int64_t mr = kernel.traits.warp_tile_m, nr = kernel.traits.warp_tile_n;
    const int64_t count = panels.end - panels.begin, tap = local / count, panel = panels.begin + local % count;
    const int64_t column = tap * plan_.column_panels + panel, col = panel * nr;
    int64_t at[3];
    tap_at(tap, at);
    for (int dim = 0; dim < 3; ++dim) w.b += layout.tap(dim, at[dim]);
    w.b += col - panels.begin * nr;
    w.cols = smaller(nr, plan_.columns - col);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      w.a = dy + (row - rows.begin) * panel_units(mr, w.count[3]);
      w.rows = smaller(mr, plan_.rows - row * mr);
      w.sums = tile_at(slice, group * plan_.tiles() + column * plan_.row_panels + row);
      kernel.weight(w);
    }
  }

  const weight_plan& plan_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_DRIVER_HPP
