// What one compiled CPU kernel of convolution hands to the drivers that block, schedule and thread it.
//
// Images are copied into a slab: a zero-padded box of points with the channels of one group, in the units of
// gemm/kernel.hpp (four bytes: one fp32 value, or two bf16 that one instruction sums). The multiplication then reads a
// point of the slab for each filter point at a fixed distance, without a look at the image's edges. Weights are packed
// in panels of warp_tile_n columns, filter point by filter point. Sizes are in elements unless a name says units.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_KERNEL_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_KERNEL_HPP

#include "kernelwright/convolution.h"
#include "kernelwright/cpu/gemm/kernel.hpp"

namespace kernelwright::cpu {

// Two runs of neighbouring outputs of one register block; the second is empty unless the first has the most rows.
struct pixel_tile {
  int64_t a[2];     // units from the start of the slab to the point that the first filter point meets
  int64_t d[2];     // elements from the start of the output
  int64_t rows[2];  // at most half of warp_tile_m, rounded up
};

// Outputs of a pixel block and one panel of channels: to = act(alpha * sum over taps of slab · weights …).
struct taps_block {
  const float* slab;
  int64_t a_row;  // units from one output of a run to the next
  const pixel_tile* tiles;
  int64_t tile_count;
  const int64_t* a_taps;   // units to the point of each filter point
  const int64_t* b_taps;   // units to its weights in the panel
  int64_t tap_count, run;  // units of channels at each filter point
  const float* b;
  int64_t cols;
  output to;       // of the panel's first channel; ldc is the distance of neighbours of a run
  float* partial;  // sums over the blocks of K done so far, one register block after another; null if K is one block
  bool first, last;
};

// Channels written that are too few for vectors of them, if as many as a vector are read.
constexpr int64_t kFewColumns = 4;

// Some of dw, summed over a box of outputs: values of `a` that are broadcast (its rows) times vectors of `b` (its
// columns). Rows are channels of dy, packed in panels of warp_tile_m, and columns those of x, or the other way round.
struct weight_block {
  const float* a;       // of the first output
  const float* b;       // likewise, at the panel's first column
  int64_t count[4];     // outputs of the box: images, D, H, W
  int64_t a_stride[4];  // units from one to the next
  int64_t b_stride[4];
  int64_t rows, cols;
  float* sums;  // warp_tile_m x warp_tile_n
  bool first;   // else they are added to
};

// A filter point of a direct kernel, and one of the channels of its group.
struct lanes_tap {
  int64_t x;        // units from the point that the first filter point meets
  int64_t w;        // units to its vector of weights, or of their sums
  int64_t channel;  // in the group
};

// Outputs of a run of a register block of direct kernels: two runs, a vector of weights and a point fit 16 registers.
constexpr int64_t kLanesHalf = 7;

// Direct kernels, for groups of few channels: a vector holds whole groups, of `per_group` channels in and out each.
struct lanes_block {
  const float* slab;  // at the vector's channels
  int64_t a_row;      // units from one output of a run to the next
  const pixel_tile* tiles;
  int64_t tile_count;
  const lanes_tap* taps;
  int64_t tap_count;
  const float* w;
  int64_t channels;  // of y: at most a vector
  int64_t per_group;
  output to;  // ldc: elements from one output of a run to the next
};

// The gradient of the weights of one vector of channels, summed over a box of outputs.
struct lanes_weight_block {
  const float* slab;
  const void* dy;
  float* sums;
  int64_t count[4];        // outputs: images, D, H, W
  int64_t slab_stride[4];  // units from one to the next
  int64_t dy_stride[4];    // elements
  int64_t channels, per_group;
  const lanes_tap* taps;
  int64_t tap_count;
};

// One line of outputs of one channel of a layout with channels outside; points of the slab are sorted by their
// remainder by the stride, so that neighbouring outputs meet neighbours.
struct plane_block {
  const float* slab;
  const int64_t* taps;  // units from the point of the first output
  const float* weights;
  int64_t tap_count, outputs;
  output to;
};

// `pixels` points of `channels` values each, `stride` elements apart, become units, `pitch` apart.
using fill_function = void (*)(float* to, int64_t pitch, const void* from, int64_t stride, int64_t pixels,
                               int64_t channels);
using taps_function = void (*)(const taps_block&);
using weight_function = void (*)(const weight_block&);
using lanes_function = void (*)(const lanes_block&);
using lanes_weight_function = void (*)(const lanes_weight_block&);
using plane_function = void (*)(const plane_block&);

// kw_kernel::traits points to `traits`, so the drivers find the rest behind it.
struct conv_kernel {
  kw_conv_traits traits;
  uint32_t op;  // kw_conv_op
  uint32_t required_features;
  uint32_t input_bytes, output_bytes;  // size of an element that is read, that is written
  int64_t lanes;
  fill_function fill;          // for inner loops that sum warp_tile_k values of K at once
  fill_function fill_lanes;    // for direct kernels: always one value to a unit
  pack_function pack_weights;  // of forward and backward data: panels of warp_tile_n
  pack_function pack_dy;       // of backward weight: panels of warp_tile_m
  taps_function taps;
  taps_function few;  // the same for at most kFewColumns, from weights with the channels that are read side by side
  weight_function weight;
  finish_function finish;
  widen_function widen;
  lanes_function lanes_direct;         // of forward and backward data
  lanes_weight_function lanes_weight;  // of backward weight
  plane_function plane;                // of layouts with channels outside, which have nothing else
};

}  // namespace kernelwright::cpu

// The driver, one per library; compiled for baseline x86-64 so that asking is safe on any processor.
extern "C" {
KW_HIDDEN kw_status kw_cpu_conv_supports(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
KW_HIDDEN kw_status kw_cpu_conv_workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes);
KW_HIDDEN kw_status kw_cpu_conv_plan(const kw_kernel*, const kw_problem*, void* plan);
KW_HIDDEN kw_status kw_cpu_conv_launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args);
}

// Storage of a plan, see plan.hpp.
#define KW_CPU_CONV_PLAN_BYTES 1024u

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_KERNEL_HPP
