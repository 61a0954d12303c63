#include <string.h>

#include "kernelwright/dispatcher/compat/conv_state.hpp"
#include "kernelwright/dispatcher/convolution/problem.hpp"

using namespace kernelwright;

Slot<ConvState> kernelwright::g_conv;

namespace {

constexpr Places kPlaces = {"KERNELWRIGHT_CONV_KERNELS", "dispatcher_conv_kernels",
                            "../../kernelwright_kernels/convolution"};
constexpr float kLeastTime = 1e-6F;  // ms; a clock may not have moved, and 0 is no success

int code(kw_status status) {
  if (status == KW_OK) return CONV_DISPATCHER_OK;
  return status == KW_NO_KERNEL ? CONV_DISPATCHER_NO_KERNEL : CONV_DISPATCHER_ERROR;
}

kw_status fill(ConvState* state, const char* kernels, const char* dtype) {
  if (kw_status status = state->open(kernels, kPlaces)) return status;
  return conv_dtype(state->first.dispatcher, given(dtype, "KERNELWRIGHT_CONV_DTYPE"), &state->dtype);
}

int count(uint32_t op) {
  const ConvReading reading;
  const ConvState* state = reading.get();
  const char* name = nullptr;
  return state == nullptr ? 0 : conv_kernels(*state, op, 0, &name);
}

// The plan of a problem on the device of the calling thread.
kw_status plan(ConvState* state, const ConvProblemC* given, Target* target, kw_conv_problem* problem,
               Planned* planned) {
  if (state == nullptr) return KW_INVALID_ARGUMENT;
  if (kw_status status = conv_problem(given, state->dtype, problem)) return status;
  if (kw_status status = state->here(target)) return status;
  return planned->make(*target, problem->base);
}

kw_status run(ConvState* state, const Target& target, const Planned& planned, const kw_conv_args& args, void* stream,
              float* time_ms) {
  const Entered entered(state->memory, target.device);
  if (entered.status() != KW_OK) return entered.status();
  Buffer workspace(state->memory);
  kw_launch where{};
  where.struct_size = sizeof where;
  where.device = target.device;
  where.stream = stream;
  where.workspace_bytes = kw_plan_workspace_size(planned.get());
  if (kw_status status = workspace.allocate(where.workspace_bytes)) return status;
  where.workspace = workspace.get();
  return launch({state->memory, planned.get(), where}, &args, time_ms);
}

}  // namespace

const char* conv_dispatcher_version(void) { return "2.0.0"; }

const char* conv_dispatcher_last_error(void) { return kw_last_error(); }

int conv_dispatcher_init_from(const char* kernels, const char* dtype) {
  const kw_status status = g_conv.init([&](ConvState* state) { return fill(state, kernels, dtype); });
  return status == KW_OK ? CONV_DISPATCHER_OK : CONV_DISPATCHER_ERROR;
}

int conv_dispatcher_init(void) { return conv_dispatcher_init_from(nullptr, nullptr); }

int conv_dispatcher_cleanup(void) {
  g_conv.cleanup();
  return CONV_DISPATCHER_OK;
}

int conv_dispatcher_has_kernels(void) { return count(KW_OP_CONV_FORWARD) > 0; }

int conv_dispatcher_has_bwd_data(void) { return count(KW_OP_CONV_BACKWARD_DATA) > 0; }

int conv_dispatcher_has_bwd_weight(void) { return count(KW_OP_CONV_WEIGHT_SLICES) > 0; }

int conv_dispatcher_get_kernel_count(void) {
  const ConvReading reading;
  const ConvState* state = reading.get();
  return state == nullptr ? 0 : static_cast<int>(kw_dispatcher_kernel_count(state->first.dispatcher));
}

int conv_dispatcher_get_kernel_name(int index, char* name, int bytes) {
  const ConvReading reading;
  const ConvState* state = reading.state();
  if (state == nullptr) return CONV_DISPATCHER_ERROR;
  return code(write_kernel_name(*state, index, name, bytes));
}

int conv_dispatcher_select_kernel(const ConvProblemC* problem, char* name, int bytes) {
  const ConvReading reading;
  Target target{};
  kw_conv_problem converted{};
  Planned planned;
  kw_status status = plan(reading.state(), problem, &target, &converted, &planned);
  if (status == KW_OK) status = planned.write_name(name, bytes);
  return code(status);
}

int conv_dispatcher_is_supported(const ConvProblemC* problem) {
  const ConvReading reading;
  Target target{};
  kw_conv_problem converted{};
  Planned planned;
  return plan(reading.state(), problem, &target, &converted, &planned) == KW_OK;
}

float conv_dispatcher_run(const void* a, const void* b, void* c, const ConvProblemC* problem, void* stream) {
  const ConvReading reading;
  ConvState* state = reading.state();
  Target target{};
  kw_conv_problem converted{};
  Planned planned;
  const kw_conv_args args = {sizeof args, 0, a, b, c, nullptr, nullptr};
  kw_status status = plan(state, problem, &target, &converted, &planned);
  if (status == KW_OK) status = validate_conv_args(converted.base, &args);
  if (status != KW_OK) return static_cast<float>(code(status));
  float time_ms = 0;
  if (run(state, target, planned, args, stream, &time_ms) != KW_OK) return CONV_DISPATCHER_FAILED;
  return time_ms > kLeastTime ? time_ms : kLeastTime;
}

int conv_bwdw_init(void) { return conv_dispatcher_init(); }

void conv_bwdw_cleanup(void) { conv_dispatcher_cleanup(); }

const char* conv_bwdw_version(void) { return "1.0.0"; }

int conv_bwdw_has_kernels(void) { return conv_dispatcher_has_bwd_weight(); }

int conv_bwdw_get_kernel_count(void) { return count(KW_OP_CONV_WEIGHT_SLICES); }

int conv_bwdw_get_kernel_name(int index, char* name, int bytes) {
  const ConvReading reading;
  const ConvState* state = reading.state();
  const char* kernel_name = nullptr;
  if (state == nullptr) return CONV_DISPATCHER_ERROR;
  const int known = conv_kernels(*state, KW_OP_CONV_WEIGHT_SLICES, index, &kernel_name);
  if (kernel_name == nullptr) return code(fail(KW_INVALID_ARGUMENT, "index = %d; allowed: below %d", index, known));
  return code(write_name(kernel_name, name, bytes));
}

float conv_bwdw_run(const void* x, const void* dy, void* dw, const ConvBwdwProblemC* problem, void* stream) {
  if (problem == nullptr) return conv_dispatcher_run(x, dy, dw, nullptr, stream);
  ConvProblemC same{};
  memcpy(&same, problem, sizeof *problem - sizeof problem->split_k);
  same.direction = CONV_BWD_WEIGHT;
  same.split_k = problem->split_k;
  return conv_dispatcher_run(x, dy, dw, &same, stream);
}
