#include "kernelwright/dispatcher/operation.hpp"

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/support/atomic.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"

namespace kernelwright {
namespace {

constexpr uint32_t kMostRegistered = 64;

Mutex mutex;  // of those who register
Atomic<const Operation*> registered[kMostRegistered];
Atomic<uint32_t> registered_count;

const char* lacks(const Operation& o) {
  if (o.name == nullptr || o.validate == nullptr) return "name or validate";
  if (o.describe == nullptr || o.to_json == nullptr) return "describe or to_json";
  if (o.incomplete == nullptr || o.matches == nullptr || o.estimate == nullptr) {
    return "incomplete, matches or estimate";
  }
  if (o.is_empty == nullptr || o.validate_args == nullptr) return "is_empty or validate_args";
  if ((o.copy == nullptr) != (o.release == nullptr)) return "one of copy and release";
  if ((o.choices == nullptr) != (o.choose == nullptr)) return "one of choices and choose";
  const bool all = o.stage != nullptr && o.scratch_bytes != nullptr && o.stage_args != nullptr;
  const bool none = o.stage == nullptr && o.scratch_bytes == nullptr && o.stage_args == nullptr;
  return all || none ? nullptr : "one of stage, scratch_bytes and stage_args";
}

void list_operations(Text* text) {
  const char* between = "";
  for (size_t i = 0; i < kOperationsCount; ++i) {
    for (size_t j = 0; j < kOperations[i]->count; ++j, between = ", ") {
      const Operation& operation = *kOperations[i]->tables[j];
      text->add(between).add(operation.op).add(" (").add(operation.name).add(')');
    }
  }
  const uint32_t count = registered_count.acquire();
  for (uint32_t i = 0; i < count; ++i) {
    const Operation& operation = *registered[i].acquire();
    text->add(", ").add(operation.op).add(" (").add(operation.name).add(')');
  }
}

}  // namespace

const Operation* find_operation(uint32_t op) {
  for (size_t i = 0; i < kOperationsCount; ++i) {
    for (size_t j = 0; j < kOperations[i]->count; ++j) {
      if (kOperations[i]->tables[j]->op == op) return kOperations[i]->tables[j];
    }
  }
  const uint32_t count = registered_count.acquire();
  for (uint32_t i = 0; i < count; ++i) {
    const Operation* operation = registered[i].acquire();
    if (operation->op == op) return operation;
  }
  return nullptr;
}

kw_status register_operation(const Operation& operation) {
  const char* name = operation.name == nullptr ? "without a name" : operation.name;
  if (operation.version < kOldestOperationVersion || operation.version > kOperationVersion) {
    return fail(KW_INVALID_ARGUMENT, "operation %s: version = %u; allowed: %u to %u", name, operation.version,
                kOldestOperationVersion, kOperationVersion);
  }
  if (const char* what = lacks(operation)) {
    return fail(KW_INVALID_ARGUMENT, "operation %s lacks %s; fill it in", name, what);
  }
  if (operation.problem_bytes < sizeof(kw_problem) || operation.problem_bytes > kMaxProblemBytes ||
      operation.args_bytes > kMaxArgsBytes) {
    return fail(KW_INVALID_ARGUMENT, "operation %s: problem_bytes = %u, args_bytes = %u; allowed: at most %zu and %zu",
                name, operation.problem_bytes, operation.args_bytes, kMaxProblemBytes, kMaxArgsBytes);
  }
  const Lock lock(mutex);
  const Operation* other = find_operation(operation.op);
  if (other == &operation) return KW_OK;
  if (other != nullptr) {
    return fail(KW_INVALID_ARGUMENT, "operation %s: op = %u is that of %s; allowed: another, 65536 or above", name,
                operation.op, other->name);
  }
  const uint32_t count = registered_count.relaxed();
  if (count == kMostRegistered) {
    return fail(KW_OUT_OF_MEMORY, "operation %s: %u operations are registered already", name, kMostRegistered);
  }
  registered[count].release(&operation);
  registered_count.release(count + 1);
  return KW_OK;
}

kw_status check_size(const char* what, uint32_t given, size_t wanted) {
  if (given == wanted) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: struct_size = %u; allowed: %zu (ABI version %u)", what, given, wanted,
              KW_ABI_VERSION);
}

kw_status operation_of(const kw_problem* problem, const Operation** operation) {
  if (problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "problem is null; allowed: a pointer to the problem of an operation");
  }
  *operation = find_operation(problem->op);
  if (*operation == nullptr) {
    Text known;
    list_operations(&known);
    return fail(KW_INVALID_ARGUMENT, "problem: op = %u is unknown; allowed: %s", problem->op, known.c_str());
  }
  if (problem->struct_size == (*operation)->problem_bytes) return KW_OK;
  Text what;
  what.add((*operation)->name).add(" problem");
  return check_size(what.c_str(), problem->struct_size, (*operation)->problem_bytes);
}

kw_status validate(const kw_problem* problem, const Operation** operation) {
  if (kw_status status = operation_of(problem, operation)) return status;
  return (*operation)->validate(*problem);
}

}  // namespace kernelwright

kw_status kw_problem_validate(const kw_problem* problem) {
  const kernelwright::Operation* operation = nullptr;
  return kernelwright::validate(problem, &operation);
}
