// Row norms as the dispatcher knows an operation: three tables, the whole and its two stages.
#include "kernelwright/dispatcher/operation.hpp"

#include <string.h>

#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/row_norm.h"

namespace {

using namespace kernelwright;

const kw_row_norm_problem& as_row_norm(const kw_problem& problem) {
  return reinterpret_cast<const kw_row_norm_problem&>(problem);
}

kw_status validate_shape(const kw_problem& problem) {
  const kw_row_norm_problem& p = as_row_norm(problem);
  if (p.rows >= 0 && p.columns >= 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "row norm problem: %lld x %lld; allowed: 0 or more rows and columns",
              static_cast<long long>(p.rows), static_cast<long long>(p.columns));
}

size_t key(const kw_problem& problem, uint64_t* words) {
  words[0] = static_cast<uint64_t>(as_row_norm(problem).rows);
  words[1] = static_cast<uint64_t>(as_row_norm(problem).columns);
  return 2;
}

void describe(const kw_problem& problem, Text* text) {
  text->add("row norm ").add(as_row_norm(problem).rows).add('x').add(as_row_norm(problem).columns);
}

void to_json(const kw_problem& problem, Text* text) {
  text->add("{\"op\":\"row_norm\",\"rows\":").add(as_row_norm(problem).rows);
  text->add(",\"columns\":").add(as_row_norm(problem).columns).add('}');
}

const char* incomplete(const kw_kernel& kernel) { return kernel.traits == nullptr ? "lacks traits" : nullptr; }

Fit matches(const kw_kernel&, const kw_problem&, char*, size_t) { return Fit::kServes; }

// The longer the unrolled loop, the fewer iterations.
Estimate estimate(const kw_kernel& kernel, const kw_problem& problem, const Place&) {
  const auto& traits = *static_cast<const kw_row_norm_traits*>(kernel.traits);
  const kw_row_norm_problem& p = as_row_norm(problem);
  Estimate predicted;
  predicted.total_us = 1e-3 * static_cast<double>(p.rows) * static_cast<double>(p.columns) / traits.unroll;
  return predicted;
}

bool is_empty(const kw_problem& problem) { return as_row_norm(problem).rows == 0; }

kw_status validate_args(const kw_problem&, const void* args) {
  if (args == nullptr)
    return fail(KW_INVALID_ARGUMENT, "row norm args is null; allowed: a pointer to kw_row_norm_args");
  return check_size("row norm args", *static_cast<const uint32_t*>(args), sizeof(kw_row_norm_args));
}

bool stage(const kw_problem& problem, uint32_t index, const kw_problem* const*, AnyProblem* next) {
  if (index > 1) return false;
  kw_row_norm_problem stage = as_row_norm(problem);
  stage.base.op = index == 0 ? KW_OP_ROW_SQUARE : KW_OP_ROW_SUM;
  memcpy(next->bytes, &stage, sizeof stage);
  return true;
}

uint64_t scratch_bytes(const kw_problem&, uint32_t index, const kw_problem& planned) {
  const kw_row_norm_problem& p = as_row_norm(planned);
  return index == 0 ? static_cast<uint64_t>(p.rows * p.columns) * sizeof(float) : 0;
}

void stage_args(const kw_problem&, uint32_t index, const kw_problem* const*, const void* args, void* const* scratch,
                void* own) {
  kw_row_norm_args made = *static_cast<const kw_row_norm_args*>(args);
  if (index == 0) made.y = static_cast<float*>(scratch[0]);
  if (index == 1) made.x = static_cast<const float*>(scratch[0]);
  memcpy(own, &made, sizeof made);
}

Operation table(uint32_t op, const char* name) {
  Operation made;
  made.version = kOperationVersion;
  made.op = op;
  made.name = name;
  made.problem_bytes = sizeof(kw_row_norm_problem);
  made.args_bytes = sizeof(kw_row_norm_args);
  made.validate = validate_shape;
  made.key = key;
  made.describe = describe;
  made.to_json = to_json;
  made.incomplete = incomplete;
  made.matches = matches;
  made.estimate = estimate;
  made.is_empty = is_empty;
  made.validate_args = validate_args;
  return made;
}

Operation whole() {
  Operation made = table(KW_OP_ROW_NORM, "row norm");
  made.stage = stage;
  made.scratch_bytes = scratch_bytes;
  made.stage_args = stage_args;
  return made;
}

const Operation kSquare = table(KW_OP_ROW_SQUARE, "row square"), kSum = table(KW_OP_ROW_SUM, "row sum");
const Operation kRowNorm = whole();

}  // namespace

extern "C" KW_EXPORT kw_status row_norm_register(void) {
  kw_status status = register_operation(kSquare);
  if (status == KW_OK) status = register_operation(kSum);
  return status == KW_OK ? register_operation(kRowNorm) : status;
}
