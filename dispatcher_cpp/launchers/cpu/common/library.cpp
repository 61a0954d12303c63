// The part of a CPU library that all its kernels share: errors, questions about the processor, numbers of threads.
//
// KERNELWRIGHT_CPU_LEVEL (3 or 4) is the x86-64 level that the library's kernels need; this file needs none.
#include "launchers/cpu/common/library.hpp"

#include <stdarg.h>
#include <stdio.h>

#include "launchers/cpu/common/room.hpp"
#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {
namespace {

thread_local char last_error[256];

}  // namespace

kw_status fail(kw_status status, char* reason, size_t bytes, const char* format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(last_error, sizeof(last_error), format, list);
  va_end(list);
  if (reason != nullptr && bytes != 0) snprintf(reason, bytes, "%s", last_error);
  return status;
}

kw_status check_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  if (kernel == nullptr || plan == nullptr || launch == nullptr || args == nullptr) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "kernel, plan, launch or args is a null pointer");
  }
  if (launch->struct_size < sizeof(kw_launch)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "launch.struct_size is %u, below %zu", launch->struct_size,
                sizeof(kw_launch));
  }
  if (launch->device != 0) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "device is %d, but the processor is device 0", launch->device);
  }
  return KW_OK;
}

kw_status check_op(const kw_kernel& kernel, const kw_problem& problem, const char* op, size_t size, char* reason,
                   size_t bytes) {
  if (problem.op == kernel.op && problem.struct_size >= size) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
              problem.op, problem.struct_size, op, kernel.op, size);
}

kw_status check_needed(uint64_t workspace_bytes, char* reason, size_t bytes) {
  if (workspace_bytes <= kMostWorkspace) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the workspace would have %llu bytes, more than a process has memory",
              static_cast<unsigned long long>(workspace_bytes));
}

kw_status check_args_size(uint32_t size, size_t needed) {
  if (size >= needed) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", size, needed);
}

kw_status check_features(const kw_kernel& kernel, uint32_t features, char* reason, size_t bytes) {
  if ((features & ~this_processor().features) == 0) return KW_OK;
  return fail(KW_ARCH_MISMATCH, reason, bytes, "the processor lacks %s, which this kernel needs", kernel.features);
}

kw_status check_workspace(const kw_launch& launch, uint64_t needed) {
  if (launch.workspace_bytes < needed) {
    return fail(KW_WORKSPACE_TOO_SMALL, nullptr, 0, "workspace_bytes is %llu, but this plan needs %llu",
                static_cast<unsigned long long>(launch.workspace_bytes), static_cast<unsigned long long>(needed));
  }
  const bool aligned = reinterpret_cast<uintptr_t>(launch.workspace) % 256 == 0;
  if (needed != 0 && (launch.workspace == nullptr || !aligned)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "workspace %p is not aligned to 256 bytes", launch.workspace);
  }
  return KW_OK;
}

const processor& this_processor() {
  static processor own;
  static uint32_t ready = 0;  // several threads may fill it, with the same values
  if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0) {
    const processor p = detect_processor();
    __atomic_store_n(&own.level, p.level, __ATOMIC_RELAXED);
    __atomic_store_n(&own.features, p.features, __ATOMIC_RELAXED);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  }
  return own;
}

}  // namespace kernelwright::cpu

using namespace kernelwright::cpu;

extern "C" {

KW_HIDDEN kw_status kw_backend_check_device(int32_t device, char* reason, size_t bytes);
KW_HIDDEN const char* kw_backend_last_error(void);
KW_HIDDEN kw_status kw_backend_set_num_threads(uint32_t threads);
KW_HIDDEN kw_status kw_backend_set_runtime(const char* path);

kw_status kw_backend_check_device(int32_t device, char* reason, size_t bytes) {
  if (device != 0)
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "device is %d, but the processor is device 0", device);
  const uint32_t level = this_processor().level;
  if (level < KERNELWRIGHT_CPU_LEVEL) {
    return fail(KW_ARCH_MISMATCH, reason, bytes, "the processor is x86_64_v%u, but this library is for x86_64_v%d",
                level, KERNELWRIGHT_CPU_LEVEL);
  }
  uint32_t threads = 0;
  if (!threads_of_environment(&threads)) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "KERNELWRIGHT_NUM_THREADS is '%.32s'; allowed: 1 to %u, or unset",
                getenv("KERNELWRIGHT_NUM_THREADS"), kMaxThreads);
  }
  return KW_OK;
}

const char* kw_backend_last_error(void) { return last_error; }

kw_status kw_backend_set_num_threads(uint32_t threads) {
  if (threads > kMaxThreads) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "threads is %u, but at most %u are served", threads, kMaxThreads);
  }
  __atomic_store_n(&requested_threads, threads, __ATOMIC_RELAXED);
  return KW_OK;
}

kw_status kw_backend_set_runtime(const char* path) {
  return fail(KW_UNSUPPORTED, nullptr, 0, "set_runtime(%s): kernels for processors need no runtime library",
              path != nullptr ? path : "null");
}

}  // extern "C"
