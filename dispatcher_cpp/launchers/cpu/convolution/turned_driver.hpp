// Backward weight with vectors along the channels of dy: see weight_plan.hpp.
//
// Rows of a register block are channels of x, which a slab (or the image) has side by side and nothing packs.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP

#include "launchers/cpu/convolution/weight_job.hpp"
#include "launchers/cpu/convolution/weight_plan.hpp"

namespace kernelwright::cpu {

class turned_weights : public weight_memory {
 public:
  using plan_type = turned_plan;
  // Of a task: panels of rows in all filter points, and panels of columns.
  struct share {
    range rows, columns;
  };

  turned_weights(const weight_memory& memory, const turned_plan& plan) : weight_memory(memory), plan_(plan) {}

  // Leaves group and slice in *task.
  share share_of(int64_t* task) const {
    share mine = {};
    mine.rows = part(plan_.taps * plan_.row_panels, plan_.row_parts, *task % plan_.row_parts);
    *task /= plan_.row_parts;
    mine.columns = part(plan_.column_panels, plan_.column_parts, *task % plan_.column_parts);
    *task /= plan_.column_parts;
    return mine;
  }

  void multiply(const box& b, int64_t slice, int64_t group, const share& of, float* slab, float* dy,
                weight_block w) const {
    const kw_conv_problem& p = plan_.problem;
    const slab_layout layout = place_x(b, group, 0, p.c / p.groups, slab, &w.a, w.a_stride);
    place_dy(b, group, dy, w);
    for (int64_t panel = of.columns.begin; panel < of.columns.end; ++panel) {
      multiply_panel(w, layout, slice, group, panel, of.rows);
    }
  }

  void finish(int64_t group, int64_t tile, float* turned) const {
    const kw_conv_problem& p = plan_.problem;
    const int64_t nr = kernel.traits.warp_tile_n, of_panel = plan_.taps * plan_.row_panels;
    const int64_t ld = kw_conv_filter_points(&p) * (p.c / p.groups);
    const int64_t col = tile / of_panel * nr, tap = tile % of_panel / plan_.row_panels, row = tile % plan_.row_panels;
    finish_block f = {};
    f.sums = turned;
    f.slices = 1;
    f.rows = columns_of(tile / of_panel);
    f.ld = f.cols = rows_of(row);
    add_slices(group * plan_.tiles() + tile, f.cols, f.rows, turned);
    f.to = weight_output(kernel, p, args,
                         (group * plan_.columns + col) * ld + tap * plan_.rows + row * plan_.panel_rows, ld);
    kernel.finish(f);
  }

 private:
  int64_t rows_of(int64_t panel) const { return smaller(plan_.panel_rows, plan_.rows - panel * plan_.panel_rows); }
  int64_t columns_of(int64_t panel) const {
    const int64_t nr = kernel.traits.warp_tile_n;
    return smaller(nr, plan_.columns - panel * nr);
  }

  void place_dy(const box& b, int64_t group, float* dy, weight_block& w) const {
    const kw_conv_problem& p = plan_.problem;
    const image_strides strides(p.stride_y);
    int64_t first = group * plan_.columns;
    for (int i = 0; i < 4; ++i) first += b.first[i] * strides.at[i];
    const char* image = static_cast<const char*>(args.b) + first * kernel.input_bytes;
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
          kernel.fill(dy, plan_.dy_pitch, image + at * kernel.input_bytes, strides.at[3], b.size[3], plan_.columns);
        }
      }
    }
  }

  // Tiles of a group: those of one panel of columns, filter point by filter point, after another.
  void multiply_panel(weight_block w, const slab_layout& layout, int64_t slice, int64_t group, int64_t panel,
                      const range& rows) const {
    const float* x = w.a;
    w.b += panel * kernel.traits.warp_tile_n;
    w.cols = columns_of(panel);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t part_of_run = row % plan_.row_panels;
      int64_t at[3];
      tap_at(row / plan_.row_panels, at);
      w.a = x + part_of_run * plan_.panel_rows;
      for (int dim = 0; dim < 3; ++dim) w.a += layout.tap(dim, at[dim]);
      w.rows = rows_of(part_of_run);
      w.sums = tile_at(slice, group * plan_.tiles() + panel * plan_.taps * plan_.row_panels + row);
      kernel.weight(w);
    }
  }

  // One slice after the other; rows of a tile become columns.
  void add_slices(int64_t tile, int64_t rows, int64_t columns, float* turned) const {
    const int64_t nr = kernel.traits.warp_tile_n;
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

  const turned_plan& plan_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_DRIVER_HPP
