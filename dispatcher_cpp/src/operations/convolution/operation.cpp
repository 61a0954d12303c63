// The tables of convolution, and what is short enough to stand beside them.
#include <string.h>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

// Everything behind the head; a problem has no padding bytes and nothing that depends on other fields.
size_t key(const kw_problem& problem, uint64_t* words) {
  constexpr size_t kFirst = offsetof(kw_conv_problem, dtype_x), kBytes = sizeof(kw_conv_problem) - kFirst;
  static_assert(kFirst % 8 == 0 && kBytes % 8 == 0 && kBytes / 8 <= kMaxKeyWords, "whole words");
  memcpy(words, reinterpret_cast<const unsigned char*>(&problem) + kFirst, kBytes);
  return kBytes / 8;
}

const char* incomplete(const kw_kernel& kernel) {
  const auto* traits = static_cast<const kw_conv_traits*>(kernel.traits);
  if (traits == nullptr || traits->struct_size < sizeof(kw_conv_traits)) return "lacks traits";
  const uint32_t extents[] = {traits->tile_m,      traits->tile_n,      traits->tile_k,
                              traits->warp_tile_m, traits->warp_tile_n, traits->warp_tile_k};
  for (uint32_t extent : extents) {
    if (extent == 0) return "has a zero tile extent";
  }
  return traits->max_split_k == 0 ? "has max_split_k 0" : nullptr;
}

Fit matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  const kw_conv_traits& t = conv_traits(kernel);
  const kw_conv_problem& p = as_conv(problem);
  if (kw_conv_dtypes_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherDtype;
  if (kw_conv_layouts_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherLayout;
  if (kw_conv_variant_matches(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherVariant;
  if (p.base.op == KW_OP_CONV_SUM_SLICES || p.split_k == 0) return Fit::kServes;
  kw_conv_problem settled = p;
  if (settled.leaves_slices == kSlicesOpen) settled.leaves_slices = p.split_k > 1 && t.slices != 0 ? 1 : 0;
  return kw_conv_split_k_matches(&t, &settled, reason, bytes) == KW_OK ? Fit::kServes : Fit::kOtherVariant;
}

// A choice is a number of slices, with this bit where the kernel leaves them for a second stage.
constexpr uint32_t kLeaves = 1u << 31;

uint32_t choice(const kw_conv_traits& t, uint32_t slices) {
  return slices > 1 && t.slices != 0 ? slices | kLeaves : slices;
}

// Powers of two and what lies half-way between them, as far as slices have outputs to sum.
size_t slice_choices(const kw_kernel& kernel, const kw_problem& problem, const Place&, uint32_t* values) {
  const kw_conv_traits& t = conv_traits(kernel);
  const kw_conv_problem& p = as_conv(problem);
  if (p.leaves_slices != kSlicesOpen) return 0;
  if (p.split_k != 0) {
    values[0] = choice(t, p.split_k);
    return 1;
  }
  const int64_t steps = kw_conv_as_gemm(&p).k / t.tile_k;
  const uint32_t most = steps < 1 ? 1 : steps < t.max_split_k ? static_cast<uint32_t>(steps) : t.max_split_k;
  size_t count = 0;
  for (uint32_t power = 1; power <= most && count + 1 < kMaxChoices; power *= 2) {
    values[count++] = choice(t, power);
    if (power > 1 && power + power / 2 <= most) values[count++] = choice(t, power + power / 2);
  }
  return count;
}

void choose(kw_problem* problem, uint32_t value) {
  auto* p = reinterpret_cast<kw_conv_problem*>(problem);
  p->split_k = value & ~kLeaves;
  p->leaves_slices = (value & kLeaves) != 0 ? 1 : 0;
}

void describe_slices(const kw_problem& problem, Text* text) { text->add("split_k=").add(as_conv(problem).split_k); }

// Backward weight without images is a dw of zeros.
bool is_empty(const kw_problem& problem) {
  return as_conv(problem).n == 0 && (problem.op == KW_OP_CONV_FORWARD || problem.op == KW_OP_CONV_BACKWARD_DATA);
}

bool stage(const kw_problem& problem, uint32_t index, const kw_problem* const* planned, AnyProblem* next) {
  kw_conv_problem stage = as_conv(problem);
  if (index == 0) {
    stage.base.op = KW_OP_CONV_WEIGHT_SLICES;
    stage.leaves_slices = kSlicesOpen;
  } else if (index == 1 && as_conv(*planned[0]).leaves_slices == 1) {
    stage.base.op = KW_OP_CONV_SUM_SLICES;
    stage.split_k = as_conv(*planned[0]).split_k;
  } else {
    return false;
  }
  memcpy(next->bytes, &stage, sizeof stage);
  return true;
}

uint64_t scratch_bytes(const kw_problem&, uint32_t, const kw_problem& planned) {
  const kw_conv_problem& p = as_conv(planned);
  if (p.leaves_slices != 1) return 0;
  const int64_t weights = kw_mul3(p.k, p.c / p.groups, kw_conv_filter_points(&p));
  return static_cast<uint64_t>(kw_mul3(4, p.split_k, weights));
}

void stage_args(const kw_problem&, uint32_t index, const kw_problem* const*, const void* args, void* const* scratch,
                void* own) {
  kw_conv_args made = *static_cast<const kw_conv_args*>(args);
  if (index == 0 && scratch[0] != nullptr) made.d = scratch[0];
  if (index == 1) {
    made.a = scratch[0];
    made.b = nullptr;
  }
  memcpy(own, &made, sizeof made);
}

constexpr Operation table(uint32_t op, const char* name) {
  Operation made;
  made.version = kOperationVersion;
  made.op = op;
  made.name = name;
  made.problem_bytes = sizeof(kw_conv_problem);
  made.args_bytes = sizeof(kw_conv_args);
  made.validate = validate_conv;
  made.key = key;
  made.describe = describe_conv;
  made.to_json = conv_json;
  made.incomplete = incomplete;
  made.matches = matches;
  made.estimate = estimate_conv;
  made.is_empty = is_empty;
  made.validate_args = validate_conv_args;
  return made;
}

// Problems that callers ask for; operands of stages follow from theirs.
constexpr Operation whole_operation(uint32_t op, const char* name) {
  Operation made = table(op, name);
  made.operands = conv_operands;
  return made;
}

constexpr Operation weight() {
  Operation made = whole_operation(KW_OP_CONV_BACKWARD_WEIGHT, "conv backward weight");
  made.stage = stage;
  made.scratch_bytes = scratch_bytes;
  made.stage_args = stage_args;
  return made;
}

constexpr Operation slices() {
  Operation made = table(KW_OP_CONV_WEIGHT_SLICES, "conv weight slices");
  made.choices = slice_choices;
  made.choose = choose;
  made.describe_choices = describe_slices;
  return made;
}

}  // namespace

const Operation kConvForward = whole_operation(KW_OP_CONV_FORWARD, "conv forward");
const Operation kConvBackwardData = whole_operation(KW_OP_CONV_BACKWARD_DATA, "conv backward data");
const Operation kConvBackwardWeight = weight();
const Operation kConvWeightSlices = slices();
const Operation kConvSumSlices = table(KW_OP_CONV_SUM_SLICES, "conv sum of slices");

const Operation* const kConvolutionTables[] = {&kConvForward, &kConvBackwardData, &kConvBackwardWeight,
                                               &kConvWeightSlices, &kConvSumSlices};
extern const Operations kConvolutionOperations;
const Operations kConvolutionOperations = {kConvolutionTables,
                                           sizeof kConvolutionTables / sizeof kConvolutionTables[0]};

}  // namespace kernelwright
