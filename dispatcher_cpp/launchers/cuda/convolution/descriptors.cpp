#include "launchers/cuda/convolution/descriptors.hpp"

#include "launchers/cuda/convolution/shape.hpp"

namespace kernelwright::cuda::launchers {
namespace {

constexpr int kElement = 2;  // bytes

// Channels, then W, H, D and images, and the box that outputs walk through. Strides are in elements.
struct image_view {
  int64_t channels, extent[3], images;
  int64_t point[3], image;
  int32_t lower[3], upper[3], traverse[3];
};

CUtensorMapDataType type_of(uint32_t dtype) {
  return dtype == KW_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

kw_status encoded(const kw_kernel* kernel, const char* what, CUresult result) {
  if (result == CUDA_SUCCESS) return KW_OK;
  return kw_cuda_fail(KW_LAUNCH_FAILED, "%s: TMA descriptor of %s refused (CUresult %d)", kernel->name, what,
                      static_cast<int>(result));
}

// Strides of axes of one point are free; TMA wants them to be positive multiples of 16 bytes all the same.
cuuint64_t stride_bytes(int64_t extent, int64_t stride, cuuint64_t before) {
  return extent > 1 ? static_cast<cuuint64_t>(stride) * kElement : before;
}

kw_status describe_image(const kw_kernel* kernel, const char* what, uint32_t dtype, const image_view& v, bool volume,
                         uint32_t rows, const void* at, CUtensorMap* map) {
  static void* slot = nullptr;
  void* encode = nullptr;
  const int axes = volume ? 3 : 2;
  cuuint64_t dims[5] = {static_cast<cuuint64_t>(v.channels)}, strides[4];
  cuuint32_t traverse[5] = {1, 1, 1, 1, 1};
  cuuint64_t before = static_cast<cuuint64_t>(padded(v.channels)) * kElement;
  for (int i = 0; i < axes; ++i) {
    dims[1 + i] = static_cast<cuuint64_t>(v.extent[i]);
    strides[i] = before = stride_bytes(v.extent[i], v.point[i], before);
    traverse[1 + i] = static_cast<cuuint32_t>(v.traverse[i]);
  }
  dims[1 + axes] = static_cast<cuuint64_t>(v.images);
  strides[axes] = stride_bytes(v.images, v.image, before);
  const kw_status status = kw_cuda_driver_function("cuTensorMapEncodeIm2col", &slot, &encode);
  if (status != KW_OK) return status;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(encode)(
      map, type_of(dtype), static_cast<cuuint32_t>(axes) + 2, const_cast<void*>(at), dims, strides, v.lower, v.upper,
      KW_CUDA_CONV_STEP, rows, traverse, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded(kernel, what, result);
}

// x or y of a problem, or its dense copy.
image_view view_of(const kw_cuda_conv_plan& plan, bool of_x, bool copied) {
  const kw_conv_problem& p = plan.problem;
  const int64_t* strides = of_x ? p.stride_x : p.stride_y;
  int64_t next = plan.shape.groups.divisor * padded(of_x ? plan.shape.c : plan.shape.k);
  image_view v = {};
  v.channels = copied ? next : of_x ? p.c : p.k;
  v.images = kw_larger(p.n, 1);
  for (int axis = 0; axis < 3; ++axis) {
    const int dim = 2 - axis;
    v.extent[axis] = of_x ? p.extent[dim] : kw_conv_out(&p, dim);
    v.point[axis] = copied ? next : strides[2 + dim];
    v.traverse[axis] = 1;
    next *= v.extent[axis];
  }
  v.image = copied ? next : strides[0];
  return v;
}

void set_box(const kw_cuda_conv_shape& s, image_view* v) {
  for (int axis = 0; axis < 3; ++axis) {
    v->lower[axis] = s.axis[axis].lower;
    v->upper[axis] = s.axis[axis].upper;
    v->traverse[axis] = s.axis[axis].traverse;
  }
}

kw_status describe_weights(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, uint32_t tile_n, const void* at,
                           CUtensorMap* map) {
  const kw_conv_problem& p = plan.problem;
  const kw_cuda_conv_shape& s = plan.shape;
  const int64_t line = plan.line, of_k = line * s.filter_points;
  const cuuint32_t k = p.base.op == KW_OP_CONV_FORWARD ? tile_n : KW_CUDA_CONV_STEP;
  const tensor_box x = {{plan.packs ? line : s.c, s.filter_points, s.k, s.groups.divisor},
                        {line, of_k, of_k * s.k},
                        {KW_CUDA_CONV_STEP, 1, k, 1},
                        CU_TENSOR_MAP_SWIZZLE_128B};
  return describe_box(kernel, "w", p.dtype_w, x, at, map);
}

kw_status describe_matrix(const kw_kernel* kernel, const image_view& v, uint32_t dtype, uint32_t rows, const void* at,
                          CUtensorMap* map) {
  const int64_t points = v.extent[0] * v.extent[1] * v.extent[2] * v.images;
  int64_t line = v.images > 1 ? v.image : padded(v.channels);  // the latter of one point alone
  for (int axis = 2; axis >= 0; --axis)
    if (v.extent[axis] > 1) line = v.point[axis];
  const tensor_box x = {
      {v.channels, points, 1, 1}, {line, line, line}, {KW_CUDA_CONV_STEP, rows, 1, 1}, CU_TENSOR_MAP_SWIZZLE_128B};
  return describe_box(kernel, "images", dtype, x, at, map);
}

// Images that a stage has `rows` points of, as a matrix or by im2col.
kw_status describe_operand(const kw_kernel* kernel, const char* what, bool matrix, const image_view& v,
                           const kw_cuda_conv_plan& plan, uint32_t rows, const void* at, CUtensorMap* map) {
  const uint32_t dtype = plan.problem.dtype_x;
  return matrix ? describe_matrix(kernel, v, dtype, rows, at, map)
                : describe_image(kernel, what, dtype, v, plan.shape.volume != 0, rows, at, map);
}

}  // namespace

kw_status describe_box(const kw_kernel* kernel, const char* what, uint32_t dtype, const tensor_box& x, const void* at,
                       CUtensorMap* map) {
  static void* slot = nullptr;
  void* encode = nullptr;
  cuuint64_t dims[4], strides[3];
  const cuuint32_t ones[4] = {1, 1, 1, 1};
  for (int i = 0; i < 4; ++i) dims[i] = static_cast<cuuint64_t>(x.extent[i]);
  for (int i = 0; i < 3; ++i) strides[i] = static_cast<cuuint64_t>(x.stride[i]) * kElement;
  const kw_status status = kw_cuda_driver_function("cuTensorMapEncodeTiled", &slot, &encode);
  if (status != KW_OK) return status;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      map, type_of(dtype), 4, const_cast<void*>(at), dims, strides, x.box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
      x.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded(kernel, what, result);
}

kw_status describe_operands(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* a, const void* b,
                            kw_cuda_conv_params* params) {
  const auto& t = held_by<kw_conv_traits>(kernel);
  const uint32_t op = plan.problem.base.op;
  const kw_cuda_conv_shape& s = plan.shape;
  const bool forward = op == KW_OP_CONV_FORWARD;
  image_view first = view_of(plan, forward, plan.pads_a != 0);
  if (op == KW_OP_CONV_WEIGHT_SLICES) {
    image_view second = view_of(plan, true, plan.pads_b != 0);
    set_box(s, &second);
    const kw_status status = describe_operand(kernel, "x", s.matrix_b, second, plan, KW_CUDA_CONV_STEP, b, &params->b);
    if (status != KW_OK) return status;
    return describe_operand(kernel, "dy", s.matrix, first, plan, KW_CUDA_CONV_STEP, a, &params->a);
  }
  const kw_status status = describe_weights(kernel, plan, t.tile_n, b, &params->b);
  if (status != KW_OK) return status;
  set_box(s, &first);
  return describe_operand(kernel, forward ? "x" : "dy", s.matrix, first, plan, t.tile_m, a, &params->a);
}

}  // namespace kernelwright::cuda::launchers
