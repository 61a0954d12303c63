// Launches of the familiar attention functions: operands to the device where there is one, results back.
#include <string.h>

#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/compat/fmha_state.hpp"
#include "kernelwright/dispatcher/plan.hpp"

namespace kernelwright {
namespace {

void place(void* args, const FmhaOperand& operand, void* address) {
  memcpy(static_cast<char*>(args) + operand.member, &address, sizeof address);
}

kw_status validate_args(const kw_plan& plan, FmhaCall* call) {
  for (size_t i = 0; i < call->count; ++i) place(call->args(), call->operands[i], call->operands[i].host);
  const kw_status status = call->appends ? validate_append_args(call->problem(), call->args())
                                         : validate_attention_args(call->problem(), call->args());
  // Also where copies are computed with: what one backend refuses, none accepts.
  return status == KW_OK ? check_operands(plan, call->args(), nullptr, 0) : status;
}

// The operands on a device; memory goes with it.
class Placed {
 public:
  explicit Placed(const Memory& memory) : memory_(memory) {}
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() {
    for (void* address : addresses_) memory_.release(address);
  }

  kw_status bring(FmhaCall* call) {
    for (size_t i = 0; i < call->count; ++i) {
      const FmhaOperand& one = call->operands[i];
      if (kw_status status = memory_.allocate(one.bytes, &addresses_[i])) return status;
      place(call->args(), one, addresses_[i]);
      if (!one.read) continue;
      if (kw_status status = memory_.copy_in(addresses_[i], one.host, one.bytes)) return status;
    }
    return KW_OK;
  }
  kw_status take(const FmhaCall& call) const {
    for (size_t i = 0; i < call.count; ++i) {
      const FmhaOperand& one = call.operands[i];
      if (!one.written) continue;
      if (kw_status status = memory_.copy_out(one.host, addresses_[i], one.bytes)) return status;
    }
    return memory_.finish();  // copies within a device may still be under way
  }

 private:
  const Memory& memory_;
  void* addresses_[kMaxFmhaOperands] = {};
};

}  // namespace

kw_status fmha_launch(const FmhaState& state, const Target& target, const Planned& planned, FmhaCall* call,
                      float* time_ms) {
  if (kw_status status = validate_args(*planned.get(), call)) return status;
  const Entered entered(state.memory, target.device);
  if (entered.status() != KW_OK) return entered.status();
  Buffer workspace(state.memory);
  kw_launch where{};
  where.struct_size = sizeof where;
  where.device = target.device;
  where.workspace_bytes = kw_plan_workspace_size(planned.get());
  if (kw_status status = workspace.allocate(where.workspace_bytes)) return status;
  where.workspace = workspace.get();
  const Run run = {state.memory, planned.get(), where};
  if (state.memory.is_host()) return launch(run, call->args(), time_ms);
  Placed placed(state.memory);
  if (kw_status status = placed.bring(call)) return status;
  if (kw_status status = launch(run, call->args(), time_ms)) return status;
  return placed.take(*call);
}

}  // namespace kernelwright
