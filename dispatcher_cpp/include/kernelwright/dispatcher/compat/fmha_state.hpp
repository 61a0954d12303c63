// What the familiar attention functions work on between fmha_dispatcher_initialize() and fmha_dispatcher_cleanup().
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_STATE_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_STATE_HPP

#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/compat/session.hpp"
#include "kernelwright/dispatcher/fmha_lib.h"

namespace kernelwright {

struct FmhaState : Session {};

extern Slot<FmhaState> g_fmha;

class FmhaReading : public Slot<FmhaState>::Reading {
 public:
  FmhaReading() : Reading(g_fmha) {}
  FmhaState* state() const { return Reading::state("fmha_dispatcher_initialize"); }
};

constexpr size_t kMaxFmhaOperands = 28;

// One array of the caller in host memory. `member` is where its address goes in the arguments of the problem.
struct FmhaOperand {
  size_t member;
  void* host;
  size_t bytes;
  bool read, written;
};

// A problem with what its launch needs: one of the two problems and one of the two arguments.
struct FmhaCall {
  bool appends = false;
  kw_attention_problem attention{};
  kw_append_problem append{};
  kw_attention_args attention_args{};
  kw_append_args append_args{};
  FmhaOperand operands[kMaxFmhaOperands] = {};
  size_t count = 0;

  const kw_problem& problem() const { return appends ? append.base : attention.base; }
  void* args() { return appends ? static_cast<void*>(&append_args) : static_cast<void*>(&attention_args); }
};

// What the struct has no member for. Its defaults are what the struct's own function does.
struct FmhaForm {
  bool pages_heads_first = false;  // pages are (heads, page_block_size, hdim) whatever i_perm says
  uint32_t page_layout = KW_PAGE_LINEAR;
  bool scale_may_be_zero = false;
};

// KW_INVALID_ARGUMENT for a null pointer, another size or version, and what makes no problem. Operands that the problem
// has not are left out, those that it lacks are found by the dispatcher's own checks.
kw_status fmha_call(const fmha_dispatcher_args* args, const FmhaForm& form, FmhaCall* call);
// Plans and launches; what fmha_dispatcher_run() returns.
int fmha_run(const fmha_dispatcher_args* given, const FmhaForm& form, float* time_ms);
// Launches where the kernels are, with operands copied there and results back.
kw_status fmha_launch(const FmhaState& state, const Target& target, const Planned& planned, FmhaCall* call,
                      float* time_ms);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_STATE_HPP
