// The tables of attention, and what is short enough to stand beside them.
#include <stddef.h>
#include <string.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

// Everything behind the head; a problem has no padding bytes and nothing that depends on other fields.
template <class Problem>
size_t key(const kw_problem& problem, uint64_t* words) {
  constexpr size_t kFirst = sizeof(kw_problem), kBytes = sizeof(Problem) - kFirst;
  static_assert(kFirst % 8 == 0 && kBytes % 8 == 0 && kBytes / 8 <= kMaxKeyWords, "whole words");
  static_assert(sizeof(Problem) <= kMaxProblemBytes, "a problem of the dispatcher");
  memcpy(words, reinterpret_cast<const unsigned char*>(&problem) + kFirst, kBytes);
  return kBytes / 8;
}

const char* incomplete(const kw_kernel& kernel) {
  const auto* traits = static_cast<const kw_attention_traits*>(kernel.traits);
  // Libraries may be older than work_percent.
  if (traits == nullptr || traits->struct_size < offsetof(kw_attention_traits, work_percent)) return "lacks traits";
  if (traits->family < KW_ATTENTION_FWD || traits->family > KW_ATTENTION_BWD_CONVERT_DQ) return "has no known family";
  if (KW_ATTENTION_OP_OF(traits->family) != kernel.op) return "has a family of another op";
  const bool splits = kernel.op == KW_OP_ATTENTION_PART || kernel.op == KW_OP_ATTENTION_COMBINE;
  if (splits && traits->max_splits == 0) return "has max_splits 0";
  if (kernel.op == KW_OP_ATTENTION_PART && (traits->tile_m0 == 0 || traits->tile_n0 == 0)) {
    return "has a zero tile extent";
  }
  return nullptr;
}

// What the kernel makes of values that are left open.
kw_attention_problem settled(const kw_attention_traits& t, const kw_attention_problem& p) {
  kw_attention_problem made = p;
  if (made.num_splits == 0) made.num_splits = 1;
  if (made.leaves_splits == kSplitsOpen) made.leaves_splits = kw_attention_leaves(&t, made.num_splits);
  if (made.dq_slices == kDqOpen) made.dq_slices = static_cast<uint32_t>(kw_attention_dq_slices(&t, &made));
  return made;
}

Fit matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  const kw_attention_traits& t = attention_traits(kernel);
  const kw_attention_problem p = settled(t, as_attention(problem));
  if (kw_attention_dtypes_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherDtype;
  if (kw_attention_hdims_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherLayout;
  if (kw_attention_variant_matches(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherVariant;
  return kw_attention_choices_match(&t, &p, reason, bytes) == KW_OK ? Fit::kServes : Fit::kOtherVariant;
}

Fit append_matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  const kw_attention_traits& t = attention_traits(kernel);
  const kw_append_problem& p = as_append(problem);
  if (kw_attention_append_dtypes_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherDtype;
  if (kw_attention_append_hdims_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherLayout;
  return kw_attention_append_variant_matches(&t, &p, reason, bytes) == KW_OK ? Fit::kServes : Fit::kOtherVariant;
}

// A choice is a number of splits, with this bit where the kernel leaves them for a second stage.
constexpr uint32_t kLeaves = 1u << 31;

uint32_t choice(const kw_attention_traits& t, uint32_t splits) {
  return kw_attention_leaves(&t, splits) ? splits | kLeaves : splits;
}

// Powers of two, what lies half-way between them, and what fills the units once or twice, as far as splits have tiles
// of keys.
size_t split_choices(const kw_kernel& kernel, const kw_problem& problem, const Place& place, uint32_t* values) {
  const kw_attention_traits& t = attention_traits(kernel);
  const kw_attention_problem& p = as_attention(problem);
  if (p.leaves_splits != kSplitsOpen) return 0;
  if (p.num_splits != 0) {
    values[0] = choice(t, p.num_splits);
    return 1;
  }
  const int64_t tiles = (p.max_seqlen_k + t.tile_n0 - 1) / t.tile_n0;
  const uint32_t most = tiles < 1 ? 1 : tiles < t.max_splits ? static_cast<uint32_t>(tiles) : t.max_splits;
  size_t count = 0;
  const uint32_t filling = splits_that_fill(t, p, place);
  for (uint32_t splits = filling; splits > 1 && splits <= most && count < 2; splits *= 2) {
    values[count++] = choice(t, splits);
  }
  for (uint32_t power = 1; power <= most && count + 1 < kMaxChoices; power *= 2) {
    values[count++] = choice(t, power);
    if (power > 1 && power + power / 2 <= most) values[count++] = choice(t, power + power / 2);
  }
  return count;
}

void choose_splits(kw_problem* problem, uint32_t value) {
  auto* p = reinterpret_cast<kw_attention_problem*>(problem);
  p->num_splits = value & ~kLeaves;
  p->leaves_splits = (value & kLeaves) != 0 ? 1 : 0;
}

void describe_splits(const kw_problem& problem, Text* text) {
  text->add("num_splits=").add(as_attention(problem).num_splits);
}

size_t slice_choices(const kw_kernel& kernel, const kw_problem& problem, const Place&, uint32_t* values) {
  const kw_attention_problem& p = as_attention(problem);
  if (p.dq_slices != kDqOpen) return 0;
  values[0] = static_cast<uint32_t>(kw_attention_dq_slices(&attention_traits(kernel), &p));
  return 1;
}

void choose_slices(kw_problem* problem, uint32_t value) {
  reinterpret_cast<kw_attention_problem*>(problem)->dq_slices = value;
}

void describe_slices(const kw_problem& problem, Text* text) {
  if (as_attention(problem).dq_slices > 1) text->add("dq_slices=").add(as_attention(problem).dq_slices);
}

// Forward without rows of O has nothing to write; backward writes gradients of zero where there are rows at all.
bool is_empty(const kw_problem& problem) {
  const kw_attention_problem& p = as_attention(problem);
  const bool queries = kw_attention_rows(&p) > 0,
             keys = p.group != 0 ? p.total_k > 0 : p.batch > 0 && p.max_seqlen_k > 0;
  const bool gradients = problem.op == KW_OP_ATTENTION_BACKWARD || problem.op == KW_OP_ATTENTION_DQ_DK_DV;
  return !queries && !(gradients && keys);
}

bool append_is_empty(const kw_problem& problem) {
  const kw_append_problem& p = as_append(problem);
  return p.batch == 0 || (p.seqlen_new == 0 && p.seqlen_q == 0);
}

// --- forward: a part, and a combination where it leaves splits

bool forward_stage(const kw_problem& problem, uint32_t index, const kw_problem* const* planned, AnyProblem* next) {
  kw_attention_problem stage = as_attention(problem);
  if (index == 0) {
    stage.base.op = KW_OP_ATTENTION_PART;
    stage.leaves_splits = kSplitsOpen;
  } else if (index == 1 && as_attention(*planned[0]).leaves_splits == 1) {
    stage.base.op = KW_OP_ATTENTION_COMBINE;
    stage.num_splits = as_attention(*planned[0]).num_splits;
  } else {
    return false;
  }
  memcpy(next->bytes, &stage, sizeof stage);
  return true;
}

constexpr int64_t kAlignment = 256;

uint64_t split_o_bytes(const kw_attention_problem& p) {
  const int64_t bytes = kw_mul(kw_mul3(p.num_splits, kw_attention_rows(&p), p.hdim_v), 4);
  return static_cast<uint64_t>(kw_mul(kw_parts(bytes, kAlignment), kAlignment));
}

// O of all splits, then their LSE.
uint64_t forward_scratch(const kw_problem&, uint32_t, const kw_problem& planned) {
  const kw_attention_problem& p = as_attention(planned);
  if (planned.op != KW_OP_ATTENTION_PART || p.leaves_splits != 1) return 0;
  const int64_t lse = kw_mul3(4, p.num_splits, kw_attention_rows(&p));
  return static_cast<uint64_t>(kw_add(static_cast<int64_t>(split_o_bytes(p)), lse));
}

void forward_args(const kw_problem&, uint32_t, const kw_problem* const* planned, const void* args, void* const* scratch,
                  void* own) {
  kw_attention_args made = *static_cast<const kw_attention_args*>(args);
  if (scratch[0] != nullptr) {
    made.o_splits = static_cast<float*>(scratch[0]);
    char* const lse = static_cast<char*>(scratch[0]) + split_o_bytes(as_attention(*planned[0]));
    made.lse_splits = reinterpret_cast<float*>(lse);
  }
  memcpy(own, &made, sizeof made);
}

// --- backward: dot, gradients, conversion

bool backward_stage(const kw_problem& problem, uint32_t index, const kw_problem* const* planned, AnyProblem* next) {
  kw_attention_problem stage = as_attention(problem);
  if (index == 0) {
    stage.base.op = KW_OP_ATTENTION_DOT;
  } else if (index == 1) {
    stage.base.op = KW_OP_ATTENTION_DQ_DK_DV;
    stage.dq_slices = kDqOpen;
  } else if (index == 2 && as_attention(*planned[1]).dq_slices != 0) {
    stage.base.op = KW_OP_ATTENTION_CONVERT_DQ;
    stage.dq_slices = as_attention(*planned[1]).dq_slices;
  } else {
    return false;
  }
  memcpy(next->bytes, &stage, sizeof stage);
  return true;
}

uint64_t backward_scratch(const kw_problem&, uint32_t index, const kw_problem& planned) {
  const kw_attention_problem& p = as_attention(planned);
  const int64_t rows = kw_attention_rows(&p);
  if (index == 0) return static_cast<uint64_t>(kw_mul(4, rows));  // D
  return index == 1 ? static_cast<uint64_t>(kw_mul(kw_mul3(4, p.dq_slices, rows), p.hdim_q)) : 0;
}

void backward_args(const kw_problem&, uint32_t, const kw_problem* const*, const void* args, void* const* scratch,
                   void* own) {
  kw_attention_args made = *static_cast<const kw_attention_args*>(args);
  made.d = static_cast<float*>(scratch[0]);
  made.dq_sums = static_cast<float*>(scratch[1]);
  memcpy(own, &made, sizeof made);
}

constexpr Operation table(uint32_t op, const char* name) {
  Operation made;
  made.version = kOperationVersion;
  made.op = op;
  made.name = name;
  made.problem_bytes = sizeof(kw_attention_problem);
  made.args_bytes = sizeof(kw_attention_args);
  made.validate = validate_attention;
  made.key = key<kw_attention_problem>;
  made.describe = describe_attention;
  made.to_json = attention_json;
  made.incomplete = incomplete;
  made.matches = matches;
  made.estimate = estimate_attention;
  made.is_empty = is_empty;
  made.validate_args = validate_attention_args;
  return made;
}

constexpr Operation forward() {
  Operation made = table(KW_OP_ATTENTION, "attention");
  made.operands = attention_operands;
  made.stage = forward_stage;
  made.scratch_bytes = forward_scratch;
  made.stage_args = forward_args;
  return made;
}

constexpr Operation backward() {
  Operation made = table(KW_OP_ATTENTION_BACKWARD, "attention backward");
  made.operands = attention_operands;
  made.stage = backward_stage;
  made.scratch_bytes = backward_scratch;
  made.stage_args = backward_args;
  return made;
}

constexpr Operation part() {
  Operation made = table(KW_OP_ATTENTION_PART, "attention part");
  made.choices = split_choices;
  made.choose = choose_splits;
  made.describe_choices = describe_splits;
  return made;
}

constexpr Operation gradients() {
  Operation made = table(KW_OP_ATTENTION_DQ_DK_DV, "attention dq_dk_dv");
  made.choices = slice_choices;
  made.choose = choose_slices;
  made.describe_choices = describe_slices;
  return made;
}

constexpr Operation append() {
  Operation made = table(KW_OP_ATTENTION_APPEND, "attention append");
  made.problem_bytes = sizeof(kw_append_problem);
  made.args_bytes = sizeof(kw_append_args);
  made.validate = validate_append;
  made.key = key<kw_append_problem>;
  made.describe = describe_append;
  made.to_json = append_json;
  made.matches = append_matches;
  made.estimate = estimate_append;
  made.is_empty = append_is_empty;
  made.validate_args = validate_append_args;
  made.operands = append_operands;
  return made;
}

}  // namespace

const Operation kAttention = forward();
const Operation kAttentionBackward = backward();
const Operation kAttentionPart = part();
const Operation kAttentionCombine = table(KW_OP_ATTENTION_COMBINE, "attention combine");
const Operation kAttentionAppend = append();
const Operation kAttentionDot = table(KW_OP_ATTENTION_DOT, "attention dot");
const Operation kAttentionDqDkDv = gradients();
const Operation kAttentionConvertDq = table(KW_OP_ATTENTION_CONVERT_DQ, "attention convert_dq");

const Operation* const kAttentionTables[] = {&kAttention,        &kAttentionBackward, &kAttentionPart,
                                             &kAttentionCombine, &kAttentionAppend,   &kAttentionDot,
                                             &kAttentionDqDkDv,  &kAttentionConvertDq};
extern const Operations kAttentionOperations;
const Operations kAttentionOperations = {kAttentionTables, sizeof kAttentionTables / sizeof kAttentionTables[0]};

}  // namespace kernelwright
