// Planning and launching of norms on GPUs, as launchers of all backends do it.
#ifndef KERNELWRIGHT_NORM_GPU_LAUNCHER_HPP
#define KERNELWRIGHT_NORM_GPU_LAUNCHER_HPP

#include <stdio.h>
#include <string.h>

#include "kernelwright/norm/gpu/arguments.h"
#include "kernelwright/norm/gpu/conditions.h"
#include "kernelwright/norm/gpu/plan.h"
#include "kernelwright/norm/operands.h"

namespace kernelwright::norm {

constexpr uint64_t kWorkspaceAlignment = 256;  // as the ABI promises
constexpr int64_t kAccess = 16;                // bytes that a thread reads or writes at once, at most

// Backend has fail(status, format, …), which keeps a sentence, and start(kernel, sum, where, grid, block, arguments).
template <class Backend>
struct gpu_launcher {
  static kw_status supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
    char unused[256];  // as long as the sentences: gcc warns of what it sees cut
    if (reason == nullptr || bytes == 0) return check(kernel, problem, unused, sizeof unused);
    reason[0] = '\0';
    return check(kernel, problem, reason, bytes);
  }

  static kw_status plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
    char reason[256] = "";
    if (plan == nullptr) return Backend::fail(KW_INVALID_ARGUMENT, "plan is null");
    const kw_status status = check(kernel, problem, reason, sizeof reason);
    if (status != KW_OK) return Backend::fail(status, "%s", reason);
    const kw_norm_problem& p = norm_problem(problem);
    const kw_norm_traits& t = traits(kernel);
    kw_norm_gpu_plan made = {};
    made.problem = p;
    made.slices = kw_norm_gpu_slices(&p);
    made.rows_per_slice = kw_norm_gpu_rows_per_slice(&p);
    made.workspace_bytes = static_cast<uint64_t>(kw_norm_gpu_workspace(&p));
    made.grid = static_cast<uint32_t>(kw_norm_gpu_workgroups(&t, &p));
    made.block = t.rows * t.threads;
    made.sum_grid = static_cast<uint32_t>(kw_norm_gpu_sum_workgroups(&p));
    memcpy(plan, &made, sizeof made);
    return KW_OK;
  }

  static kw_status workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
    kw_norm_gpu_plan made = {};
    if (bytes == nullptr) return Backend::fail(KW_INVALID_ARGUMENT, "bytes is null");
    const kw_status status = plan(kernel, problem, &made);
    *bytes = made.workspace_bytes;
    return status;
  }

  static kw_status launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
    const auto* given = static_cast<const kw_norm_args*>(args);
    if (kernel == nullptr || plan == nullptr || where == nullptr || where->struct_size < sizeof *where ||
        given == nullptr || given->struct_size < sizeof *given) {
      return Backend::fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
    }
    const auto& made = *static_cast<const kw_norm_gpu_plan*>(plan);
    const char* missing = nullptr;
    if (kw_norm_lacks_operand(&made.problem, given, &missing)) {
      return Backend::fail(KW_INVALID_ARGUMENT, "%s is a null pointer, and the problem has it", missing);
    }
    kw_status status = check_workspace(made, *where);
    kw_norm_gpu_arguments x = arguments(traits(kernel), made, *given, where->workspace);
    if (status == KW_OK && made.grid != 0) status = Backend::start(kernel, false, where, made.grid, made.block, &x);
    if (status != KW_OK || made.sum_grid == 0) return status;
    return Backend::start(kernel, true, where, made.sum_grid, KW_NORM_SUM_BLOCK, &x);
  }

 private:
  static const kw_norm_problem& norm_problem(const kw_problem* problem) {
    return *reinterpret_cast<const kw_norm_problem*>(problem);
  }
  static const kw_norm_traits& traits(const kw_kernel* kernel) {
    return *static_cast<const kw_norm_traits*>(kernel->traits);
  }

  static kw_status check(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
    if (kernel == nullptr || problem == nullptr || problem->op != kernel->op ||
        problem->struct_size < sizeof(kw_norm_problem)) {
      snprintf(reason, bytes, "the problem is not a kw_norm_problem of this kind, direction and ABI version");
      return KW_INVALID_ARGUMENT;
    }
    return kw_norm_gpu_check(&traits(kernel), &norm_problem(problem), reason, bytes);
  }

  static kw_status check_workspace(const kw_norm_gpu_plan& made, const kw_launch& where) {
    if (made.workspace_bytes == 0) return KW_OK;
    const uint64_t given = where.workspace != nullptr ? where.workspace_bytes : 0;
    if (given < made.workspace_bytes) {
      return Backend::fail(KW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, sums of rows take %llu",
                           static_cast<unsigned long long>(given),
                           static_cast<unsigned long long>(made.workspace_bytes));
    }
    if (reinterpret_cast<uintptr_t>(where.workspace) % kWorkspaceAlignment == 0) return KW_OK;
    return Backend::fail(KW_INVALID_ARGUMENT, "the workspace must be aligned to %llu bytes",
                         static_cast<unsigned long long>(kWorkspaceAlignment));
  }

  // Whether vectors of rows, or of a single row, start at multiples of what is accessed at once.
  static bool whole(const void* first, int64_t rows, int64_t stride, int64_t vector, uint32_t dtype) {
    if (first == nullptr) return true;
    const int64_t size = kw_dtype_bytes(dtype), bytes = kw_smaller(kAccess, vector * size);
    return reinterpret_cast<uintptr_t>(first) % static_cast<uint64_t>(bytes) == 0 &&
           (rows < 2 || stride % (bytes / size) == 0);
  }

  static kw_norm_gpu_arguments arguments(const kw_norm_traits& t, const kw_norm_gpu_plan& made,
                                         const kw_norm_args& args, void* workspace) {
    const kw_norm_problem& p = made.problem;
    const bool backward = kw_norm_is_backward(&p), sum = kw_norm_writes_sum(&p);
    const void* const residual = p.residual != 0 ? args.residual : nullptr;
    const void* const dy = backward ? args.dy : nullptr;
    kw_norm_gpu_arguments x = {};
    x.x = args.x, x.weight = p.weight != 0 ? args.weight : nullptr;
    x.bias = p.bias != 0 && !backward ? args.bias : nullptr;
    x.residual = residual, x.dy = dy, x.y = args.y, x.sum = sum ? args.sum : nullptr;
    x.scales = args.scales, x.dweight = args.dweight, x.dbias = args.dbias;
    x.partial = static_cast<float*>(workspace);
    x.rows = p.rows;
    x.stride_x = p.stride_x, x.stride_residual = p.stride_residual, x.stride_y = p.stride_y;
    x.stride_sum = p.stride_sum, x.stride_dy = p.stride_dy;
    x.slices = made.slices, x.rows_per_slice = made.rows_per_slice;
    x.columns = static_cast<int32_t>(p.columns);
    x.epsilon = static_cast<float>(p.epsilon);
    x.has_weight = p.weight != 0, x.has_bias = p.bias != 0, x.has_residual = p.residual != 0;
    x.wide_weights = p.dtype_w != p.dtype_x;
    const int64_t rows = p.rows, vector = t.vector;
    x.whole_rows = whole(args.x, rows, p.stride_x, vector, p.dtype_x) &&
                   whole(residual, rows, p.stride_residual, vector, p.dtype_x) &&
                   whole(dy, rows, p.stride_dy, vector, p.dtype_x) &&
                   whole(x.sum, rows, p.stride_sum, vector, p.dtype_x) &&
                   whole(args.y, rows, p.stride_y, vector, p.dtype_y);
    x.whole_weights = whole(x.weight, 1, 0, vector, p.dtype_w) && whole(x.bias, 1, 0, vector, p.dtype_w);
    return x;
  }
};

}  // namespace kernelwright::norm

#endif  // KERNELWRIGHT_NORM_GPU_LAUNCHER_HPP
