// The part of a CPU library that all its kernels share, whatever their operation: errors, what every launch needs, and
// the processor.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_LIBRARY_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_LIBRARY_HPP

#include "kernelwright/abi.h"
#include "kernelwright/cpu/common/features.hpp"
#include "launchers/common/descriptor.hpp"

namespace kernelwright::cpu {

// Stores the text for kw_backend_last_error of this thread, copies it to reason unless that is null, returns status.
KW_HIDDEN kw_status fail(kw_status status, char* reason, size_t bytes, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

// What every launch needs, whatever its arguments say.
KW_HIDDEN kw_status check_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args);
KW_HIDDEN kw_status check_workspace(const kw_launch& launch, uint64_t needed);

// Is the problem of the operation that the kernel serves, whose name and struct are given? Neither is null.
KW_HIDDEN kw_status check_op(const kw_kernel& kernel, const kw_problem& problem, const char* op, size_t size,
                             char* reason, size_t bytes);
// May a plan need so large a workspace?
KW_HIDDEN kw_status check_needed(uint64_t workspace_bytes, char* reason, size_t bytes);
KW_HIDDEN kw_status check_args_size(uint32_t size, size_t needed);
// Does the processor have what a kernel with these features needs?
KW_HIDDEN kw_status check_features(const kw_kernel& kernel, uint32_t features, char* reason, size_t bytes);

// The processor that this runs on; detected once.
KW_HIDDEN const processor& this_processor();

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_LIBRARY_HPP
