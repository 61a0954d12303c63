// What the dispatcher's core must know of an operation, as one table of functions.
//
// The core finds the table by kw_problem.op and calls nothing else, so a new operation is a folder in src/operations
// and one line in src/operations/operations.cpp; or it is registered from outside. Where a member may be null, its
// comment says what that means. Functions are called by several threads at once and keep no state.
#ifndef KERNELWRIGHT_DISPATCHER_OPERATION_HPP
#define KERNELWRIGHT_DISPATCHER_OPERATION_HPP

#include "kernelwright/dispatcher/estimate.hpp"
#include "kernelwright/dispatcher/operands.hpp"
#include "kernelwright/dispatcher/support/structs.hpp"
#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {

constexpr uint32_t kOperationVersion = 3;
constexpr uint32_t kOldestOperationVersion = 2;  // without operands
constexpr size_t kReasonBytes = 256;
constexpr size_t kMaxKeyWords = 64;
constexpr size_t kMaxProblemBytes = 512;
constexpr size_t kMaxArgsBytes = 512;
constexpr uint32_t kMaxStages = 8;
constexpr size_t kMaxChoices = 24;
constexpr uint32_t kChoiceNumber = 0x7fffffff;  // of a choice's value: see Operation::choices

// How near a kernel that is not used came: errors name the nearest first.
enum class Fit { kOtherOp, kOtherDtype, kOtherLayout, kOtherVariant, kFeatureMissing, kKernelRefuses, kServes };

// Room for a problem of any operation.
struct AnyProblem {
  alignas(8) unsigned char bytes[kMaxProblemBytes];
  kw_problem& base() { return *reinterpret_cast<kw_problem*>(bytes); }
  const kw_problem& base() const { return *reinterpret_cast<const kw_problem*>(bytes); }
};

struct Operation {
  uint32_t version = 0;        // kOperationVersion, or an older one down to kOldestOperationVersion
  uint32_t op = 0;             // kw_problem.op of its problems
  const char* name = nullptr;  // as sentences say it: "grouped gemm"
  uint32_t problem_bytes = 0, args_bytes = 0;

  // KW_OK, or KW_INVALID_ARGUMENT with field, value and what is allowed (see fail). struct_size and op are checked.
  kw_status (*validate)(const kw_problem& problem) = nullptr;
  // Fills at most kMaxKeyWords and returns how many. Problems have equal words exactly if they can share a plan; what a
  // problem does not use is left out or 0. The problem may be invalid: it then has no plan, but must not be read out of
  // bounds. Null: problems have parts of variable length, and their plans are not cached.
  size_t (*key)(const kw_problem& problem, uint64_t* words) = nullptr;
  // Copies what a problem points to; *copy holds the bytes of the struct already. release frees that, also after a copy
  // that failed. Both null: problems point to nothing.
  kw_status (*copy)(const kw_problem& problem, kw_problem* copy) = nullptr;
  void (*release)(kw_problem* copy) = nullptr;
  void (*describe)(const kw_problem& problem, Text* text) = nullptr;  // "gemm fp16 rcr 512x512x512"
  void (*to_json)(const kw_problem& problem, Text* text) = nullptr;

  // What a kernel's descriptor lacks ("lacks traits"); null if it is complete.
  const char* (*incomplete)(const kw_kernel& kernel) = nullptr;
  // kServes if the traits allow the problem: the kernel is then asked. Otherwise one sentence goes to reason, unless
  // bytes is 0.
  Fit (*matches)(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) = nullptr;
  // What the problem leaves open for this kernel: at most kMaxChoices values, preferred ones first where predicted
  // times are equal. 0 where it leaves nothing open. choose() writes a value into the problem. Both null: nothing ever
  // is. A value is a number (of slices, of splits), by which the kernel's values differ and which callbacks see; the
  // highest bit is the operation's own.
  size_t (*choices)(const kw_kernel& kernel, const kw_problem& problem, const Place& place, uint32_t* values) = nullptr;
  void (*choose)(kw_problem* problem, uint32_t value) = nullptr;
  // "split_k=4" of a problem that leaves nothing open. Null: nothing to say.
  void (*describe_choices)(const kw_problem& problem, Text* text) = nullptr;
  // The predicted time of a problem that leaves nothing open, by a kernel that matches.
  Estimate (*estimate)(const kw_kernel& kernel, const kw_problem& problem, const Place& place) = nullptr;

  // Nothing to compute: a launch checks its arguments and starts no kernel.
  bool (*is_empty)(const kw_problem& problem) = nullptr;
  // Pointers that are null though the problem needs them, and structs of another size.
  kw_status (*validate_args)(const kw_problem& problem, const void* args) = nullptr;

  // Problems that need several kernels. Null: the problem is its own and only stage.
  //
  // Fills in the problem of stage `index`, which is of an operation without stages of its own; false if there is none.
  // planned[0] to planned[index - 1] are the stages before, with all choices made.
  bool (*stage)(const kw_problem& problem, uint32_t index, const kw_problem* const* planned,
                AnyProblem* next) = nullptr;
  // Bytes of results that the planned stage leaves in the workspace for later ones.
  uint64_t (*scratch_bytes)(const kw_problem& problem, uint32_t index, const kw_problem& planned) = nullptr;
  // The arguments of a stage out of those of the whole: at most kMaxArgsBytes. planned[i] is any stage with all choices
  // made, scratch[i] where it leaves its results, null where it leaves none.
  void (*stage_args)(const kw_problem& problem, uint32_t index, const kw_problem* const* planned, const void* args,
                     void* const* scratch, void* stage_args) = nullptr;

  // Members of version 3.

  // Fills in the memory of every operand of a launch and returns how many there are; with null, at least as many as
  // that. Launches refuse operands that share memory (see check_apart). Null: nothing is compared.
  size_t (*operands)(const kw_problem& problem, Operand* operands) = nullptr;
};

// The tables that a folder of src/operations defines.
struct Operations {
  const Operation* const* tables;
  size_t count;
};

// Those of this library: src/operations/operations.cpp.
extern const Operations* const kOperations[];
extern const size_t kOperationsCount;

// Null if nobody knows it.
const Operation* find_operation(uint32_t op);
// From outside, at any time and from any thread; the table must live as long as the process. KW_INVALID_ARGUMENT for an
// op that is taken, a table of another version, or one that lacks a function.
KW_EXPORT kw_status register_operation(const Operation& operation);

// KW_OK and the operation of a problem whose struct has the right size; else what is allowed.
kw_status operation_of(const kw_problem* problem, const Operation** operation);
// Everything that can be wrong with a problem.
kw_status validate(const kw_problem* problem, const Operation** operation);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_OPERATION_HPP
