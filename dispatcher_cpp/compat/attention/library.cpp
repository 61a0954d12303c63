#include <string.h>

#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/compat/fmha_state.hpp"

using namespace kernelwright;

Slot<FmhaState> kernelwright::g_fmha;

namespace {

constexpr Places kPlaces = {"KERNELWRIGHT_FMHA_KERNELS", "dispatcher_fmha_kernels",
                            "../../kernelwright_kernels/attention"};

int code(kw_status status) {
  if (status == KW_OK) return FMHA_DISPATCHER_OK;
  return status == KW_NO_KERNEL ? FMHA_DISPATCHER_NO_KERNEL : FMHA_DISPATCHER_ERROR;
}

bool is_attention(const kw_kernel& kernel) {
  return kernel.op >= KW_OP_ATTENTION_PART && kernel.op <= KW_OP_ATTENTION_CONVERT_DQ;
}

// KW_NO_KERNEL without attention kernels, KW_ARCH_MISMATCH where none is of the architecture that is asked for.
kw_status check_kernels(kw_dispatcher* dispatcher, const char* arch) {
  bool any = false;
  const char* other = "";
  for (uint64_t i = 0; i < kw_dispatcher_kernel_count(dispatcher); ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    if (kw_status status = kw_dispatcher_kernel_at(dispatcher, i, &info)) return status;
    if (!is_attention(*info.kernel)) continue;
    if (arch == nullptr || strcmp(info.kernel->arch, arch) == 0) return KW_OK;
    any = true;
    other = info.kernel->arch;
  }
  if (any) return fail(KW_ARCH_MISMATCH, "arch = %s; allowed: %s, which this device runs", arch, other);
  return fail(KW_NO_KERNEL, "the libraries have no attention kernels");
}

kw_status fill(FmhaState* state, const char* kernels, const char* arch) {
  if (kw_status status = state->open(kernels, kPlaces)) return status;
  return check_kernels(state->first.dispatcher, arch);
}

// The plan of a call on the device of the calling thread.
kw_status plan(FmhaState* state, const fmha_dispatcher_args* args, const FmhaForm& form, Target* target, FmhaCall* call,
               Planned* planned) {
  if (state == nullptr) return KW_INVALID_ARGUMENT;
  if (kw_status status = fmha_call(args, form, call)) return status;
  if (kw_status status = state->here(target)) return status;
  return planned->make(*target, call->problem());
}

}  // namespace

int kernelwright::fmha_run(const fmha_dispatcher_args* given, const FmhaForm& form, float* time_ms) {
  const FmhaReading reading;
  FmhaState* state = reading.state();
  Target target{};
  FmhaCall call;
  Planned planned;
  if (kw_status status = plan(state, given, form, &target, &call, &planned)) return code(status);
  const kw_status status = fmha_launch(*state, target, planned, &call, time_ms);
  return status == KW_OK ? FMHA_DISPATCHER_OK : FMHA_DISPATCHER_ERROR;
}

const char* fmha_dispatcher_version(void) { return "1.0.0"; }

const char* fmha_dispatcher_last_error(void) { return kw_last_error(); }

int fmha_dispatcher_initialize_from(const char* kernels, const char* arch) {
  const kw_status status = g_fmha.init([&](FmhaState* state) { return fill(state, kernels, arch); });
  return status == KW_OK ? FMHA_DISPATCHER_OK : FMHA_DISPATCHER_ERROR;
}

int fmha_dispatcher_initialize(const char* arch) { return fmha_dispatcher_initialize_from(nullptr, arch); }

void fmha_dispatcher_cleanup(void) { g_fmha.cleanup(); }

int fmha_dispatcher_kernel_count(void) {
  const FmhaReading reading;
  const FmhaState* state = reading.get();
  return state == nullptr ? 0 : static_cast<int>(kw_dispatcher_kernel_count(state->first.dispatcher));
}

int fmha_dispatcher_get_kernel_name(int index, char* name, int bytes) {
  const FmhaReading reading;
  const FmhaState* state = reading.state();
  if (state == nullptr) return FMHA_DISPATCHER_ERROR;
  return code(write_kernel_name(*state, index, name, bytes));
}

int fmha_dispatcher_select_kernel(const fmha_dispatcher_args* args, char* name, int bytes) {
  const FmhaReading reading;
  Target target{};
  FmhaCall call;
  Planned planned;
  kw_status status = plan(reading.state(), args, {}, &target, &call, &planned);
  if (status == KW_OK) status = planned.write_name(name, bytes);
  return code(status);
}

int fmha_dispatcher_is_supported(const fmha_dispatcher_args* args) {
  const FmhaReading reading;
  Target target{};
  FmhaCall call;
  Planned planned;
  return plan(reading.state(), args, {}, &target, &call, &planned) == KW_OK;
}

int fmha_dispatcher_run(const fmha_dispatcher_args* args, float* time_ms) { return fmha_run(args, {}, time_ms); }
