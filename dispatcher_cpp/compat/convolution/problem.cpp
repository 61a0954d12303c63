#include <string.h>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/compat/conv_state.hpp"
#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {
namespace {

constexpr uint32_t kDtypes[] = {KW_FP32, KW_FP16, KW_BF16};

bool is_conv(const kw_kernel& kernel) {
  return kernel.op >= KW_OP_CONV_FORWARD && kernel.op <= KW_OP_CONV_WEIGHT_SLICES;
}

uint32_t dtype_of(const kw_kernel& kernel) { return static_cast<const kw_conv_traits*>(kernel.traits)->dtype_x; }

// Strides in memory: images, channels, D, H, W. Channels are innermost.
void dense(const int64_t* points, int64_t channels, int64_t* strides) {
  int64_t size = channels;
  strides[1] = 1;
  for (int dim = KW_CONV_SPATIAL - 1; dim >= 0; --dim) {
    strides[2 + dim] = size;
    if (__builtin_mul_overflow(size, points[dim] > 1 ? points[dim] : 1, &size)) size = INT64_MAX;  // which is refused
  }
  strides[0] = size;
}

}  // namespace

kw_status conv_dtype(kw_dispatcher* dispatcher, const char* name, uint32_t* dtype) {
  Text listed;
  uint32_t types = 0;
  for (const uint32_t one : kDtypes) {
    bool wanted = name != nullptr && strcmp(name, kw_dtype_name(one)) == 0;
    const uint64_t count = name != nullptr ? 0 : kw_dispatcher_kernel_count(dispatcher);
    for (uint64_t i = 0; i < count && !wanted; ++i) {
      kw_kernel_info info{};
      info.struct_size = sizeof info;
      if (kw_status status = kw_dispatcher_kernel_at(dispatcher, i, &info)) return status;
      wanted = is_conv(*info.kernel) && dtype_of(*info.kernel) == one;
    }
    if (!wanted) continue;
    listed.add(types != 0 ? ", " : "").add(kw_dtype_name(one));
    ++types;
    *dtype = one;
  }
  if (types == 1) return KW_OK;
  if (name != nullptr) return fail(KW_INVALID_ARGUMENT, "dtype = %s; allowed: fp32, fp16, bf16", name);
  if (types == 0) return fail(KW_NO_KERNEL, "the libraries have no convolution kernels");
  return fail(KW_INVALID_ARGUMENT,
              "the kernels are of %u dtypes; say which one is meant in KERNELWRIGHT_CONV_DTYPE or "
              "conv_dispatcher_init_from: %s",
              types, listed.c_str());
}

int conv_kernels(const ConvState& state, uint32_t op, int index, const char** name) {
  int matching = 0;
  *name = nullptr;
  const uint64_t count = kw_dispatcher_kernel_count(state.first.dispatcher);
  for (uint64_t i = 0; i < count; ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    if (kw_dispatcher_kernel_at(state.first.dispatcher, i, &info) != KW_OK) continue;
    if (info.kernel->op != op || dtype_of(*info.kernel) != state.dtype) continue;
    if (matching == index) *name = info.kernel->name;
    ++matching;
  }
  return matching;
}

kw_status conv_problem(const ConvProblemC* given, uint32_t dtype, kw_conv_problem* problem) {
  constexpr uint32_t kOps[] = {KW_OP_CONV_FORWARD, KW_OP_CONV_BACKWARD_DATA, KW_OP_CONV_BACKWARD_WEIGHT};
  if (given == nullptr) return fail(KW_INVALID_ARGUMENT, "problem is null");
  const ConvProblemC& p = *given;
  if (p.direction < CONV_FORWARD || p.direction > CONV_BWD_WEIGHT) {
    return fail(KW_INVALID_ARGUMENT, "direction = %d; allowed: 0 forward, 1 backward data, 2 backward weight",
                p.direction);
  }
  const bool flat = p.input_d <= 1 && p.filter_z <= 1;
  kw_conv_problem made{};
  made.base = {sizeof made, kOps[p.direction]};
  made.dtype_x = made.dtype_w = made.dtype_y = dtype;
  made.dtype_acc = KW_FP32;
  made.layout = flat ? KW_CONV_NHWGC : KW_CONV_NDHWGC;
  made.groups = p.G, made.n = p.N, made.c = p.C, made.k = p.K;
  made.split_k = 1;
  if (p.direction == CONV_BWD_WEIGHT) made.split_k = p.split_k > 1 ? static_cast<uint32_t>(p.split_k) : 0;
  const int64_t along[][KW_CONV_SPATIAL] = {
      {flat ? 1 : p.input_d, p.input_h, p.input_w},    {flat ? 1 : p.filter_z, p.filter_y, p.filter_x},
      {flat ? 1 : p.stride_d, p.stride_h, p.stride_w}, {flat ? 1 : p.dilation_d, p.dilation_h, p.dilation_w},
      {flat ? 0 : p.pad_d, p.pad_h, p.pad_w},          {flat ? 0 : p.pad_d, p.pad_h, p.pad_w}};
  int64_t* const fields[] = {made.extent, made.filter, made.stride, made.dilation, made.pad_left, made.pad_right};
  for (int i = 0; i < 6; ++i) memcpy(fields[i], along[i], sizeof along[i]);
  int64_t outputs[KW_CONV_SPATIAL];
  for (int dim = 0; dim < KW_CONV_SPATIAL; ++dim) outputs[dim] = made.stride[dim] > 0 ? kw_conv_out(&made, dim) : 1;
  dense(made.extent, made.c, made.stride_x);
  dense(outputs, made.k, made.stride_y);
  made.alpha = 1.0;
  *problem = made;
  return KW_OK;
}

}  // namespace kernelwright
