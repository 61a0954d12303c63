#include "launchers/cuda/convolution/shape.hpp"

#include <string.h>

namespace kernelwright::cuda::launchers {
namespace {

// Along W, H, D; problems have D, H, W.
constexpr int kAxes = 3;
constexpr int other_order(int axis) { return 2 - axis; }
// Rows and points, so that those of a whole tile beyond the last one still have 31 bits.
constexpr int64_t kMost = INT32_MAX - 4096;

int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

// Forward and backward weight: output i meets filter point t at i * stride + t * dilation - pad_left.
void every_tap(const kw_conv_problem& p, int dim, kw_cuda_conv_axis* to) {
  to->points = divider_of(kw_conv_out(&p, dim));
  to->traverse = static_cast<int32_t>(p.stride[dim]);
  to->lower = static_cast<int32_t>(-p.pad_left[dim]);
  to->upper = static_cast<int32_t>(p.pad_right[dim] - (p.filter[dim] - 1) * p.dilation[dim]);
  to->extent = static_cast<int32_t>(p.extent[dim]);
  to->residues = 1;
  to->written = static_cast<int32_t>(kw_conv_out(&p, dim));
  to->step = 1;
  to->move = static_cast<int16_t>(p.dilation[dim]);
  to->taps[0] = {0, static_cast<int16_t>(p.filter[dim]), 0, 0};
}

// Output points in front of which the last filter point of a residue begins, at most: the table has 16 bits for it.
int64_t furthest_tap(const kw_conv_problem& p, int dim) {
  return (p.filter[dim] - 1) * p.dilation[dim] / p.stride[dim] + 1;
}

// Backward data: the input point residue + i * stride meets filter point t at the output
// (residue + i * stride + pad_left - t * dilation) / stride, where that is whole.
void taps_of_residues(const kw_conv_problem& p, int dim, kw_cuda_conv_axis* to) {
  const int64_t stride = p.stride[dim], dilation = p.dilation[dim], filter = p.filter[dim];
  const int64_t step = stride / common_divisor(stride, dilation), move = step * dilation / stride;
  const int64_t points = kw_parts(p.extent[dim], stride), outputs = kw_conv_out(&p, dim);
  int64_t lower = INT64_MAX, first_meets[KW_CUDA_CONV_STRIDES] = {};
  for (int64_t residue = 0; residue < stride; ++residue) {
    int64_t first = 0;
    while (first < filter && first < step && (residue + p.pad_left[dim] - first * dilation) % stride) ++first;
    if (first == filter || first == step) continue;  // no filter point: these results are 0
    const int64_t count = kw_parts(filter - first, step);
    first_meets[residue] = (residue + p.pad_left[dim] - first * dilation) / stride;
    lower = kw_smaller(lower, first_meets[residue] - (count - 1) * move);
    to->taps[residue] = {static_cast<int16_t>(first), static_cast<int16_t>(count), 0, 0};
  }
  for (int64_t residue = 0; residue < stride; ++residue)
    to->taps[residue].offset = static_cast<int16_t>(to->taps[residue].count ? first_meets[residue] - lower : 0);
  to->points = divider_of(points);
  to->traverse = 1;
  to->lower = static_cast<int32_t>(lower);
  to->upper = static_cast<int32_t>(lower + points - outputs);
  to->extent = static_cast<int32_t>(outputs);
  to->residues = static_cast<int32_t>(stride);
  to->written = static_cast<int32_t>(p.extent[dim]);
  to->step = static_cast<int16_t>(step);
  to->move = static_cast<int16_t>(-move);
}

// Offsets and corners have 8 bits where TMA walks through two axes, and 5 where it walks through three.
kw_status check_axis(const kw_conv_problem& p, int dim, const kw_cuda_conv_shape& s, reason why) {
  const kw_cuda_conv_axis& a = s.axis[other_order(dim)];
  const int32_t corner = s.volume ? 16 : 128, most = s.volume ? 31 : 255;
  int64_t reach = 0;
  for (int32_t residue = 0; residue < a.residues; ++residue) {
    const kw_cuda_conv_taps& taps = a.taps[residue];
    const int64_t last = taps.offset + int64_t{taps.count - 1} * a.move;
    if (taps.count) reach = kw_larger(reach, kw_larger(taps.offset, last));
  }
  const bool whole = p.base.op != KW_OP_CONV_BACKWARD_DATA || kw_fits_int16(furthest_tap(p, dim));
  if (whole && a.lower >= -corner && a.lower < corner && a.upper >= -corner && a.upper < corner && reach <= most)
    return KW_OK;
  return refuse(why,
                "along %c, filter %lld, dilation %lld and padding %lld, %lld reach further than TMA's %d-dimensional "
                "images do: offsets of at most %d, corners from %d to %d",
                "dhw"[dim], static_cast<long long>(p.filter[dim]), static_cast<long long>(p.dilation[dim]),
                static_cast<long long>(p.pad_left[dim]), static_cast<long long>(p.pad_right[dim]), s.volume ? 3 : 2,
                most, -corner, corner - 1);
}

// How many groups of few channels one product computes: as many as 64 channels hold.
int64_t merged_groups(const kw_conv_problem& p) {
  const int64_t widest = kw_larger(p.c / p.groups, p.k / p.groups);
  for (int64_t merged = KW_CUDA_CONV_STEP / widest; merged > 1; --merged)
    if (p.groups % merged == 0) return merged;
  return 1;
}

// Do all points of images of these extents (along D, H, W) lie equally far apart?
bool evenly_spaced(const int64_t* strides, const int64_t* extent, int64_t images) {
  int64_t next = 0;  // unknown until an axis has two points
  for (int dim = 2; dim >= 0; --dim) {
    if (extent[dim] == 1) continue;
    if (next && strides[2 + dim] != next) return false;
    next = strides[2 + dim] * extent[dim];
  }
  return images == 1 || !next || strides[0] == next;
}

// From one row of the result to the next, in elements; 0 where they do not lie equally far apart.
int64_t row_stride(const kw_conv_problem& p, const int64_t* written, const int64_t* extent) {
  if (p.base.op == KW_OP_CONV_BACKWARD_DATA && !kw_conv_everywhere(p.stride, 1)) return 0;
  if (!evenly_spaced(written, extent, p.n)) return 0;
  for (int dim = 2; dim >= 0; --dim)
    if (extent[dim] > 1) return written[2 + dim];
  return written[0];
}

void find_matrices(const kw_conv_problem& p, kw_cuda_conv_shape* s) {
  const int64_t out[3] = {kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)};
  const bool one_point = kw_conv_everywhere(p.filter, 1) && kw_conv_everywhere(p.stride, 1) &&
                         kw_conv_everywhere(p.pad_left, 0) && kw_conv_everywhere(p.pad_right, 0);
  const bool x = one_point && evenly_spaced(p.stride_x, p.extent, p.n), y = evenly_spaced(p.stride_y, out, p.n);
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES, forward = p.base.op == KW_OP_CONV_FORWARD;
  s->matrix = weight ? y : forward ? x : one_point && y;
  s->matrix_b = weight && x;
  if (!weight) s->row = forward ? row_stride(p, p.stride_y, out) : row_stride(p, p.stride_x, p.extent);
}

kw_status check_counts(const kw_conv_problem& p, reason why) {
  const struct {
    const char* name;
    int64_t value;
  } counts[] = {{"n", p.n}, {"c", p.c}, {"k", p.k}};
  for (const auto& count : counts)
    if (count.value > INT32_MAX / 2)
      return refuse(why, "%s is %lld; this kernel takes at most %d", count.name, static_cast<long long>(count.value),
                    INT32_MAX / 2);
  int64_t filter_points = 1;
  for (int dim = 0; dim < 3; ++dim) {
    filter_points *= kw_smaller(p.filter[dim], INT16_MAX);
    if (p.stride[dim] > KW_CUDA_CONV_STRIDES)
      return refuse(why, "the stride along %c is %lld; this kernel takes at most %d", "dhw"[dim],
                    static_cast<long long>(p.stride[dim]), KW_CUDA_CONV_STRIDES);
    if (p.extent[dim] > INT32_MAX / 2 || p.filter[dim] > INT16_MAX || p.dilation[dim] > INT16_MAX ||
        p.pad_left[dim] > INT16_MAX || p.pad_right[dim] > INT16_MAX)
      return refuse(why, "extent, filter, dilation or padding along %c is too large for this kernel", "dhw"[dim]);
  }
  if (filter_points <= INT16_MAX) return KW_OK;
  return refuse(why, "the filter has %lld points; this kernel takes at most %d", static_cast<long long>(filter_points),
                INT16_MAX);
}

// Rows and tiles are counted in 31 bits.
kw_status count_tiles(const kw_conv_traits& t, int64_t rows, int64_t columns, int64_t groups, int64_t others,
                      kw_cuda_conv_shape* s, reason why) {
  const int64_t m = kw_parts(rows, t.tile_m), n = kw_parts(columns, t.tile_n);
  if (rows > kMost || columns > kMost || m > kMost / n || m * n > kMost / groups || m * n * groups > kMost / others)
    return refuse(why, "the implicit GEMM has %lld rows and %lld columns, %lld times: too many tiles",
                  static_cast<long long>(rows), static_cast<long long>(columns),
                  static_cast<long long>(groups * others));
  s->rows = static_cast<int32_t>(rows);
  s->columns = static_cast<int32_t>(columns);
  s->tiles_n = divider_of(n);
  s->tiles_m = divider_of(kw_larger(m, 1));  // without images there are no tiles, but nobody divides by 0
  s->groups = divider_of(groups);
  s->tiles = static_cast<uint32_t>(m * n * groups * others);
  return KW_OK;
}

kw_status derive_tiles(const kw_conv_traits& t, const kw_conv_problem& p, kw_cuda_conv_shape* s, reason why) {
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES, data = p.base.op == KW_OP_CONV_BACKWARD_DATA;
  const int64_t groups = p.groups / s->merged;
  int64_t points = p.n, residues = 1;
  for (const kw_cuda_conv_axis& axis : s->axis) {
    const int64_t along = axis.points.divisor;
    if (points > kMost / along) return refuse(why, "n times output points exceeds 31 bits; pose fewer images");
    points *= along;
    residues *= axis.residues;
  }
  s->blocks = static_cast<int32_t>(kw_parts(data ? s->k : s->c, KW_CUDA_CONV_STEP));
  s->blocks_of_point = divider_of(s->blocks);
  if (!weight) return count_tiles(t, points, data ? s->c : s->k, groups, residues, s, why);
  s->steps = static_cast<int32_t>(kw_parts(points, KW_CUDA_CONV_STEP));
  s->of_slice = static_cast<int32_t>(kw_parts(s->steps, p.split_k));
  const int64_t columns = int64_t{s->filter_points} * s->blocks * KW_CUDA_CONV_STEP;
  return count_tiles(t, s->k, columns, groups, p.split_k, s, why);
}

}  // namespace

kw_cuda_divider divider_of(int64_t divisor) {
  uint32_t bits = 0;
  while ((int64_t{1} << bits) < divisor) ++bits;
  if (divisor == 1) return {1, 0, 0};
  const uint64_t power = uint64_t{1} << (31 + bits), by = static_cast<uint64_t>(divisor);
  return {static_cast<uint32_t>(by), static_cast<uint32_t>((power + by - 1) / by), bits - 1};
}

kw_status derive_shape(const kw_conv_traits& t, const kw_conv_problem& p, kw_cuda_conv_shape* s, reason why) {
  const bool data = p.base.op == KW_OP_CONV_BACKWARD_DATA, weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES;
  const int64_t* written = data ? p.stride_x : p.stride_y;
  kw_status status = check_counts(p, why);
  memset(s, 0, sizeof *s);
  if (status != KW_OK) return status;
  s->merged = static_cast<int32_t>(merged_groups(p));
  s->c = static_cast<int32_t>(p.c / p.groups) * s->merged;
  s->k = static_cast<int32_t>(p.k / p.groups) * s->merged;
  s->images = static_cast<int32_t>(p.n);
  s->filter_points = static_cast<int32_t>(kw_conv_filter_points(&p));
  s->volume = p.extent[0] != 1 || p.filter[0] != 1 || p.pad_left[0] != 0 || p.pad_right[0] != 0;
  find_matrices(p, s);
  s->image = written[0];
  for (int axis = 0; axis < kAxes && status == KW_OK; ++axis) {
    const int dim = other_order(axis);
    s->point[axis] = written[2 + dim];
    s->axis[axis].filter = static_cast<int32_t>(p.filter[dim]);
    (data ? taps_of_residues : every_tap)(p, dim, &s->axis[axis]);
    if (!(weight ? s->matrix_b : s->matrix) && (axis < 2 || s->volume)) status = check_axis(p, dim, *s, why);
  }
  return status == KW_OK ? derive_tiles(t, p, s, why) : status;
}

}  // namespace kernelwright::cuda::launchers
