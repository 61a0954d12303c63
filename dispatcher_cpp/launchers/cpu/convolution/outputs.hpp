// Where results go, and how lines of outputs are cut into register blocks.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_OUTPUTS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_OUTPUTS_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "launchers/cpu/convolution/sweep_plan.hpp"

namespace kernelwright::cpu {

inline output scaled_output(const kw_conv_problem& p, void* d, int64_t ld) {
  output to = {};
  to.d = d;
  to.c = p.beta == 0 ? nullptr : d;
  to.ldc = ld;
  to.alpha64 = p.alpha;
  to.beta64 = p.beta;
  to.alpha = static_cast<float>(p.alpha);
  to.beta = static_cast<float>(p.beta);
  return to;
}

// dw from an element on, with lines `ld` elements apart.
inline output weight_output(const conv_kernel& kernel, const kw_conv_problem& p, const kw_conv_args& args,
                            int64_t element, int64_t ld) {
  return scaled_output(p, static_cast<char*>(args.d) + element * kernel.output_bytes, ld);
}

// The result of forward or backward data at a channel of its first point. ldc is the distance of points along W.
inline output conv_output(const conv_kernel& kernel, const kw_conv_problem& p, const kw_conv_args& args,
                          int64_t channel) {
  const int64_t bytes = kernel.output_bytes;
  output to =
      scaled_output(p, static_cast<char*>(args.d) + channel * bytes, is_backward(p) ? p.stride_x[4] : p.stride_y[4]);
  uint32_t count = 0;
  if (p.bias != 0) to.multi_d[count++] = static_cast<const char*>(args.bias) + channel * bytes;
  if (p.residual != 0) {
    to.multi_d[count] = static_cast<const char*>(args.residual) + channel * bytes;
    to.ld_multi_d[count++] = to.ldc;
  }
  to.num_d = count;
  to.activation = p.activation;
  return to;
}

// The output, begun `elements` further on; a bias is one line for all points and stays.
inline void move_output(const conv_kernel& kernel, int64_t elements, output* to) {
  const int64_t bytes = elements * kernel.output_bytes;
  to->d = static_cast<char*>(to->d) + bytes;
  if (to->c != nullptr) to->c = static_cast<const char*>(to->c) + bytes;
  for (int n = 0; n < KW_MAX_D; ++n) {
    if (to->ld_multi_d[n] != 0) to->multi_d[n] = static_cast<const char*>(to->multi_d[n]) + bytes;
  }
}

// Collects lines of outputs as register blocks of two runs: full runs find each other, and what is left of lines finds
// a full run.
class tiler {
 public:
  tiler(pixel_tile* tiles, int64_t half) : tiles_(tiles), half_(half) {}

  void add_line(int64_t a, int64_t a_row, int64_t d, int64_t d_row, int64_t outputs) {
    for (int64_t i = 0; i < outputs; i += half_) {
      const run one = {a + i * a_row, d + i * d_row, smaller(half_, outputs - i)};
      if (one.rows < half_) {
        add_short(one);
      } else if (full_.rows != 0) {
        emit(full_, one);
        full_.rows = 0;
      } else if (short_.rows != 0) {
        emit(one, short_);
        short_.rows = 0;
      } else {
        full_ = one;
      }
    }
  }

  // The number of blocks.
  int64_t finish() {
    if (full_.rows != 0) emit(full_, run());
    if (short_.rows != 0) emit(short_, run());
    full_.rows = short_.rows = 0;
    return count_;
  }

 private:
  struct run {
    int64_t a = 0, d = 0, rows = 0;
  };

  void add_short(const run& one) {
    if (full_.rows != 0) {
      emit(full_, one);
      full_.rows = 0;
      return;
    }
    if (short_.rows != 0) emit(short_, run());
    short_ = one;
  }

  void emit(const run& one, const run& two) {
    tiles_[count_++] = {
        {one.a, two.rows != 0 ? two.a : one.a}, {one.d, two.rows != 0 ? two.d : one.d}, {one.rows, two.rows}};
  }

  pixel_tile* tiles_;
  int64_t half_, count_ = 0;
  run full_, short_;
};

// Register blocks of a box of outputs, whose elements lie `to` apart; returns their number.
inline int64_t tile_box(const sweep& s, const box& b, const slab_layout& layout, const image_strides& to, tiler tiles) {
  const auto slab_at = [&](int dim, int64_t i) { return i * s.along[dim].slab_step * layout.stride[dim + 1]; };
  const auto output_at = [&](int dim, int64_t i) {
    return (s.along[dim].first + (b.first[dim + 1] + i) * s.along[dim].step) * to.at[dim + 1];
  };
  const int64_t a_row = s.along[2].slab_step * layout.stride[3], d_row = s.along[2].step * to.at[3];
  for (int64_t n = 0; n < b.size[0]; ++n) {
    for (int64_t d = 0; d < b.size[1]; ++d) {
      for (int64_t h = 0; h < b.size[2]; ++h) {
        const int64_t a = n * layout.stride[0] + slab_at(0, d) + slab_at(1, h);
        const int64_t at = (b.first[0] + n) * to.at[0] + output_at(0, d) + output_at(1, h) + output_at(2, 0);
        tiles.add_line(a, a_row, at, d_row, b.size[3]);
      }
    }
  }
  return tiles.finish();
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_OUTPUTS_HPP
