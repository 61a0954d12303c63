// Which tile a workgroup computes, and how long its sum is.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::conv {

// Launches let workgroups start while the kernel before drains. They wait for all of its results here, before they
// touch memory, and let the next kernel's workgroups come as soon as there is room.
CUTLASS_DEVICE void wait_for_kernels_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

CUTLASS_DEVICE int quotient(const kw_cuda_divider& by, int x) {
  return by.divisor == 1 ? x : static_cast<int>(__umulhi(static_cast<uint32_t>(x), by.multiplier) >> by.shift);
}

// x becomes the remainder.
CUTLASS_DEVICE int split_off(const kw_cuda_divider& by, int* x) {
  const int whole = quotient(by, *x), rest = *x - whole * static_cast<int>(by.divisor);
  *x = whole;
  return rest;
}

// A point of the grid of outputs and the image that it is in. Points beyond the last image are in images that do not
// exist: TMA reads zeros there.
struct grid_point {
  int at[3], image;
};

CUTLASS_DEVICE grid_point locate(const kw_cuda_conv_shape& s, int row) {
  grid_point found;
  for (int axis = 0; axis < 3; ++axis) found.at[axis] = split_off(s.axis[axis].points, &row);
  found.image = row;
  return found;
}

struct tile_of {
  int m, n, group, part;  // part: residues of backward data, or the slice of backward weight
  int residue[3];

  CUTLASS_DEVICE tile_of(const kw_cuda_conv_shape& s, uint32_t number) {
    int rest = static_cast<int>(number);
    n = split_off(s.tiles_n, &rest);
    m = split_off(s.tiles_m, &rest);
    group = split_off(s.groups, &rest);
    part = rest;
    for (int axis = 0; axis < 3; ++axis) {
      residue[axis] = 0;
      if (s.axis[axis].residues == 1) continue;  // divisions by numbers that are no constants take long
      residue[axis] = rest % s.axis[axis].residues;
      rest /= s.axis[axis].residues;
    }
  }

  CUTLASS_DEVICE const kw_cuda_conv_taps& taps(const kw_cuda_conv_shape& s, int axis) const {
    return s.axis[axis].taps[residue[axis]];
  }
};

// Steps of KW_CUDA_CONV_STEP that the sum of a tile has.
template <bool weight>
CUTLASS_DEVICE int steps_of(const kw_cuda_conv_shape& s, const tile_of& tile) {
  if (!weight) return s.blocks * tile.taps(s, 0).count * tile.taps(s, 1).count * tile.taps(s, 2).count;
  const int left = s.steps - tile.part * s.of_slice;
  return left < 0 ? 0 : left < s.of_slice ? left : s.of_slice;
}

}  // namespace kernelwright::cuda::conv
