/* The TMA descriptors of a convolution's operands. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"

typedef CUresult (*encode_im2col)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                  const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
                                  CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                  CUtensorMapFloatOOBfill);
typedef CUresult (*encode_tiled)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

#define ELEMENT 2 /* bytes */

/* Channels, then W, H, D and images, and the box that outputs walk through. Strides are in elements. */
typedef struct image_view {
  int64_t channels, extent[3], images;
  int64_t point[3], image;
  int32_t lower[3], upper[3], traverse[3];
} image_view;

static CUtensorMapDataType type_of(uint32_t dtype) {
  return dtype == KW_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

static kw_status encoded(const kw_kernel* kernel, const char* what, CUresult result) {
  if (result == CUDA_SUCCESS) return KW_OK;
  return kw_cuda_fail(KW_LAUNCH_FAILED, "%s: TMA descriptor of %s refused (CUresult %d)", kernel->name, what,
                      (int)result);
}

/* Strides of axes of one point are free; TMA wants them to be positive multiples of 16 bytes all the same. */
static cuuint64_t stride_bytes(int64_t extent, int64_t stride, cuuint64_t before) {
  return extent > 1 ? (cuuint64_t)stride * ELEMENT : before;
}

static kw_status describe_image(const kw_kernel* kernel, const char* what, uint32_t dtype, const image_view* v,
                                int volume, uint32_t rows, const void* at, CUtensorMap* map) {
  static void* slot;
  void* encode = NULL;
  const int axes = volume ? 3 : 2;
  cuuint64_t dims[5] = {(cuuint64_t)v->channels}, strides[4];
  cuuint32_t traverse[5] = {1, 1, 1, 1, 1};
  cuuint64_t before = (cuuint64_t)(v->channels + 7) / 8 * 8 * ELEMENT;
  for (int i = 0; i < axes; ++i) {
    dims[1 + i] = (cuuint64_t)v->extent[i];
    strides[i] = before = stride_bytes(v->extent[i], v->point[i], before);
    traverse[1 + i] = (cuuint32_t)v->traverse[i];
  }
  dims[1 + axes] = (cuuint64_t)v->images;
  strides[axes] = stride_bytes(v->images, v->image, before);
  const kw_status status = kw_cuda_driver_function("cuTensorMapEncodeIm2col", &slot, &encode);
  if (status != KW_OK) return status;
  const CUresult result = ((encode_im2col)encode)(
      map, type_of(dtype), (cuuint32_t)axes + 2, (void*)(uintptr_t)at, dims, strides, v->lower, v->upper,
      KW_CUDA_CONV_STEP, rows, traverse, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded(kernel, what, result);
}

kw_status kw_cuda_conv_describe_box(const kw_kernel* kernel, const char* what, uint32_t dtype, const int64_t* extent,
                                    const int64_t* stride, const cuuint32_t* box, CUtensorMapSwizzle swizzle,
                                    const void* at, CUtensorMap* map) {
  static void* slot;
  void* encode = NULL;
  cuuint64_t dims[4], strides[3];
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  for (int i = 0; i < 4; ++i) dims[i] = (cuuint64_t)extent[i];
  for (int i = 0; i < 3; ++i) strides[i] = (cuuint64_t)stride[i] * ELEMENT;
  const kw_status status = kw_cuda_driver_function("cuTensorMapEncodeTiled", &slot, &encode);
  if (status != KW_OK) return status;
  const CUresult result = ((encode_tiled)encode)(map, type_of(dtype), 4, (void*)(uintptr_t)at, dims, strides, box, ones,
                                                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded(kernel, what, result);
}

/* x or y of a problem, or its dense copy. */
static image_view view_of(const kw_cuda_conv_plan* plan, int of_x, int padded) {
  const kw_conv_problem* p = &plan->problem;
  const int64_t* strides = of_x ? p->stride_x : p->stride_y;
  const int64_t of_group = of_x ? plan->shape.c : plan->shape.k;
  int64_t next = plan->shape.groups.divisor * kw_cuda_conv_padded(of_group);
  image_view v = {.channels = padded ? next : of_x ? p->c : p->k, .images = p->n > 0 ? p->n : 1};
  for (int axis = 0; axis < 3; ++axis) {
    const int dim = 2 - axis;
    v.extent[axis] = of_x ? p->extent[dim] : kw_conv_out(p, dim);
    v.point[axis] = padded ? next : strides[2 + dim];
    v.traverse[axis] = 1;
    next *= v.extent[axis];
  }
  v.image = padded ? next : strides[0];
  return v;
}

static void set_box(const kw_cuda_conv_shape* s, image_view* v) {
  for (int axis = 0; axis < 3; ++axis) {
    v->lower[axis] = s->axis[axis].lower;
    v->upper[axis] = s->axis[axis].upper;
    v->traverse[axis] = s->axis[axis].traverse;
  }
}

static kw_status describe_weights(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, uint32_t tile_n,
                                  const void* at, CUtensorMap* map) {
  const kw_conv_problem* p = &plan->problem;
  const kw_cuda_conv_shape* s = &plan->shape;
  const int64_t line = plan->line, of_k = line * s->filter_points;
  const int64_t extent[4] = {plan->packs ? line : s->c, s->filter_points, s->k, s->groups.divisor};
  const int64_t stride[3] = {line, of_k, of_k * s->k};
  const cuuint32_t k = p->base.op == KW_OP_CONV_FORWARD ? tile_n : KW_CUDA_CONV_STEP;
  const cuuint32_t box[4] = {KW_CUDA_CONV_STEP, 1, k, 1};
  return kw_cuda_conv_describe_box(kernel, "w", p->dtype_w, extent, stride, box, CU_TENSOR_MAP_SWIZZLE_128B, at, map);
}

static kw_status describe_matrix(const kw_kernel* kernel, const image_view* v, uint32_t dtype, uint32_t rows,
                                 const void* at, CUtensorMap* map) {
  const int64_t points = v->extent[0] * v->extent[1] * v->extent[2] * v->images;
  int64_t line = (v->channels + 7) / 8 * 8; /* of one point alone */
  if (v->images > 1) line = v->image;
  for (int axis = 2; axis >= 0; --axis)
    if (v->extent[axis] > 1) line = v->point[axis];
  const int64_t extent[4] = {v->channels, points, 1, 1}, stride[3] = {line, line, line};
  const cuuint32_t box[4] = {KW_CUDA_CONV_STEP, rows, 1, 1};
  return kw_cuda_conv_describe_box(kernel, "images", dtype, extent, stride, box, CU_TENSOR_MAP_SWIZZLE_128B, at, map);
}

/* Images that a stage has `rows` points of, as a matrix or by im2col. */
static kw_status describe_operand(const kw_kernel* kernel, const char* what, int matrix, const image_view* v,
                                  const kw_cuda_conv_plan* plan, uint32_t rows, const void* at, CUtensorMap* map) {
  const uint32_t dtype = plan->problem.dtype_x;
  return matrix ? describe_matrix(kernel, v, dtype, rows, at, map)
                : describe_image(kernel, what, dtype, v, plan->shape.volume, rows, at, map);
}

kw_status kw_cuda_conv_describe(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* a, const void* b,
                                kw_cuda_conv_params* params) {
  const kw_conv_traits* t = (const kw_conv_traits*)kernel->traits;
  const kw_conv_problem* p = &plan->problem;
  const kw_cuda_conv_shape* s = &plan->shape;
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES, forward = p->base.op == KW_OP_CONV_FORWARD;
  image_view first = view_of(plan, forward, (int)plan->pads_a);
  kw_status status;
  if (weight) {
    image_view second = view_of(plan, 1, (int)plan->pads_b);
    set_box(s, &second);
    status = describe_operand(kernel, "x", s->matrix_b, &second, plan, KW_CUDA_CONV_STEP, b, &params->b);
    if (status != KW_OK) return status;
    return describe_operand(kernel, "dy", s->matrix, &first, plan, KW_CUDA_CONV_STEP, a, &params->a);
  }
  status = describe_weights(kernel, plan, t->tile_n, b, &params->b);
  if (status != KW_OK) return status;
  set_box(s, &first);
  return describe_operand(kernel, forward ? "x" : "dy", s->matrix, &first, plan, t->tile_m, a, &params->a);
}
