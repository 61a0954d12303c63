#include "kernelwright/dispatcher/python_call.h"

namespace {
kw_python_functions python;
}

void kw_python_use(const kw_python_functions* functions) { python = *functions; }

void* kw_python_call(void* self, void*) {
  auto* call = static_cast<kw_bound_call*>(python.as_pointer(python.tuple_item(self, 0)));
  void* state = call->keep_interpreter != 0 ? nullptr : python.release_interpreter();
  const kw_status status = kw_plan_launch(call->plan, call->launch, call->args);
  if (state != nullptr) python.acquire_interpreter(state);
  if (__builtin_expect(status != KW_OK, 0)) {
    call->status = status;
    return python.call(call->failed, nullptr);
  }
  python.retain(call->result);
  return call->result;
}
