#include <string.h>
#include <time.h>

#include "kernelwright/dispatcher/compat/session.hpp"

namespace kernelwright {
namespace {

constexpr double kTimedSeconds = 0.1;
constexpr int kMostRepeats = 10;

thread_local const char* last = nullptr;

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

kw_status Planned::make(const Target& target, const kw_problem& problem, bool cached) {
  kw_status status = KW_OUT_OF_MEMORY;
  if (cached) status = kw_dispatcher_select(target.dispatcher, &problem, &plan_);
  if (status == KW_OUT_OF_MEMORY) {
    status = kw_plan_create(target.dispatcher, &problem, &own_);
    plan_ = own_;
  }
  return status;
}

kw_status Planned::write_name(char* name, int bytes) const {
  kw_stage_info info{};
  info.struct_size = sizeof info;
  if (kw_status status = kw_plan_get_stage(plan_, 0, &info)) return status;
  return kernelwright::write_name(info.kernel->name, name, bytes);
}

kw_status launch(const Run& run, const void* args, float* time_ms) {
  kw_stage_info info{};
  info.struct_size = sizeof info;
  if (kw_plan_get_stage(run.plan, 0, &info) == KW_OK) last = info.kernel->name;
  if (kw_status status = kw_plan_launch(run.plan, &run.where, args)) return status;
  if (kw_status status = run.memory.finish()) return status;
  if (time_ms == nullptr) return KW_OK;
  int repeats = 0;
  double spent = 0;
  while (repeats == 0 || (repeats < kMostRepeats && spent < kTimedSeconds)) {
    const double start = now();
    if (kw_status status = kw_plan_launch(run.plan, &run.where, args)) return status;
    if (kw_status status = run.memory.finish()) return status;
    spent += now() - start;
    ++repeats;
  }
  *time_ms = static_cast<float>(spent / repeats * 1e3);
  return KW_OK;
}

const char* last_kernel() { return last; }

kw_status write_name(const char* text, char* name, int bytes) {
  const size_t needed = strlen(text) + 1;
  if (name == nullptr || bytes < 0 || static_cast<size_t>(bytes) < needed) {
    return fail(KW_BUFFER_TOO_SMALL, "the name takes %zu bytes, the buffer has %d", needed,
                name == nullptr ? 0 : bytes);
  }
  memcpy(name, text, needed);
  return KW_OK;
}

kw_status write_kernel_name(const Session& session, int index, char* name, int bytes) {
  kw_kernel_info info{};
  info.struct_size = sizeof info;
  // A negative index becomes a large one, which is refused.
  const uint64_t at = static_cast<uint64_t>(static_cast<int64_t>(index));
  if (kw_status status = kw_dispatcher_kernel_at(session.first.dispatcher, at, &info)) return status;
  return write_name(info.kernel->name, name, bytes);
}

}  // namespace kernelwright
