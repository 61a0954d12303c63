// Plans and launches of the families of attention kernels. Problems are those that the kernel serves.
#ifndef KERNELWRIGHT_HIP_LAUNCHERS_ATTENTION_FAMILIES_HPP
#define KERNELWRIGHT_HIP_LAUNCHERS_ATTENTION_FAMILIES_HPP

#include "kernelwright/hip/attention/launcher.h"
#include "launchers/hip/common/launch.hpp"

namespace kernelwright::hip {

KW_HIDDEN void plan_part(const kw_hip_attention& kernel, const kw_attention_problem& p, kw_hip_attention_plan* made);
KW_HIDDEN void plan_combine(const kw_hip_attention& kernel, const kw_attention_problem& p, uint32_t rows,
                            kw_hip_attention_plan* made);
KW_HIDDEN void plan_gradients(const kw_hip_attention& kernel, const kw_attention_problem& p, uint32_t rows,
                              kw_hip_attention_plan* made);
KW_HIDDEN void plan_append(const kw_hip_attention& kernel, const kw_append_problem& p, kw_hip_attention_plan* made);

KW_HIDDEN kw_status launch_part(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan,
                                const kw_launch* where, const kw_attention_args& given);
KW_HIDDEN kw_status launch_combine(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan,
                                   const kw_launch* where, const kw_attention_args& given);
KW_HIDDEN kw_status launch_gradients(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan,
                                     const kw_launch* where, const kw_attention_args& given);
KW_HIDDEN kw_status launch_append(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan,
                                  const kw_launch* where, const kw_append_args& given);

// The kernel that the plan says.
template <class Arguments>
kw_status launch_planned(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                         Arguments* x) {
  if (plan.grid[0] == 0) return KW_OK;
  return kw_hip_launch_grid(&kernel.codes[plan.code], where, plan.grid, plan.block, x, sizeof *x);
}

// A kernel beside it with a work-item for each of `count` elements, of which there are fewer than 2^31.
template <class Arguments>
kw_status launch_elements(const kw_hip_code& code, const kw_launch* where, int64_t count, Arguments* x) {
  const auto grid = static_cast<uint32_t>(kw_parts(count, KW_HIP_ATTENTION_BLOCK));
  return grid == 0 ? KW_OK : kw_hip_launch(&code, where, grid, KW_HIP_ATTENTION_BLOCK, x, sizeof *x);
}

// Masks as CK Tile numbers them. It takes causal slopes for distances from the first key, which changes LSE: a window
// without an end that is written as a width is none of these.
template <class Arguments>
void set_mask(const kw_attention_problem& p, Arguments* x) {
  constexpr int32_t top_left = 1, bottom_right = 2;
  // No query is further from a key than all of both.
  const int64_t most = kw_smaller(kw_add(p.max_seqlen_q, p.max_seqlen_k), INT32_MAX);
  const auto width = [&](int64_t asked) { return static_cast<int32_t>(kw_smaller(asked, most)); };
  const bool slopes = p.bias == KW_BIAS_ALIBI && p.window_left < 0 && p.window_right == 0;
  x->mask = p.mask == KW_MASK_TOP_LEFT ? top_left : bottom_right;
  x->window_left = width(slopes ? INT32_MAX : p.window_left), x->window_right = width(p.window_right);
}

// Strides that a kernel reads; *lost is set where one does not fit.
inline kw_hip_attention_strides strides_of(const kw_attention_strides& s, int* lost) {
  return {kw_as_int32(s.row, lost), kw_as_int32(s.head, lost), kw_as_int32(s.request, lost)};
}

// Of dense tensors with heads outside of rows, such as parts of O; see "per row" in kernelwright/attention.h. One
// request is not stepped over.
inline kw_attention_strides heads_first(int64_t batch, int64_t heads, int64_t rows, int64_t hdim) {
  const int64_t head = kw_mul(rows, hdim);
  return {batch > 1 ? kw_mul(heads, head) : 0, head, hdim};
}
inline kw_attention_strides per_row(const kw_attention_problem& p, int64_t hdim) {
  return heads_first(p.group ? 1 : p.batch, p.heads_q, p.group ? p.total_q : p.max_seqlen_q, hdim);
}

}  // namespace kernelwright::hip

#endif  // KERNELWRIGHT_HIP_LAUNCHERS_ATTENTION_FAMILIES_HPP
