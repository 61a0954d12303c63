// The tables of norms: one for each kind and direction.
#include <stddef.h>
#include <string.h>

#include "kernelwright/dispatcher/norm/formulas/gpu.h"
#include "kernelwright/dispatcher/norm/formulas/processors.h"
#include "kernelwright/dispatcher/norm/problem.hpp"
#include "kernelwright/dispatcher/norm/problem_fields.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/norm/gpu/conditions.h"
#include "kernelwright/norm/operands.h"

namespace kernelwright {
namespace {

const kw_norm_traits& traits_of(const kw_kernel& kernel) { return *static_cast<const kw_norm_traits*>(kernel.traits); }

kw_status validate_norm(const kw_problem& problem) {
  if (kw_status status = check_range("norm problem", kNormProblemFields, problem)) return status;
  char why[kReasonBytes] = "";
  if (kw_norm_is_legal(&as_norm(problem), why, sizeof why) == KW_OK) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s problem: %s", kw_norm_op_name(problem.op), why);
}

// Everything behind the head; a problem has no padding bytes and nothing that depends on other fields.
size_t key(const kw_problem& problem, uint64_t* words) {
  constexpr size_t kFirst = offsetof(kw_norm_problem, dtype_x), kBytes = sizeof(kw_norm_problem) - kFirst;
  static_assert(kFirst % 8 == 0 && kBytes % 8 == 0 && kBytes / 8 <= kMaxKeyWords, "whole words");
  memcpy(words, reinterpret_cast<const unsigned char*>(&problem) + kFirst, kBytes);
  return kBytes / 8;
}

void describe(const kw_problem& problem, Text* text) {
  const kw_norm_problem& p = as_norm(problem);
  text->add(kw_norm_op_name(problem.op)).add(' ').add(kw_dtype_name(p.dtype_x));
  if (p.dtype_y != p.dtype_x) text->add("->").add(kw_dtype_name(p.dtype_y));
  text->add(' ').add(p.rows).add('x').add(p.columns);
  if (p.weight != 0) text->add(" weight");
  if (p.bias != 0) text->add(" bias");
  if (p.residual != 0) text->add(" residual");
}

void to_json(const kw_problem& problem, Text* text) {
  fields_json(kw_norm_op_name(problem.op), kNormProblemFields, problem, text);
  text->add('}');
}

const char* incomplete(const kw_kernel& kernel) {
  const auto* traits = static_cast<const kw_norm_traits*>(kernel.traits);
  if (traits == nullptr || traits->struct_size < sizeof(kw_norm_traits)) return "lacks traits";
  return traits->unroll == 0 ? "has unroll 0" : nullptr;
}

Fit matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  const bool match = kw_norm_traits_match(&traits_of(kernel), &as_norm(problem), reason, bytes) == KW_OK;
  return match ? Fit::kServes : Fit::kOtherDtype;
}

// Bytes of rows: x and y, what is added to x and the sum, or dy and dsum; less what weights take.
double row_bytes(const kw_norm_problem& p) {
  const double x = kw_dtype_bytes(p.dtype_x), y = kw_dtype_bytes(p.dtype_y);
  const bool backward = kw_norm_is_backward(&p);
  return x + y + (backward ? x : 0) + (p.residual != 0 ? (backward ? x : 2 * x) : 0);
}

// By operations/norm/formulas of the generator.
Estimate estimate(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_norm_problem& p = as_norm(problem);
  const double rows = static_cast<double>(p.rows), columns = static_cast<double>(p.columns);
  const bool quantised = kw_norm_is_quantised(&p);
  const double passes =
      2.0 + kw_norm_is_layer(&p) + kw_norm_is_backward(&p) + quantised + (kw_norm_writes_sum(&p) ? 1.0 : 0.0);
  const double moved = rows * columns * row_bytes(p);
  const kw_norm_traits& t = traits_of(kernel);
  const kw_machine_Device device = device_of(place, p.dtype_x);
  if (times_of(*place.arch) == KW_TIMES_PROCESSORS) {
    const kw_norm_processors_Problem extents = {rows, columns, passes, moved, p.dtype_x != KW_FP32, quantised};
    return estimate_of(kw_norm_processors_estimate(extents, t.unroll, device));
  }
  const kw_norm_gpu_Problem extents = {
      rows, columns, passes, moved, 1.0 * kw_dtype_bytes(p.dtype_x), static_cast<double>(kw_norm_gpu_workspace(&p))};
  const kw_norm_gpu_Kernel shape = {1.0 * t.rows, 1.0 * t.threads, 1.0 * t.vector, 1.0 * t.unroll};
  return estimate_of(kw_norm_gpu_estimate(extents, shape, device));
}

// Gradients of weights are written without rows too: they are zeros.
bool is_empty(const kw_problem& problem) {
  const kw_norm_problem& p = as_norm(problem);
  return p.rows == 0 && !(kw_norm_is_backward(&p) && (p.weight != 0 || p.bias != 0));
}

kw_status validate_args(const kw_problem& problem, const void* args) {
  const auto* given = static_cast<const kw_norm_args*>(args);
  if (kw_status status = check_args("norm args", "kw_norm_args", given)) return status;
  const char* missing = nullptr;
  if (!kw_norm_lacks_operand(&as_norm(problem), given, &missing)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "norm args: %s is null; this problem needs it", missing);
}

constexpr Operation table(uint32_t op, const char* name) {
  Operation made;
  made.version = kOperationVersion;
  made.op = op;
  made.name = name;
  made.problem_bytes = sizeof(kw_norm_problem);
  made.args_bytes = sizeof(kw_norm_args);
  made.validate = validate_norm;
  made.key = key;
  made.describe = describe;
  made.to_json = to_json;
  made.incomplete = incomplete;
  made.matches = matches;
  made.estimate = estimate;
  made.is_empty = is_empty;
  made.validate_args = validate_args;
  made.operands = norm_operands;
  return made;
}

const Operation kRmsNorm = table(KW_OP_RMS_NORM, "rms norm");
const Operation kLayerNorm = table(KW_OP_LAYER_NORM, "layer norm");
const Operation kRmsNormBackward = table(KW_OP_RMS_NORM_BACKWARD, "rms norm backward");
const Operation kLayerNormBackward = table(KW_OP_LAYER_NORM_BACKWARD, "layer norm backward");
const Operation* const kTables[] = {&kRmsNorm, &kLayerNorm, &kRmsNormBackward, &kLayerNormBackward};

}  // namespace

extern const Operations kNormOperations;
const Operations kNormOperations = {kTables, sizeof kTables / sizeof kTables[0]};

}  // namespace kernelwright
