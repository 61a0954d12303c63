// The tables of GEMM and grouped GEMM, and what is short enough to stand beside them.
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/gemm/estimate.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"

namespace kernelwright {
namespace {

// The fields that every problem uses, then strides of a batch, then lines of D tensors, as far as there are any. What
// is there follows from the fields before it, so no two problems have the same words.
size_t gemm_key(const kw_problem& problem, uint64_t* words) {
  const kw_gemm_problem& p = as_gemm(problem);
  constexpr size_t kTypes = offsetof(kw_gemm_problem, dtype_a), kStrides = offsetof(kw_gemm_problem, stride_a);
  constexpr size_t kEpilogue = offsetof(kw_gemm_problem, num_d), kLines = offsetof(kw_gemm_problem, ld_multi_d);
  static_assert(kTypes % 8 == 0 && kStrides % 8 == 0 && kEpilogue % 8 == 0 && kLines % 8 == 0, "whole words");
  const auto* bytes = reinterpret_cast<const unsigned char*>(&p);
  uint64_t* next = words;
  memcpy(next, bytes + kTypes, kStrides - kTypes);
  next += (kStrides - kTypes) / 8;
  memcpy(next, bytes + kEpilogue, kLines - kEpilogue);
  next += (kLines - kEpilogue) / 8;
  *next++ = p.b_format;
  if (p.batch != 1) {
    memcpy(next, bytes + kStrides, kEpilogue - kStrides);
    next += (kEpilogue - kStrides) / 8;
  }
  const uint32_t tensors = p.num_d < KW_MAX_D ? p.num_d : KW_MAX_D;  // not validated yet
  for (uint32_t i = 0; i < tensors; ++i) {
    *next++ = static_cast<uint64_t>(p.ld_multi_d[i]);
    if (p.batch != 1) *next++ = static_cast<uint64_t>(p.stride_multi_d[i]);
  }
  return static_cast<size_t>(next - words);
}

const char* incomplete(const kw_kernel& kernel) {
  const auto* traits = static_cast<const kw_gemm_traits*>(kernel.traits);
  if (traits == nullptr || traits->struct_size < sizeof(kw_gemm_traits)) return "lacks traits";
  const uint32_t extents[] = {traits->tile_m,      traits->tile_n,      traits->tile_k,
                              traits->warp_tile_m, traits->warp_tile_n, traits->warp_tile_k};
  for (uint32_t extent : extents) {
    if (extent == 0) return "has a zero tile extent";
  }
  if (traits->max_split_k == 0 || traits->num_d > KW_MAX_D) return "has max_split_k 0 or too many D tensors";
  const auto* extension = static_cast<const kw_gemm_extension*>(kernel.extension);
  if (extension != nullptr && extension->struct_size < sizeof(kw_gemm_extension)) return "has too small an extension";
  if (extension != nullptr && check_reserved("has an extension of a later version", *extension) != KW_OK) {
    return kw_last_error();
  }
  const bool shuffles =
      extension != nullptr && extension->shuffle_b != nullptr && extension->shuffle_b_bytes != nullptr;
  if ((traits->b_format != 0) != shuffles) return "has a b_format without shuffle_b, or the other way round";
  return nullptr;
}

bool same_types(const kw_gemm_traits& t, const kw_gemm_problem& p) {
  const uint32_t dtypes = (p.dtype_a ^ t.dtype_a) | (p.dtype_b ^ t.dtype_b) | (p.dtype_c ^ t.dtype_c);
  const uint32_t layouts = (p.layout_a ^ t.layout_a) | (p.layout_b ^ t.layout_b) | (p.layout_c ^ t.layout_c);
  return (dtypes | layouts | (p.dtype_acc ^ t.dtype_acc)) == 0;
}

Fit types_match(const kw_gemm_traits& t, const kw_gemm_problem& p, char* reason, size_t bytes) {
  if (same_types(t, p)) return Fit::kServes;
  if (kw_gemm_dtypes_match(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherDtype;
  return kw_gemm_layouts_match(&t, &p, reason, bytes) == KW_OK ? Fit::kServes : Fit::kOtherLayout;
}

Fit gemm_matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  const kw_gemm_traits& t = gemm_traits(kernel);
  const kw_gemm_problem& p = as_gemm(problem);
  if (bytes == 0 && !same_types(t, p)) return Fit::kOtherDtype;  // nobody asks which
  const Fit fit = types_match(t, p, reason, bytes);
  if (fit != Fit::kServes) return fit;
  if (kw_gemm_variant_matches(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherVariant;
  if (p.split_k != 0 && kw_gemm_split_k_matches(&t, &p, reason, bytes) != KW_OK) return Fit::kOtherVariant;
  return Fit::kServes;
}

Fit grouped_matches(const kw_kernel& kernel, const kw_problem& problem, char* reason, size_t bytes) {
  return types_match(gemm_traits(kernel), kw_types_of_groups(&as_grouped(problem)), reason, bytes);
}

void choose_split_k(kw_problem* problem, uint32_t slices) {
  reinterpret_cast<kw_gemm_problem*>(problem)->split_k = slices;
}

void describe_choices(const kw_problem& problem, Text* text) { text->add("split_k=").add(as_gemm(problem).split_k); }

Estimate gemm_estimate(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  return estimate(as_gemm(problem), gemm_traits(kernel), place);
}

Estimate grouped_estimate(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  return estimate(as_grouped(problem), gemm_traits(kernel), place);
}

bool gemm_is_empty(const kw_problem& problem) { return as_gemm(problem).m == 0 || as_gemm(problem).n == 0; }

bool grouped_is_empty(const kw_problem& problem) { return as_grouped(problem).group_count == 0; }

kw_status gemm_args(const kw_problem& problem, const void* args) {
  return validate_args(as_gemm(problem), static_cast<const kw_gemm_args*>(args));
}

kw_status grouped_args(const kw_problem& problem, const void* args) {
  return validate_args(as_grouped(problem), static_cast<const kw_grouped_gemm_args*>(args));
}

kw_status copy_groups(const kw_problem& problem, kw_problem* copy) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  const size_t bytes = static_cast<size_t>(p.group_count) * sizeof(kw_gemm_group);
  auto* groups = static_cast<kw_gemm_group*>(malloc(bytes + 1));
  reinterpret_cast<kw_grouped_gemm_problem*>(copy)->groups = groups;
  if (groups == nullptr) return KW_OUT_OF_MEMORY;
  if (bytes > 0) memcpy(groups, p.groups, bytes);
  return KW_OK;
}

void release_groups(kw_problem* copy) { free(const_cast<kw_gemm_group*>(as_grouped(*copy).groups)); }

}  // namespace

const Operation kGemm = {
    .version = kOperationVersion,
    .op = KW_OP_GEMM,
    .name = "gemm",
    .problem_bytes = sizeof(kw_gemm_problem),
    .args_bytes = sizeof(kw_gemm_args),
    .validate = validate_gemm,
    .key = gemm_key,
    .describe = describe_gemm,
    .to_json = gemm_json,
    .incomplete = incomplete,
    .matches = gemm_matches,
    .choices = split_k_choices,
    .choose = choose_split_k,
    .describe_choices = describe_choices,
    .estimate = gemm_estimate,
    .is_empty = gemm_is_empty,
    .validate_args = gemm_args,
    .operands = gemm_operands,
};

const Operation kGroupedGemm = {
    .version = kOperationVersion,
    .op = KW_OP_GROUPED_GEMM,
    .name = "grouped gemm",
    .problem_bytes = sizeof(kw_grouped_gemm_problem),
    .args_bytes = sizeof(kw_grouped_gemm_args),
    .validate = validate_grouped,
    .copy = copy_groups,
    .release = release_groups,
    .describe = describe_grouped,
    .to_json = grouped_json,
    .incomplete = incomplete,
    .matches = grouped_matches,
    .estimate = grouped_estimate,
    .is_empty = grouped_is_empty,
    .validate_args = grouped_args,
    .operands = grouped_operands,
};

const Operation* const kGemmTables[] = {&kGemm, &kGroupedGemm};
extern const Operations kGemmOperations;
const Operations kGemmOperations = {kGemmTables, sizeof kGemmTables / sizeof kGemmTables[0]};

}  // namespace kernelwright
