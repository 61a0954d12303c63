// What the host's side of all attention kernels shares.
#pragma once

#include <cuda_runtime.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/keys.hpp"
#include "kernelwright/cuda/attention/launcher.h"
#include "kernelwright/cuda/attention/rows.hpp"
#include "kernelwright/cuda/attention/tile.hpp"
#include "kernelwright/cuda/common/device.hpp"

namespace kernelwright::cuda::attention {

constexpr double log2_e = 1.4426950408889634;

inline int32_t width_of(int64_t width) { return static_cast<int32_t>(width < edge ? width : edge); }

inline window window_of(const kw_attention_problem& p) {
  return {width_of(p.window_left), width_of(p.window_right), p.mask == KW_MASK_BOTTOM_RIGHT};
}

inline addend addend_of(const kw_attention_problem& p) {
  if (p.bias == KW_BIAS_NONE) return addend::none;
  return p.bias == KW_BIAS_ALIBI ? addend::alibi : addend::elementwise;
}

inline addend_numbers addend_numbers_of(const kw_attention_problem& p, const kw_attention_args& args) {
  const bool slopes = p.bias == KW_BIAS_ALIBI;
  return {args.bias, slopes ? p.slopes_stride : p.bias_strides.request, p.bias_strides.head, p.bias_strides.row,
          p.mask == KW_MASK_TOP_LEFT};
}

inline strides strides_of(const kw_attention_strides& x, bool keeps_request) {
  return {keeps_request ? x.request : 0, x.head, x.row};
}

inline key_rows key_rows_of(const kw_attention_problem& p, const kw_attention_args& args) {
  const bool pages = p.page_table != KW_PAGES_NONE, list = p.page_table == KW_PAGES_LIST;
  return {pages ? args.page_table : nullptr,
          list ? args.page_indptr : nullptr,
          list ? args.last_page_lengths : nullptr,
          p.group && !pages ? args.cu_seqlens_k : nullptr,
          p.kv_lengths ? args.seqlens_k : nullptr,
          p.page_table_stride,
          cutlass::FastDivmod(pages ? static_cast<int>(p.page_size) : 1),
          static_cast<int32_t>(p.max_seqlen_k)};
}

inline bool empty(const kw_attention_problem& p) {
  return p.batch == 0 || p.heads_q == 0 || p.max_seqlen_q == 0 || (p.group && p.total_q == 0);
}

// `early`: before the kernel in front has ended. The kernel calls wait_for_kernel_before (early.hpp).
inline kw_status start(const kw_kernel* descriptor, const void* function, dim3 grid, int threads, size_t shared_bytes,
                       void* parameters, void* stream, bool early = false) {
  void* all[] = {parameters};
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = grid, how.blockDim = dim3(threads);
  how.dynamicSmemBytes = shared_bytes, how.stream = static_cast<cudaStream_t>(stream);
  how.attrs = &overlap, how.numAttrs = early ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelExC(&how, function, all);
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(descriptor, error);
}

}  // namespace kernelwright::cuda::attention
