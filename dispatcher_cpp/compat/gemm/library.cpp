#include "kernelwright/dispatcher/compat/gemm_state.hpp"
#include "kernelwright/dispatcher/gemm_lib.h"
#include "kernelwright/dispatcher/support/error.hpp"

using namespace kernelwright;

Slot<GemmState> kernelwright::g_gemm;

namespace {

constexpr Places kPlaces = {"KERNELWRIGHT_GEMM_KERNELS", "dispatcher_gemm_kernels", "../../kernelwright_kernels/gemm"};

kw_status fill(GemmState* state, const char* kernels, const char* types) {
  if (kw_status status = state->open(kernels, kPlaces)) return status;
  kw_dispatcher* const dispatcher = state->first.dispatcher;
  types = given(types, "KERNELWRIGHT_GEMM_TYPES");
  if (kw_status status = types != nullptr ? parse_types(types, &state->types, &state->epilogue)
                                          : common_types(dispatcher, &state->types)) {
    return status;
  }
  if (state->epilogue.num_d == 0) common_epilogue(dispatcher, state->types, &state->epilogue);
  return KW_OK;
}

}  // namespace

uint32_t dispatcher_abi_version(void) { return DISPATCHER_GEMM_LIB_ABI_VERSION; }

const char* dispatcher_last_error(void) { return kw_last_error(); }

int dispatcher_init_from(const char* kernels, const char* types) {
  const kw_status status = g_gemm.init([&](GemmState* state) { return fill(state, kernels, types); });
  return status == KW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
}

int dispatcher_init(void) { return dispatcher_init_from(nullptr, nullptr); }

int dispatcher_initialize(void) { return dispatcher_init(); }

void dispatcher_cleanup(void) { g_gemm.cleanup(); }

int dispatcher_get_kernel_count(void) {
  const GemmReading reading;
  const GemmState* state = reading.get();
  return state == nullptr ? 0 : static_cast<int>(kw_dispatcher_kernel_count(state->first.dispatcher));
}

int dispatcher_get_kernel_name_at(int index, char* name, int bytes) {
  const GemmReading reading;
  const GemmState* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  const kw_status status = write_kernel_name(*state, index, name, bytes);
  return status == KW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
}

const char* dispatcher_export_registry_json(void) {
  const GemmReading reading;
  const GemmState* state = reading.state();
  return state == nullptr ? nullptr : state->json;
}

int dispatcher_is_supported(int64_t m, int64_t n, int64_t k) {
  const GemmReading reading;
  GemmState* state = reading.state();
  Target target{};
  Planned planned;
  return state != nullptr && state->here(&target) == KW_OK &&
         planned.make(target, packed_problem(state->types, m, n, k).base) == KW_OK;
}

int dispatcher_select_kernel(int64_t m, int64_t n, int64_t k, char* name, int bytes) {
  const GemmReading reading;
  GemmState* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  Target target{};
  Planned planned;
  if (kw_status status = state->here(&target)) return code(status);
  if (kw_status status = planned.make(target, packed_problem(state->types, m, n, k).base)) return code(status);
  return code(planned.write_name(name, bytes));
}
