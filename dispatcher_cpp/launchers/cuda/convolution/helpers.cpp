#include "launchers/cuda/convolution/helpers.hpp"

#include "launchers/cuda/convolution/shape.hpp"
#include "launchers/cuda/convolution/start.hpp"

namespace kernelwright::cuda::launchers {
namespace {

// A slice is summed by so many threads more until a multiprocessor has enough of them to hide memory's latency.
constexpr int64_t kSumThreads = 132 * 512;
constexpr int32_t kMostParts = 16, kSlicesOfPart = 4;

const kw_cuda_conv& conv_of(const kw_kernel* kernel) { return held_by<kw_cuda_conv>(kernel); }

// A thread for each of `count` items.
kw_status start_helper(const kw_kernel* kernel, const void* function, int64_t count, void* params, void* stream) {
  const int64_t blocks = kw_parts(count, KW_CUDA_CONV_HELPER_THREADS);
  if (blocks == 0) return KW_OK;
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld elements are too many to copy", kernel->name,
                        static_cast<long long>(count));
  return kw_cuda_conv_start(kernel, function, static_cast<uint32_t>(blocks), KW_CUDA_CONV_HELPER_THREADS, 0, params,
                            stream);
}

kw_status pad(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, bool of_x, const void* from, void* to,
              void* stream) {
  const kw_conv_problem& p = plan.problem;
  const int64_t* strides = of_x ? p.stride_x : p.stride_y;
  kw_cuda_conv_pad x = {};
  x.from = from, x.to = to;
  x.points = p.n;
  x.channels = of_x ? plan.shape.c : plan.shape.k;
  x.line = static_cast<int32_t>(padded(x.channels));
  x.groups = static_cast<int32_t>(plan.shape.groups.divisor);
  x.image = strides[0];
  for (int axis = 0; axis < 3; ++axis) {
    x.extent[axis] = static_cast<int32_t>(of_x ? p.extent[2 - axis] : kw_conv_out(&p, 2 - axis));
    x.point[axis] = strides[4 - axis];
    x.points *= x.extent[axis];
  }
  return start_helper(kernel, conv_of(kernel).pad, x.points * x.groups * (x.line / 8), &x, stream);
}

kw_status pack(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to, void* stream) {
  const kw_conv_problem& p = plan.asked;
  kw_cuda_conv_pack x = {};
  x.from = from, x.to = to;
  x.count = p.k * plan.shape.filter_points * plan.line;
  x.c = static_cast<int32_t>(p.c / p.groups);
  x.k = static_cast<int32_t>(p.k / p.groups);
  x.merged = plan.shape.merged;
  x.filter_points = plan.shape.filter_points;
  x.line = plan.line;
  x.pitch = plan.taps ? plan.pitch : x.c;
  x.taps = plan.taps ? plan.taps : 1;
  return start_helper(kernel, conv_of(kernel).pack, x.count, &x, stream);
}

// Extents and memory strides of x of the original problem, along W, H, D.
template <class Parameters>
void set_image(const kw_conv_problem& p, Parameters* x) {
  x->image = p.stride_x[0];
  for (int axis = 0; axis < 3; ++axis) {
    x->extent[axis] = static_cast<int32_t>(p.extent[2 - axis]);
    x->point[axis] = p.stride_x[4 - axis];
  }
}

// The filter along one axis, in the order W, H, D.
template <class Parameters>
void set_filter(const kw_conv_problem& p, int axis, Parameters* x) {
  const int dim = 2 - axis;
  x->out[axis] = static_cast<int32_t>(kw_conv_out(&p, dim));
  x->filter[axis] = static_cast<int32_t>(p.filter[dim]);
  x->stride[axis] = static_cast<int32_t>(p.stride[dim]);
  x->dilation[axis] = static_cast<int32_t>(p.dilation[dim]);
  x->pad[axis] = static_cast<int32_t>(p.pad_left[dim]);
}

kw_status gather(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to, void* stream) {
  const kw_conv_problem& p = plan.original;
  kw_cuda_conv_gather x = {};
  x.from = from, x.to = to;
  x.rows = p.n * kw_conv_out_points(&p);
  x.c = static_cast<int32_t>(p.c / p.groups);
  x.line = static_cast<int32_t>(padded(plan.shape.c));
  x.groups = static_cast<int32_t>(plan.shape.groups.divisor);
  x.merged = plan.shape.merged;
  set_image(p, &x);
  for (int axis = 0; axis < 3; ++axis) set_filter(p, axis, &x);
  return start_helper(kernel, conv_of(kernel).gather, x.rows * x.groups * (x.line / 8), &x, stream);
}

kw_status fold(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to, void* stream) {
  const kw_conv_problem& p = plan.asked;
  kw_cuda_conv_fold x = {};
  x.from = from, x.to = to;
  x.lines = p.n * p.extent[0] * p.extent[1];
  x.c = static_cast<int32_t>(p.c);
  x.pitch = plan.pitch;
  x.line = static_cast<int32_t>(plan.problem.stride_x[3]);
  x.pad = static_cast<int32_t>(p.pad_left[2]);
  set_image(p, &x);
  return start_helper(kernel, conv_of(kernel).fold, x.lines * (x.line / 8), &x, stream);
}

int32_t common_divisor(int32_t a, int32_t b) { return b == 0 ? a : common_divisor(b, a % b); }

}  // namespace

kw_status add_slices(const kw_kernel* kernel, kw_cuda_conv_sum sum, void* stream) {
  const int64_t items = sum.c % 4 == 0 ? sum.count / 4 : sum.count;
  sum.parts = 1;
  while (sum.parts < kMostParts && items * sum.parts < kSumThreads && 2 * sum.parts * kSlicesOfPart <= sum.slices)
    sum.parts *= 2;
  return start_helper(kernel, conv_of(kernel).sum, items * sum.parts, &sum, stream);
}

kw_status sum_slices(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to, void* stream) {
  const kw_conv_problem& p = plan.asked;
  const int64_t points = kw_conv_filter_points(&p);
  kw_cuda_conv_sum x = {};
  x.from = static_cast<const float*>(from), x.to = to;
  x.c = static_cast<int32_t>(p.c / p.groups);
  x.k = static_cast<int32_t>(p.k / p.groups);
  x.count = p.k * points * x.c;
  x.slice = p.k * plan.shape.filter_points * plan.shape.c;
  x.merged = plan.shape.merged;
  x.filter_points = static_cast<int32_t>(points);
  x.pitch = plan.taps ? plan.pitch : plan.shape.c;
  x.slices = static_cast<int32_t>(p.split_k);
  x.alpha = static_cast<float>(p.alpha), x.beta = static_cast<float>(p.beta);
  return add_slices(kernel, x, stream);
}

// Of folded images only the filter points along W are left: the implicit GEMM had the others.
kw_status unfold_sums(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to,
                      void* stream) {
  const kw_conv_problem& p = plan.original;
  kw_cuda_conv_unfold x = {};
  x.from = static_cast<const float*>(from), x.to = to;
  x.count = p.n * p.extent[0] * p.extent[1] * p.extent[2] * p.c;
  x.c = static_cast<int32_t>(p.c / p.groups);
  x.groups = static_cast<int32_t>(p.groups);
  x.alpha = static_cast<float>(p.alpha), x.beta = static_cast<float>(p.beta);
  set_image(p, &x);
  for (int axis = 0; axis < 3; ++axis) {
    x.out[axis] = x.extent[axis];
    x.filter[axis] = x.stride[axis] = x.dilation[axis] = 1;
    if (plan.gathers || axis == 0) set_filter(p, axis, &x);
    x.step[axis] = x.stride[axis] / common_divisor(x.stride[axis], x.dilation[axis]);
  }
  return start_helper(kernel, conv_of(kernel).unfold, x.count, &x, stream);
}

kw_status prepare_operands(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_launch& launch,
                           const void** a, const void** b) {
  const bool forward = plan.problem.base.op == KW_OP_CONV_FORWARD;
  char* memory = static_cast<char*>(launch.workspace);
  kw_status status = KW_OK;
  if (plan.packs) {
    status = pack(kernel, plan, *b, memory + plan.packed, launch.stream);
    *b = memory + plan.packed;
  }
  if (status == KW_OK && plan.pads_a) {
    void* copy = memory + plan.padded_a;
    status = plan.gathers && forward ? gather(kernel, plan, *a, copy, launch.stream)
                                     : pad(kernel, plan, forward, *a, copy, launch.stream);
    *a = copy;
  }
  if (status == KW_OK && plan.pads_b) {
    void* copy = memory + plan.padded_b;
    status =
        plan.gathers ? gather(kernel, plan, *b, copy, launch.stream) : pad(kernel, plan, true, *b, copy, launch.stream);
    *b = copy;
  }
  if (status == KW_OK && plan.taps && plan.problem.base.op != KW_OP_CONV_BACKWARD_DATA) {
    const void** x = forward ? a : b;
    void* copy = memory + (forward ? plan.padded_a : plan.padded_b);
    status = fold(kernel, plan, *x, copy, launch.stream);
    *x = copy;
  }
  return status;
}

}  // namespace kernelwright::cuda::launchers
