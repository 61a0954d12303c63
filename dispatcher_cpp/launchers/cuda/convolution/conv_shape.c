/* The implicit GEMM of a convolution: tiles, residues of strides, filter points, merged groups. */
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/widths.h"

/* Along W, H, D; problems have D, H, W. */
#define AXES 3
#define OTHER_ORDER(axis) (2 - (axis))
/* Rows and points, so that those of a whole tile beyond the last one still have 31 bits. */
#define MOST (INT32_MAX - 4096)

static int64_t parts(int64_t extent, int64_t part) { return (extent + part - 1) / part; }

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

kw_cuda_divider kw_cuda_conv_divider(int64_t divisor) {
  uint32_t bits = 0;
  while ((INT64_C(1) << bits) < divisor) ++bits;
  if (divisor == 1) return (kw_cuda_divider){1, 0, 0};
  const uint64_t power = UINT64_C(1) << (31 + bits);
  return (kw_cuda_divider){(uint32_t)divisor, (uint32_t)((power + (uint64_t)divisor - 1) / (uint64_t)divisor),
                           bits - 1};
}

/* Forward and backward weight: output i meets filter point t at i * stride + t * dilation - pad_left. */
static void every_tap(const kw_conv_problem* p, int dim, kw_cuda_conv_axis* to) {
  to->points = kw_cuda_conv_divider(kw_conv_out(p, dim));
  to->traverse = (int32_t)p->stride[dim];
  to->lower = (int32_t)-p->pad_left[dim];
  to->upper = (int32_t)(p->pad_right[dim] - (p->filter[dim] - 1) * p->dilation[dim]);
  to->extent = (int32_t)p->extent[dim];
  to->residues = 1;
  to->written = (int32_t)kw_conv_out(p, dim);
  to->step = 1;
  to->move = (int16_t)p->dilation[dim];
  to->taps[0] = (kw_cuda_conv_taps){.first = 0, .count = (int16_t)p->filter[dim], .offset = 0};
}

/* Output points in front of which the last filter point of a residue begins, at most: the table has 16 bits for it. */
static int64_t furthest_tap(const kw_conv_problem* p, int dim) {
  return (p->filter[dim] - 1) * p->dilation[dim] / p->stride[dim] + 1;
}

/* Backward data: the input point residue + i * stride meets filter point t at the output
 * (residue + i * stride + pad_left - t * dilation) / stride, where that is whole. */
static void taps_of_residues(const kw_conv_problem* p, int dim, kw_cuda_conv_axis* to) {
  const int64_t stride = p->stride[dim], dilation = p->dilation[dim], filter = p->filter[dim];
  const int64_t step = stride / common_divisor(stride, dilation), move = step * dilation / stride;
  const int64_t points = parts(p->extent[dim], stride), outputs = kw_conv_out(p, dim);
  int64_t lower = INT64_MAX, first_meets[KW_CUDA_CONV_STRIDES] = {0};
  for (int64_t residue = 0; residue < stride; ++residue) {
    int64_t first = 0, last = 0;
    while (first < filter && first < step && (residue + p->pad_left[dim] - first * dilation) % stride) ++first;
    if (first == filter || first == step) continue; /* no filter point: these results are 0 */
    const int64_t count = parts(filter - first, step);
    first_meets[residue] = (residue + p->pad_left[dim] - first * dilation) / stride;
    last = first_meets[residue] - (count - 1) * move;
    if (last < lower) lower = last;
    to->taps[residue] = (kw_cuda_conv_taps){.first = (int16_t)first, .count = (int16_t)count};
  }
  for (int64_t residue = 0; residue < stride; ++residue)
    to->taps[residue].offset = (int16_t)(to->taps[residue].count ? first_meets[residue] - lower : 0);
  to->points = kw_cuda_conv_divider(points);
  to->traverse = 1;
  to->lower = (int32_t)lower;
  to->upper = (int32_t)(lower + points - outputs);
  to->extent = (int32_t)outputs;
  to->residues = (int32_t)stride;
  to->written = (int32_t)p->extent[dim];
  to->step = (int16_t)step;
  to->move = (int16_t)-move;
}

/* Offsets and corners have 8 bits where TMA walks through two axes, and 5 where it walks through three. */
static kw_status check_axis(const kw_conv_problem* p, int dim, const kw_cuda_conv_shape* s, kw_reason reason) {
  const kw_cuda_conv_axis* a = &s->axis[OTHER_ORDER(dim)];
  const int32_t corner = s->volume ? 16 : 128, most = s->volume ? 31 : 255;
  int64_t reach = 0;
  for (int32_t residue = 0; residue < a->residues; ++residue) {
    const kw_cuda_conv_taps* taps = &a->taps[residue];
    const int64_t last = taps->offset + (int64_t)(taps->count - 1) * a->move;
    if (taps->count && taps->offset > reach) reach = taps->offset;
    if (taps->count && last > reach) reach = last;
  }
  const int whole = p->base.op != KW_OP_CONV_BACKWARD_DATA || kw_fits_int16(furthest_tap(p, dim));
  if (whole && a->lower >= -corner && a->lower < corner && a->upper >= -corner && a->upper < corner && reach <= most)
    return KW_OK;
  return kw_cuda_refuse(reason,
                        "along %c, filter %lld, dilation %lld and padding %lld, %lld reach further than TMA's "
                        "%d-dimensional images do: offsets of at most %d, corners from %d to %d",
                        "dhw"[dim], (long long)p->filter[dim], (long long)p->dilation[dim], (long long)p->pad_left[dim],
                        (long long)p->pad_right[dim], s->volume ? 3 : 2, most, -corner, corner - 1);
}

/* How many groups of few channels one product computes: as many as 64 channels hold. */
static int64_t merged_groups(const kw_conv_problem* p) {
  const int64_t c = p->c / p->groups, k = p->k / p->groups, widest = c > k ? c : k;
  for (int64_t merged = KW_CUDA_CONV_STEP / widest; merged > 1; --merged)
    if (p->groups % merged == 0) return merged;
  return 1;
}

/* Do all points of images of these extents (along D, H, W) lie equally far apart? */
static int evenly_spaced(const int64_t* strides, const int64_t* extent, int64_t images) {
  int64_t next = 0; /* unknown until an axis has two points */
  for (int dim = 2; dim >= 0; --dim) {
    if (extent[dim] == 1) continue;
    if (next && strides[2 + dim] != next) return 0;
    next = strides[2 + dim] * extent[dim];
  }
  return images == 1 || !next || strides[0] == next;
}

/* From one row of the result to the next, in elements; 0 where they do not lie equally far apart. */
static int64_t row_stride(const kw_conv_problem* p, const int64_t* written, const int64_t* extent) {
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA && !kw_conv_everywhere(p->stride, 1)) return 0;
  if (!evenly_spaced(written, extent, p->n)) return 0;
  for (int dim = 2; dim >= 0; --dim)
    if (extent[dim] > 1) return written[2 + dim];
  return written[0];
}

static void find_matrices(const kw_conv_problem* p, kw_cuda_conv_shape* s) {
  const int64_t out[3] = {kw_conv_out(p, 0), kw_conv_out(p, 1), kw_conv_out(p, 2)};
  const int one_point = kw_conv_everywhere(p->filter, 1) && kw_conv_everywhere(p->stride, 1) &&
                        kw_conv_everywhere(p->pad_left, 0) && kw_conv_everywhere(p->pad_right, 0);
  const int x = one_point && evenly_spaced(p->stride_x, p->extent, p->n), y = evenly_spaced(p->stride_y, out, p->n);
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES;
  s->matrix = weight ? y : p->base.op == KW_OP_CONV_FORWARD ? x : one_point && y;
  s->matrix_b = weight && x;
  if (!weight)
    s->row = p->base.op == KW_OP_CONV_FORWARD ? row_stride(p, p->stride_y, out) : row_stride(p, p->stride_x, p->extent);
}

static kw_status check_counts(const kw_conv_problem* p, kw_reason reason) {
  const struct {
    const char* name;
    int64_t value;
  } counts[] = {{"n", p->n}, {"c", p->c}, {"k", p->k}};
  for (int i = 0; i < 3; ++i)
    if (counts[i].value > INT32_MAX / 2)
      return kw_cuda_refuse(reason, "%s is %lld; this kernel takes at most %d", counts[i].name,
                            (long long)counts[i].value, INT32_MAX / 2);
  int64_t filter_points = 1;
  for (int dim = 0; dim < 3; ++dim) {
    filter_points *= p->filter[dim] > INT16_MAX ? INT16_MAX : p->filter[dim];
    if (p->stride[dim] > KW_CUDA_CONV_STRIDES)
      return kw_cuda_refuse(reason, "the stride along %c is %lld; this kernel takes at most %d", "dhw"[dim],
                            (long long)p->stride[dim], KW_CUDA_CONV_STRIDES);
    if (p->extent[dim] > INT32_MAX / 2 || p->filter[dim] > INT16_MAX || p->dilation[dim] > INT16_MAX ||
        p->pad_left[dim] > INT16_MAX || p->pad_right[dim] > INT16_MAX)
      return kw_cuda_refuse(reason, "extent, filter, dilation or padding along %c is too large for this kernel",
                            "dhw"[dim]);
  }
  if (filter_points <= INT16_MAX) return KW_OK;
  return kw_cuda_refuse(reason, "the filter has %lld points; this kernel takes at most %d", (long long)filter_points,
                        INT16_MAX);
}

/* Rows and tiles are counted in 31 bits. */
static kw_status count_tiles(const kw_conv_traits* t, int64_t rows, int64_t columns, int64_t groups, int64_t others,
                             kw_cuda_conv_shape* s, kw_reason reason) {
  const int64_t limit = MOST, m = parts(rows, t->tile_m), n = parts(columns, t->tile_n);
  if (rows > limit || columns > limit || m > limit / n || m * n > limit / groups || m * n * groups > limit / others)
    return kw_cuda_refuse(reason, "the implicit GEMM has %lld rows and %lld columns, %lld times: too many tiles",
                          (long long)rows, (long long)columns, (long long)(groups * others));
  s->rows = (int32_t)rows;
  s->columns = (int32_t)columns;
  s->tiles_n = kw_cuda_conv_divider(n);
  s->tiles_m = kw_cuda_conv_divider(m > 0 ? m : 1); /* without images there are no tiles, but nobody divides by 0 */
  s->groups = kw_cuda_conv_divider(groups);
  s->tiles = (uint32_t)(m * n * groups * others);
  return KW_OK;
}

static kw_status derive_tiles(const kw_conv_traits* t, const kw_conv_problem* p, kw_cuda_conv_shape* s,
                              kw_reason reason) {
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES, data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  const int64_t groups = p->groups / s->merged;
  int64_t points = p->n, residues = 1;
  for (int i = 0; i < AXES; ++i) {
    const int64_t along = s->axis[i].points.divisor;
    if (points > MOST / along)
      return kw_cuda_refuse(reason, "n times output points exceeds 31 bits; pose fewer images");
    points *= along;
    residues *= s->axis[i].residues;
  }
  s->blocks = (int32_t)parts(data ? s->k : s->c, KW_CUDA_CONV_STEP);
  s->blocks_of_point = kw_cuda_conv_divider(s->blocks);
  if (!weight) return count_tiles(t, points, data ? s->c : s->k, groups, residues, s, reason);
  s->steps = (int32_t)parts(points, KW_CUDA_CONV_STEP);
  s->of_slice = (int32_t)parts(s->steps, p->split_k);
  const int64_t columns = (int64_t)s->filter_points * s->blocks * KW_CUDA_CONV_STEP;
  return count_tiles(t, s->k, columns, groups, p->split_k, s, reason);
}

kw_status kw_cuda_conv_derive(const kw_conv_traits* t, const kw_conv_problem* p, kw_cuda_conv_shape* s,
                              kw_reason reason) {
  const int data = p->base.op == KW_OP_CONV_BACKWARD_DATA, weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES;
  const int64_t* written = data ? p->stride_x : p->stride_y;
  kw_status status = check_counts(p, reason);
  memset(s, 0, sizeof *s);
  if (status != KW_OK) return status;
  s->merged = (int32_t)merged_groups(p);
  s->c = (int32_t)(p->c / p->groups) * s->merged;
  s->k = (int32_t)(p->k / p->groups) * s->merged;
  s->images = (int32_t)p->n;
  s->filter_points = (int32_t)kw_conv_filter_points(p);
  s->volume = p->extent[0] != 1 || p->filter[0] != 1 || p->pad_left[0] != 0 || p->pad_right[0] != 0;
  find_matrices(p, s);
  s->image = written[0];
  for (int axis = 0; axis < AXES && status == KW_OK; ++axis) {
    const int dim = OTHER_ORDER(axis);
    s->point[axis] = written[2 + dim];
    s->axis[axis].filter = (int32_t)p->filter[dim];
    (data ? taps_of_residues : every_tap)(p, dim, &s->axis[axis]);
    if (!(weight ? s->matrix_b : s->matrix) && (axis < 2 || s->volume)) status = check_axis(p, dim, s, reason);
  }
  return status == KW_OK ? derive_tiles(t, p, s, reason) : status;
}
