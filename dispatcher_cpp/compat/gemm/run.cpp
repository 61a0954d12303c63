// The familiar functions that compute: operands to the device where there is one, launches, results back.
#include "kernelwright/dispatcher/compat/gemm_state.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/plan.hpp"

using namespace kernelwright;

namespace {

constexpr size_t kAlignment = 256;

size_t bytes_of(uint32_t dtype, int64_t rows, int64_t columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns) *
         kw_dtype_bytes(dtype);  // the problem is valid: it fits
}

// Memory on the device for a matrix, with its contents if it has any.
kw_status bring(const Memory& memory, const void* host, size_t bytes, Buffer* there) {
  if (kw_status status = there->allocate(bytes)) return status;
  return host == nullptr ? KW_OK : memory.copy_in(there->get(), host, bytes);
}

kw_status run_on_device(const Run& run, const kw_gemm_problem& problem, kw_gemm_args args, float* time_ms) {
  const Memory& memory = run.memory;
  const size_t c_bytes = bytes_of(problem.dtype_c, problem.m, problem.n);
  Buffer a(memory), b(memory), c(memory);
  Buffer ds[KW_MAX_D] = {Buffer(memory), Buffer(memory), Buffer(memory), Buffer(memory)};
  static_assert(KW_MAX_D == 4, "one buffer each");
  if (kw_status status = bring(memory, args.a, bytes_of(problem.dtype_a, problem.m, problem.k), &a)) return status;
  if (kw_status status = bring(memory, args.b, bytes_of(problem.dtype_b, problem.k, problem.n), &b)) return status;
  for (uint32_t i = 0; i < problem.num_d; ++i) {
    if (kw_status status = bring(memory, args.multi_d[i], c_bytes, &ds[i])) return status;
    args.multi_d[i] = ds[i].get();
  }
  if (kw_status status = bring(memory, nullptr, c_bytes, &c)) return status;
  void* const host = args.d;
  args.a = a.get();
  args.b = b.get();
  args.d = c.get();
  if (kw_status status = launch(run, &args, time_ms)) return status;
  return memory.copy_out(host, c.get(), c_bytes);
}

kw_status run_on_device(const Run& run, const kw_grouped_gemm_problem& problem, kw_grouped_gemm_args args,
                        float* time_ms);

// A problem, plain or grouped, with its arguments.
template <class Problem, class Args>
kw_status run(const GemmState& state, const Target& target, const Problem& problem, Args args, float* time_ms) {
  Planned planned;
  if (kw_status status = planned.make(target, problem.base, problem.base.op == KW_OP_GEMM)) return status;
  if (kw_status status = validate_args(problem, &args)) return status;
  // Also where copies are computed with: what one backend refuses, none accepts.
  if (kw_status status = check_operands(*planned.get(), &args, nullptr, 0)) return status;
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
  return state.memory.is_host() ? launch(run, &args, time_ms) : run_on_device(run, problem, args, time_ms);
}

kw_gemm_args operands(const void* a, const void* b, void* c) {
  kw_gemm_args args{};
  args.struct_size = sizeof args;
  args.a = a;
  args.b = b;
  args.d = c;
  return args;
}

kw_status run_multi_d(const GemmState& state, const Target& target, const kw_gemm_args& plain, const void* const* ds,
                      int num_d, kw_gemm_problem problem, float* time_ms) {
  Epilogue epilogue = state.epilogue;
  if (epilogue.num_d == 0) {
    if (kw_status status = common_epilogue(target.dispatcher, state.types, &epilogue)) return status;
  }
  if (num_d < 0 || static_cast<uint32_t>(num_d) != epilogue.num_d || ds == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "%d D tensors%s; allowed: the %u that dispatcher_get_num_d_tensors() says", num_d,
                ds == nullptr ? " in a null array" : "", epilogue.num_d);
  }
  problem.num_d = epilogue.num_d;
  problem.d_op = epilogue.d_op;
  problem.activation = epilogue.activation;
  kw_gemm_args args = plain;
  for (int i = 0; i < num_d; ++i) {
    problem.ld_multi_d[i] = problem.ldc;
    args.multi_d[i] = ds[i];
  }
  return run(state, target, problem, args, time_ms);
}

// The matrices of one operand of all groups, one behind the other in one piece of device memory.
class Stack {
 public:
  explicit Stack(const Memory& memory) : memory_(memory), buffer_(memory) {}

  // One for each group, in their order; before allocate().
  kw_status add(size_t bytes) {
    const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (room < bytes || __builtin_add_overflow(total_, room, &total_) || !bytes_.push(bytes)) {
      return fail(KW_OUT_OF_MEMORY, "no memory for the matrices of %zu groups", bytes_.size() + 1);
    }
    return KW_OK;
  }
  kw_status allocate() {
    if (kw_status status = buffer_.allocate(total_)) return status;
    size_t at = 0;
    for (const size_t bytes : bytes_) {
      if (!pointers_.push(static_cast<char*>(buffer_.get()) + at)) {
        return fail(KW_OUT_OF_MEMORY, "no memory for %zu pointers", bytes_.size());
      }
      at += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    return KW_OK;
  }
  kw_status copy_in(const void* const* host) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == 0) continue;
      if (kw_status status = memory_.copy_in(pointers_[i], host[i], bytes_[i])) return status;
    }
    return KW_OK;
  }
  kw_status copy_out(void* const* host) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == 0) continue;
      if (kw_status status = memory_.copy_out(host[i], pointers_[i], bytes_[i])) return status;
    }
    return KW_OK;
  }
  void* const* pointers() const { return pointers_.begin(); }

 private:
  const Memory& memory_;
  Buffer buffer_;
  Vec<size_t> bytes_;
  Vec<void*> pointers_;
  size_t total_ = 0;
};

kw_status run_on_device(const Run& run, const kw_grouped_gemm_problem& problem, kw_grouped_gemm_args args,
                        float* time_ms) {
  Stack a(run.memory), b(run.memory), c(run.memory);
  for (int64_t i = 0; i < problem.group_count; ++i) {
    const kw_gemm_group& group = problem.groups[i];
    if (kw_status status = a.add(bytes_of(problem.dtype_a, group.m, group.k))) return status;
    if (kw_status status = b.add(bytes_of(problem.dtype_b, group.k, group.n))) return status;
    if (kw_status status = c.add(bytes_of(problem.dtype_c, group.m, group.n))) return status;
  }
  if (kw_status status = a.allocate()) return status;
  if (kw_status status = b.allocate()) return status;
  if (kw_status status = c.allocate()) return status;
  if (kw_status status = a.copy_in(args.a)) return status;
  if (kw_status status = b.copy_in(args.b)) return status;
  void* const* const host = args.d;
  args.a = a.pointers();
  args.b = b.pointers();
  args.d = c.pointers();
  if (kw_status status = launch(run, &args, time_ms)) return status;
  return c.copy_out(host);
}

kw_status run_grouped(const GemmState& state, const Target& target, const Vec<kw_gemm_group>& groups,
                      const void* const* a, const void* const* b, void* const* c, float* time_ms) {
  const GemmTypes& types = state.types;
  kw_grouped_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GROUPED_GEMM};
  problem.dtype_a = types.dtype_a, problem.dtype_b = types.dtype_b;
  problem.dtype_c = types.dtype_c, problem.dtype_acc = types.dtype_acc;
  problem.layout_a = types.layout_a, problem.layout_b = types.layout_b, problem.layout_c = types.layout_c;
  problem.group_count = static_cast<int64_t>(groups.size());
  problem.groups = groups.begin();
  problem.alpha = 1.0;
  kw_grouped_gemm_args args{};
  args.struct_size = sizeof args;
  args.group_count = problem.group_count;
  args.groups = problem.groups;
  args.a = a, args.b = b, args.d = c;
  return run(state, target, problem, args, time_ms);
}

kw_status packed_groups(const GemmState& state, int count, const int64_t* ms, const int64_t* ns, const int64_t* ks,
                        Vec<kw_gemm_group>* groups) {
  if (count < 0 || (count > 0 && (ms == nullptr || ns == nullptr || ks == nullptr))) {
    return fail(KW_INVALID_ARGUMENT, "group_count = %d; allowed: 0 or more, with as many ms, ns and ks", count);
  }
  for (int i = 0; i < count; ++i) {
    const kw_gemm_problem one = packed_problem(state.types, ms[i], ns[i], ks[i]);
    if (!groups->push({one.m, one.n, one.k, one.lda, one.ldb, one.ldc})) {
      return fail(KW_OUT_OF_MEMORY, "no memory for %d groups", count);
    }
  }
  return KW_OK;
}

int finished(kw_status status, float* time_ms) {
  if (status != KW_OK && time_ms != nullptr) *time_ms = -1.0F;
  return code(status);
}

}  // namespace

const char* dispatcher_get_kernel_name(void) {
  if (last_kernel() != nullptr) return last_kernel();
  const GemmReading reading;
  const GemmState* state = reading.state();
  kw_kernel_info info{};
  info.struct_size = sizeof info;
  if (state == nullptr || kw_dispatcher_kernel_at(state->first.dispatcher, 0, &info) != KW_OK) return nullptr;
  return info.kernel->name;
}

int dispatcher_run_gemm(const void* a, const void* b, void* c, int64_t m, int64_t n, int64_t k, float* time_ms) {
  const GemmReading reading;
  GemmState* state = reading.state();
  Target here{};
  kw_status status = state == nullptr ? KW_INVALID_ARGUMENT : state->here(&here);
  if (status == KW_OK) {
    status = run(*state, here, packed_problem(state->types, m, n, k), operands(a, b, c), time_ms);
  }
  return finished(status, time_ms);
}

int dispatcher_get_num_d_tensors(void) {
  const GemmReading reading;
  GemmState* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  Epilogue epilogue = state->epilogue;
  Target here{};
  kw_status status = epilogue.num_d != 0 ? KW_OK : state->here(&here);
  if (epilogue.num_d == 0 && status == KW_OK) status = common_epilogue(here.dispatcher, state->types, &epilogue);
  return status == KW_OK ? static_cast<int>(epilogue.num_d) : code(status);
}

int dispatcher_run_multi_d_gemm(const void* a, const void* b, const void** ds, int num_d, void* c, int64_t m, int64_t n,
                                int64_t k, float* time_ms) {
  const GemmReading reading;
  GemmState* state = reading.state();
  Target here{};
  kw_status status = state == nullptr ? KW_INVALID_ARGUMENT : state->here(&here);
  if (status == KW_OK) {
    status = run_multi_d(*state, here, operands(a, b, c), ds, num_d, packed_problem(state->types, m, n, k), time_ms);
  }
  return finished(status, time_ms);
}

int dispatcher_run_grouped_gemm(int group_count, const int64_t* ms, const int64_t* ns, const int64_t* ks,
                                const void** a, const void** b, void** c, float* time_ms) {
  const GemmReading reading;
  GemmState* state = reading.state();
  Target here{};
  kw_status status = state == nullptr ? KW_INVALID_ARGUMENT : state->here(&here);
  if (status == KW_OK) {
    Vec<kw_gemm_group> groups;
    status = packed_groups(*state, group_count, ms, ns, ks, &groups);
    if (status == KW_OK) status = run_grouped(*state, here, groups, a, b, c, time_ms);
  }
  return finished(status, time_ms);
}
