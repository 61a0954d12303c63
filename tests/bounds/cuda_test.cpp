// What launchers for NVIDIA GPUs refuse: numbers that the arguments of their kernels cannot hold, each once accepted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernelwright/attention.h"
#include "kernelwright/convolution.h"
#include "kernelwright/cuda/convolution/launcher.h"
#include "kernelwright/gemm.h"

extern "C" {
extern const kw_kernel* const kCudaKernels[];
}

namespace {

int failures = 0;

const kw_kernel& kernel(const char* name) {
  for (const kw_kernel* const* next = kCudaKernels; *next != nullptr; ++next) {
    if (strcmp((*next)->name, name) == 0) return **next;
  }
  fprintf(stderr, "cuda_test: no kernel %s\n", name);
  exit(2);
}

// The kernel serves the problem, or refuses it with a sentence that has this word.
void expect(const char* name, const kw_problem& problem, const char* word) {
  const kw_kernel& k = kernel(name);
  char reason[256] = "";
  alignas(64) unsigned char plan[4096];
  const kw_status status = k.supports(&k, &problem, reason, sizeof reason);
  uint64_t bytes = 0;
  const bool served = status == KW_OK && k.plan(&k, &problem, plan) == KW_OK &&
                      k.workspace_size(&k, &problem, &bytes) == KW_OK && bytes <= uint64_t{1} << 47;
  const bool right = word == nullptr ? served : status == KW_UNSUPPORTED && strstr(reason, word) != nullptr;
  if (right) return;
  ++failures;
  fprintf(stderr, "cuda_test: %s: status %d, %s: expected %s\n", name, status, reason, word ? word : "a plan");
}

kw_conv_problem convolution(uint32_t op, int64_t n, int64_t c, int64_t k, int64_t width, int64_t filter) {
  kw_conv_problem p = {};
  p.base = {sizeof p, op};
  p.dtype_x = p.dtype_w = p.dtype_y = KW_FP16, p.dtype_acc = KW_FP32;
  p.layout = KW_CONV_NDHWGC, p.groups = 1, p.split_k = 1, p.alpha = 1;
  p.n = n, p.c = c, p.k = k;
  for (int dim = 0; dim < 3; ++dim) p.extent[dim] = p.filter[dim] = p.stride[dim] = p.dilation[dim] = 1;
  p.extent[2] = width, p.filter[2] = filter;
  p.stride_x[1] = p.stride_y[1] = 1;
  const int64_t out = width - filter + 1;
  p.stride_x[4] = c, p.stride_x[3] = p.stride_x[2] = p.stride_x[0] = c * width;
  p.stride_y[4] = k, p.stride_y[3] = p.stride_y[2] = p.stride_y[0] = k * out;
  return p;
}

void convolutions() {
  expect("cuda_forward", convolution(KW_OP_CONV_FORWARD, 1, 64, 64, 100, 3).base, nullptr);
  // Without images: tiles were counted by a divider of 0.
  expect("cuda_forward", convolution(KW_OP_CONV_FORWARD, 0, 64, 64, 100, 3).base, nullptr);
  expect("cuda_data", convolution(KW_OP_CONV_BACKWARD_DATA, 0, 64, 64, 100, 3).base, nullptr);
  expect("cuda_weight", convolution(KW_OP_CONV_WEIGHT_SLICES, 0, 64, 64, 100, 3).base, nullptr);
  // A filter whose first tap begins 32,800 outputs before the last: 16 bits wrapped into what TMA reaches, which is no
  // image for it. With more channels than a gathered point has, it is refused.
  kw_conv_problem p = convolution(KW_OP_CONV_BACKWARD_DATA, 1, 64, 64, 5000, 1);
  p.filter[2] = 401, p.dilation[2] = 82, p.pad_left[2] = 32700, p.pad_right[2] = 50;
  p.stride_y[0] = p.stride_y[2] = p.stride_y[3] = 64 * 4950;
  kw_cuda_conv_plan plan = {};
  const kw_kernel& data = kernel("cuda_data");
  if (data.plan(&data, &p.base, &plan) != KW_OK || plan.gathers == 0) {
    ++failures;
    fprintf(stderr, "cuda_test: a filter that reaches too far is not gathered\n");
  }
  p.c = p.stride_x[4] = 1 << 22;
  p.stride_x[3] = p.stride_x[2] = p.stride_x[0] = p.c * 5000;
  expect("cuda_data", p.base, "reach further than TMA's");
  // Copies of operands of 2^49 bytes.
  p = convolution(KW_OP_CONV_WEIGHT_SLICES, 1 << 29, (1 << 19) + 1, (1 << 19) + 1, 1, 1);
  p.stride_x[0] = p.stride_y[0] = 1;
  expect("cuda_weight", p.base, "2^47");
  // More workgroups than 64 bits count.
  p = convolution(KW_OP_CONV_FORWARD, INT64_C(1) << 29, 1 << 29, 1 << 29, 32767, 3);
  p.groups = p.c, p.filter[1] = 3, p.extent[1] = 32767;
  p.stride_x[0] = p.stride_y[0] = 0;
  p.stride_x[2] = p.stride_x[3] = p.stride_y[2] = p.stride_y[3] = INT64_C(1) << 38;
  expect("cuda_direct", p.base, "workgroups");
}

// Images of 3 channels are folded for filters of 22 points and more; lines of the folded copy have 31 bits.
void folded_lines() {
  const kw_kernel& k = kernel("cuda_forward");
  const int64_t widths[] = {1 << 20, (1 << 29) + 64};
  for (const int64_t width : widths) {
    kw_conv_problem p = convolution(KW_OP_CONV_FORWARD, 1, 3, 64, width, 45);
    p.stride[2] = 2;
    p.stride_y[0] = p.stride_y[2] = p.stride_y[3] = 64 * ((width - 45) / 2 + 1);
    kw_cuda_conv_plan plan = {};
    const int32_t folded = width < (1 << 21) ? 45 : 0;
    if (k.plan(&k, &p.base, &plan) == KW_OK && plan.taps == folded) continue;
    ++failures;
    fprintf(stderr, "cuda_test: lines of %lld points fold %d taps\n", static_cast<long long>(width), plan.taps);
  }
}

kw_append_problem append() {
  kw_append_problem p = {};
  p.base = {sizeof p, KW_OP_ATTENTION_APPEND};
  p.version = KW_ATTENTION_VERSION, p.dtype = KW_FP16;
  p.batch = 2, p.heads_kv = 8, p.hdim_q = p.hdim_v = 128, p.seqlen_new = 1, p.capacity = 64;
  p.k = p.v = p.k_cache = p.v_cache = {8 * 128, 128, 8 * 128};
  return p;
}

void appends() {
  expect("cuda_append", append().base, nullptr);
  kw_append_problem p = append();
  p.batch = 1 << 29, p.seqlen_new = INT64_C(1) << 32;  // times 8: 2^64
  expect("cuda_append", p.base, "seqlen_new");
  p = append();
  p.rope = KW_ROPE_HALF, p.dtype_rotary = KW_FP16, p.rotary_dim = 128, p.rotary_places = (INT64_C(1) << 32) + 64;
  expect("cuda_append", p.base, "rotary_places");
}

kw_attention_problem paged() {
  kw_attention_problem p = {};
  p.base = {sizeof p, KW_OP_ATTENTION_PART};
  p.version = KW_ATTENTION_VERSION;
  p.dtype_q = p.dtype_kv = p.dtype_o = KW_FP16;
  p.batch = 4, p.heads_q = p.heads_kv = 8, p.hdim_q = p.hdim_v = 128, p.max_seqlen_q = 1, p.max_seqlen_k = 64;
  p.window_left = p.window_right = -1, p.num_splits = 1, p.scale = 1, p.kv_lengths = 1;
  p.page_table = KW_PAGES_BLOCK, p.pages = 16, p.page_size = 16, p.page_table_stride = 4;
  p.q = p.o = {8 * 128, 128, 8 * 128};
  p.k = p.v = {16 * 8 * 128, 128, 8 * 128};
  return p;
}

void pages() {
  expect("cuda_prefill", paged().base, nullptr);
  kw_attention_problem p = paged();
  p.page_table_stride = INT64_C(1) << 62;  // times 4: 2^64
  expect("cuda_prefill", p.base, "page table");
  p = paged();
  p.page_size = (INT64_C(1) << 32) + 16;
  expect("cuda_prefill", p.base, "page_size");
}

}  // namespace

int main() {
  convolutions();
  folded_lines();
  appends();
  pages();
  if (failures == 0) printf("cuda_test: all refused\n");
  return failures == 0 ? 0 : 1;
}
