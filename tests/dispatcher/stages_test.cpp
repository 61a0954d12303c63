// An operation that the dispatcher does not know, registered from outside: its problems take two stages.
//
// y[i] = sum over j of x[i][j] * x[i][j], for `rows` rows. Stage one squares into scratch memory (its kernel wants a
// workspace of its own), stage two sums each row. Both kernels are the test's.
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

using kernelwright::AnyProblem;
using kernelwright::Estimate;
using kernelwright::Fit;
using kernelwright::Operation;
using kernelwright::Place;
using kernelwright::Text;

namespace {

enum : uint32_t { kNorm = 65536, kSquare = 65537, kSum = 65538 };

struct Problem {
  kw_problem base;
  int64_t rows, columns;
  uint32_t parts;  // sums per row; 0 = chosen
  uint32_t reserved;
};

struct Args {
  uint32_t struct_size, reserved;
  const float* in;
  float* out;
};

struct Traits {
  uint32_t struct_size, most_parts;
  double us;
};

const Problem& problem_of(const kw_problem& p) { return reinterpret_cast<const Problem&>(p); }
const Traits& traits_of(const kw_kernel& kernel) { return *static_cast<const Traits*>(kernel.traits); }

Problem make(uint32_t op, int64_t rows, int64_t columns, uint32_t parts) {
  return {{sizeof(Problem), op}, rows, columns, parts, 0};
}

// --- the three tables

kw_status validate(const kw_problem& p) {
  if (problem_of(p).rows >= 0 && problem_of(p).columns >= 0) return KW_OK;
  return kernelwright::fail(KW_INVALID_ARGUMENT, "norm problem: rows or columns is negative; allowed: 0 or more");
}

size_t key(const kw_problem& p, uint64_t* words) {
  words[0] = static_cast<uint64_t>(problem_of(p).rows);
  words[1] = static_cast<uint64_t>(problem_of(p).columns);
  words[2] = problem_of(p).parts;
  return 3;
}

void describe(const kw_problem& p, Text* text) {
  text->add("op ").add(p.op).add(' ').add(problem_of(p).rows).add('x').add(problem_of(p).columns);
}

void to_json(const kw_problem& p, Text* text) { text->add("{\"op\":").add(p.op).add('}'); }

const char* incomplete(const kw_kernel& kernel) { return kernel.traits == nullptr ? "lacks traits" : nullptr; }

Fit matches(const kw_kernel&, const kw_problem&, char*, size_t) { return Fit::kServes; }

size_t choices(const kw_kernel& kernel, const kw_problem& p, const Place&, uint32_t* values) {
  if (problem_of(p).parts != 0) return 0;
  values[0] = 1;
  values[1] = traits_of(kernel).most_parts;
  return 2;
}

void choose(kw_problem* p, uint32_t parts) { reinterpret_cast<Problem*>(p)->parts = parts; }

void describe_choices(const kw_problem& p, Text* text) { text->add("parts=").add(problem_of(p).parts); }

Estimate estimate(const kw_kernel& kernel, const kw_problem& p, const Place&) {
  Estimate e;
  e.total_us = traits_of(kernel).us / problem_of(p).parts;
  return e;
}

Estimate fixed_estimate(const kw_kernel& kernel, const kw_problem&, const Place&) {
  Estimate e;
  e.total_us = traits_of(kernel).us;
  return e;
}

bool is_empty(const kw_problem& p) { return problem_of(p).rows == 0; }

kw_status validate_args(const kw_problem&, const void* args) {
  if (args != nullptr)
    return kernelwright::check_size("norm args", static_cast<const Args*>(args)->struct_size, sizeof(Args));
  return kernelwright::fail(KW_INVALID_ARGUMENT, "args is null; allowed: a pointer to Args");
}

// The second stage sums as many parts as were chosen for the first.
bool stage(const kw_problem& p, uint32_t index, const kw_problem* const* planned, AnyProblem* next) {
  if (index > 1) return false;
  const Problem& whole = problem_of(p);
  const Problem stage = index == 0 ? make(kSquare, whole.rows, whole.columns, whole.parts)
                                   : make(kSum, whole.rows, whole.columns, problem_of(*planned[0]).parts);
  memcpy(next->bytes, &stage, sizeof stage);
  return true;
}

uint64_t scratch_bytes(const kw_problem&, uint32_t index, const kw_problem& planned) {
  const Problem& p = problem_of(planned);
  return index == 0 ? static_cast<uint64_t>(p.rows * p.columns) * sizeof(float) : 0;
}

void stage_args(const kw_problem&, uint32_t index, const kw_problem* const* planned, const void* args,
                void* const* scratch, void* out) {
  // Both stages are known, with the choice that the first one made.
  CHECK(problem_of(*planned[0]).parts >= 1 && problem_of(*planned[1]).parts == problem_of(*planned[0]).parts);
  CHECK(planned[index]->op == (index == 0 ? kSquare : kSum));
  const Args& whole = *static_cast<const Args*>(args);
  float* const squares = static_cast<float*>(scratch[0]);
  const Args own = index == 0 ? Args{sizeof own, 0, whole.in, squares} : Args{sizeof own, 0, squares, whole.out};
  memcpy(out, &own, sizeof own);
}

Operation leaf(uint32_t op, const char* name) {
  Operation o;
  o.version = op == kSum ? kernelwright::kOldestOperationVersion : kernelwright::kOperationVersion;  // both are served
  o.op = op, o.name = name;
  o.problem_bytes = sizeof(Problem), o.args_bytes = sizeof(Args);
  o.validate = validate, o.key = key, o.describe = describe, o.to_json = to_json;
  o.incomplete = incomplete, o.matches = matches, o.estimate = fixed_estimate;
  o.is_empty = is_empty, o.validate_args = validate_args;
  return o;
}

Operation square_table() {
  Operation o = leaf(kSquare, "square");
  o.choices = choices, o.choose = choose, o.describe_choices = describe_choices, o.estimate = estimate;
  return o;
}

Operation norm_table() {
  Operation o = leaf(kNorm, "norm");
  o.stage = stage, o.scratch_bytes = scratch_bytes, o.stage_args = stage_args;
  return o;
}

const Operation kSquareTable = square_table(), kSumTable = leaf(kSum, "sum"), kNormTable = norm_table();

// --- the kernels

constexpr uint64_t kOwnWorkspace = 1024;
int changes = 0;  // how often kernels ask for more than before they settle
std::atomic<uint32_t> threads_set{0};
void (*while_planned)() = nullptr;  // what happens meanwhile

kw_status supports(const kw_kernel& kernel, const Problem& p, char* reason, size_t bytes) {
  if (p.parts <= traits_of(kernel).most_parts) return KW_OK;
  snprintf(reason, bytes, "parts is %u, this kernel makes %u", p.parts, traits_of(kernel).most_parts);
  return KW_UNSUPPORTED;
}

kw_status plan(const kw_kernel*, const kw_problem* p, void* storage) {
  if (while_planned != nullptr) while_planned();
  memcpy(storage, p, sizeof(Problem));
  return KW_OK;
}

kw_status square(const kw_kernel*, const void* storage, const kw_launch* launch, const void* arguments) {
  const Problem& p = *static_cast<const Problem*>(storage);
  const Args& args = *static_cast<const Args*>(arguments);
  if (launch->workspace_bytes != kOwnWorkspace || launch->device != 0) return KW_WORKSPACE_TOO_SMALL;
  memset(launch->workspace, 0x5a, kOwnWorkspace);  // must not be where results lie
  for (int64_t i = 0; i < p.rows * p.columns; ++i) args.out[i] = args.in[i] * args.in[i];
  return KW_OK;
}

kw_status sum(const kw_kernel*, const void* storage, const kw_launch* launch, const void* arguments) {
  const Problem& p = *static_cast<const Problem*>(storage);
  const Args& args = *static_cast<const Args*>(arguments);
  if (launch->workspace_bytes != 256) return KW_WORKSPACE_TOO_SMALL;
  memset(launch->workspace, 0x5a, 256);
  for (int64_t row = 0; row < p.rows; ++row) {
    float total = 0;
    for (int64_t i = 0; i < p.columns; ++i) total += args.in[row * p.columns + i];
    args.out[row] = total;
  }
  return KW_OK;
}

// The constants of one kernel; descriptors need addresses.
struct Kernel {
  Traits traits;
  kw_kernel descriptor;

  Kernel(uint32_t op, const char* name, char digit, double us, uint32_t most_parts)
      : traits{sizeof traits, most_parts, us} {
    static char identities[16][65];
    char* identity = identities[digit - 'a'];
    memset(identity, digit, 64);
    descriptor = {};
    descriptor.struct_size = sizeof descriptor;
    descriptor.abi_version = KW_ABI_VERSION;
    descriptor.op = op;
    descriptor.plan_bytes = sizeof(Problem);
    descriptor.name = name;
    descriptor.arch = "x86_64_v3";
    descriptor.identity = identity;
    descriptor.features = "";
    descriptor.traits = &traits;
    descriptor.supports = [](const kw_kernel* kernel, const kw_problem* p, char* reason, size_t bytes) {
      return supports(*kernel, problem_of(*p), reason, bytes);
    };
    descriptor.workspace_size = [](const kw_kernel* kernel, const kw_problem*, uint64_t* bytes) {
      *bytes = kernel->op == kSquare ? kOwnWorkspace : 256;
      if (changes > 0) *bytes += 256 * static_cast<uint64_t>(changes--);
      return KW_OK;
    };
    descriptor.plan = plan;
    descriptor.launch = op == kSquare ? square : sum;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
};

const Kernel kSlowSquare(kSquare, "square_slow", 'a', 50, 4), kFastSquare(kSquare, "square_fast", 'b', 20, 2);
const Kernel kSlowSum(kSum, "sum_slow", 'c', 9, 9), kFastSum(kSum, "sum_fast", 'd', 1, 1);
const kw_kernel* const kKernels[] = {&kSlowSquare.descriptor, &kFastSquare.descriptor, &kSlowSum.descriptor,
                                     &kFastSum.descriptor};
const kw_arch kArch = {sizeof kArch, KW_BACKEND_CPU, "x86_64_v3", 1, 1, KW_FP8_OCP, 0, 1 << 20, 1.0, 1.0, {}};
const kw_library kLibrary = {sizeof kLibrary,
                             KW_ABI_VERSION,
                             "stages",
                             &kArch,
                             kKernels,
                             4,
                             [](int32_t, char*, size_t) { return KW_OK; },
                             [] { return ""; },
                             [](uint32_t threads) { return threads_set = threads, KW_OK; },
                             nullptr};

// --- the tests

void operations_are_registered_from_outside() {
  const Problem p = make(kNorm, 2, 3, 0);
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "op = 65536", "1 (gemm), 2 (grouped gemm)");
  Handle h;
  CHECK_FAILS(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr), KW_LOAD_FAILED, "unknown op");
  std::vector<std::thread> threads;  // from several threads at once
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([] {
      for (const Operation* o : {&kNormTable, &kSquareTable, &kSumTable}) {
        CHECK(kernelwright::register_operation(*o) == KW_OK);
      }
      CHECK(kernelwright::find_operation(kSum) == &kSumTable);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(kw_problem_validate(&p.base) == KW_OK);
  Operation other = leaf(KW_OP_GEMM, "other");
  CHECK_FAILS(kernelwright::register_operation(other), KW_INVALID_ARGUMENT, "op = 1 is that of gemm", "65536");
  other.op = kNorm;
  CHECK_FAILS(kernelwright::register_operation(other), KW_INVALID_ARGUMENT, "op = 65536 is that of norm");
  other.op = 70000, other.stage = stage;
  CHECK_FAILS(kernelwright::register_operation(other), KW_INVALID_ARGUMENT, "lacks one of stage");
  for (const uint32_t version : {1u, 9u}) {
    other.version = version;
    CHECK_FAILS(kernelwright::register_operation(other), KW_INVALID_ARGUMENT, "allowed: 2 to 3");
  }
}

kw_stage_info stage_of(const kw_plan* plan, uint32_t index) {
  kw_stage_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_stage(plan, index, &info) == KW_OK);
  return info;
}

void each_stage_is_selected_on_its_own() {
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  const Problem p = make(kNorm, 10, 30, 0);
  const kw_plan *plan = nullptr, *again = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_info(plan, &info) == KW_OK);
  // Two parts by the fast kernel take 10 us, four by the slow one 12.5; then only the slow kernel sums two parts.
  CHECK(info.stage_count == 2 && strcmp(info.choices, "parts=2") == 0);
  CHECK(contains(info.reason, "square_fast: fastest predicted of 2; sum_slow: fastest predicted of 2"));
  const kw_stage_info first = stage_of(plan, 0), second = stage_of(plan, 1);
  CHECK(strcmp(first.kernel->name, "square_fast") == 0 && strcmp(second.kernel->name, "sum_slow") == 0);
  CHECK(strcmp(first.choices, "parts=2") == 0 && strcmp(second.choices, "") == 0);
  CHECK(first.library == &kLibrary && second.library == &kLibrary);
  // 300 floats, whole 256 bytes, and behind them the larger of both workspaces.
  CHECK(first.scratch_offset == 0 && first.scratch_bytes == 1200 && first.workspace_bytes == kOwnWorkspace);
  CHECK(second.scratch_offset == 1280 && second.scratch_bytes == 0 && second.workspace_bytes == 256);
  CHECK(info.workspace_bytes == 1280 + kOwnWorkspace && kw_plan_workspace_size(plan) == info.workspace_bytes);
  kw_stage_info none = {};
  none.struct_size = sizeof none;
  CHECK_FAILS(kw_plan_get_stage(plan, 2, &none), KW_INVALID_ARGUMENT, "index = 2", "below 2");
  none.struct_size = 4;
  CHECK_FAILS(kw_plan_get_stage(plan, 0, &none), KW_INVALID_ARGUMENT, "kw_stage_info", "struct_size = 4");
  CHECK(kw_dispatcher_select(h.d, &p.base, &again) == KW_OK && again == plan);
  const Problem four = make(kNorm, 10, 30, 4);
  CHECK(kw_dispatcher_select(h.d, &four.base, &again) == KW_OK && again != plan);
  CHECK(strcmp(stage_of(again, 0).kernel->name, "square_slow") == 0);
  const Problem ten = make(kNorm, 10, 30, 10);
  CHECK_FAILS(kw_dispatcher_select(h.d, &ten.base, &again), KW_NO_KERNEL, "op 65537 10x30", "parts is 10");
  CHECK(h.use(KW_SELECT_FIRST_FIT) == KW_OK);
  CHECK(kw_dispatcher_select(h.d, &p.base, &again) == KW_OK && again != plan);
}

std::string explained(const Handle& h, const Problem& p) {
  size_t needed = 0;
  CHECK(kw_dispatcher_explain(h.d, &p.base, nullptr, 0, &needed) == KW_BUFFER_TOO_SMALL);
  std::string text(needed, '\0');
  CHECK(kw_dispatcher_explain(h.d, &p.base, &text[0], needed, nullptr) == KW_OK);
  return text;
}

void a_kernel_that_is_asked_for_by_name_stands_in_its_stage() {
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  const Problem p = make(kNorm, 10, 30, 0);
  const kw_plan* plan = nullptr;
  CHECK(h.use(KW_SELECT_EXPLICIT, "square_slow") == KW_OK);  // four parts, which the slow kernel alone sums
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(strcmp(stage_of(plan, 0).reason, "asked for by name") == 0);
  CHECK(strcmp(stage_of(plan, 1).kernel->name, "sum_slow") == 0);
  CHECK(strcmp(stage_of(plan, 1).reason, "fastest predicted of 2") == 0);
  CHECK(contains(explained(h, p), "\"chosen\":\"aaaa") &&
        contains(explained(h, p), "not the kernel that was asked for"));
  CHECK(h.use(KW_SELECT_EXPLICIT, "sum_slow") == KW_OK);
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(strcmp(stage_of(plan, 0).kernel->name, "square_fast") == 0);
  CHECK(h.use(KW_SELECT_EXPLICIT, "sum_fast") == KW_OK);  // the first stage makes two parts
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "selection explicit", "parts is 2");
  CHECK(h.add("good") == KW_OK && h.use(KW_SELECT_EXPLICIT, "gemm_fp32_rcr_128x128x64") == KW_OK);
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "serves gemm problems", "no such stage");
}

void the_workspace_is_that_of_the_plan() {
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  const Problem p = make(kNorm, 10, 30, 0);
  changes = 1;  // as if the affinity changed between the question and the plan
  kw_plan* plan = nullptr;
  CHECK(kw_plan_create(h.d, &p.base, &plan) == KW_OK);
  CHECK(stage_of(plan, 0).workspace_bytes == kOwnWorkspace);
  kw_plan_destroy(plan);
  changes = 100;
  CHECK_FAILS(kw_plan_create(h.d, &p.base, &plan), KW_UNSUPPORTED, "square_fast", "another workspace each time");
  changes = 0;
}

// Another dispatcher sets the threads of the same library.
void threads_stay_while_a_kernel_is_planned() {
  static kw_dispatcher* other = nullptr;
  static std::thread setter;
  Handle h, second;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  CHECK(kw_dispatcher_add_descriptor(second.d, &kLibrary, nullptr) == KW_OK);
  other = second.d;
  while_planned = [] {
    while_planned = nullptr;
    setter = std::thread([] { CHECK(kw_dispatcher_set_num_threads(other, 3) == KW_OK); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(threads_set == 0);
  };
  const Problem p = make(kNorm, 10, 30, 0);
  kw_plan* plan = nullptr;
  CHECK(kw_plan_create(h.d, &p.base, &plan) == KW_OK);
  setter.join();
  CHECK(threads_set == 3);
  kw_plan_destroy(plan);
}

void stages_share_one_workspace() {
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  const Problem p = make(kNorm, 10, 30, 0);
  std::vector<float> in(300);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      void* workspace = nullptr;
      CHECK(posix_memalign(&workspace, 256, 1280 + kOwnWorkspace) == 0);
      kw_launch where = make_launch(workspace, 1280 + kOwnWorkspace);
      float out[10] = {};
      const Args args = {sizeof args, 0, in.data(), out};
      for (int repeat = 0; repeat < 50; ++repeat) {
        CHECK(kw_dispatcher_run(h.d, &p.base, &where, &args) == KW_OK);
        for (int row = 0; row < 10; ++row) {
          float expected = 0;
          for (size_t i = 0; i < 30; ++i)
            expected += in[static_cast<size_t>(row) * 30 + i] * in[static_cast<size_t>(row) * 30 + i];
          CHECK(out[row] == expected);
        }
      }
      where.workspace_bytes -= 1;
      CHECK_FAILS(kw_dispatcher_run(h.d, &p.base, &where, &args), KW_WORKSPACE_TOO_SMALL, "2303", "2304");
      free(workspace);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Problem nothing = make(kNorm, 0, 30, 0);
  const kw_launch bare = make_launch();
  const Args args = {sizeof args, 0, nullptr, nullptr};
  CHECK(kw_dispatcher_run(h.d, &nothing.base, &bare, &args) == KW_OK);
  CHECK_FAILS(kw_dispatcher_run(h.d, &p.base, &bare, nullptr), KW_INVALID_ARGUMENT, "args is null");
}

void stages_are_explained() {
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &kLibrary, nullptr) == KW_OK);
  const std::string text = explained(h, make(kNorm, 10, 30, 0));
  CHECK(contains(text, "{\"problem\":{\"op\":65536},\"selection\":\"auto\",\"stages\":[{\"problem\":{\"op\":65537}"));
  CHECK(contains(text, "{\"problem\":{\"op\":65538},\"chosen\":\"cccc") && contains(text, "\"choices\":\"parts=4\""));
  CHECK(contains(text, "the problem's operation is square, this kernel's is sum"));
  const std::string none = explained(h, make(kNorm, 10, 30, 10));
  CHECK(contains(none, "no kernel serves this problem") && !contains(none, "65538"));
}

}  // namespace

void stages() {
  operations_are_registered_from_outside();
  each_stage_is_selected_on_its_own();
  a_kernel_that_is_asked_for_by_name_stands_in_its_stage();
  the_workspace_is_that_of_the_plan();
  threads_stay_while_a_kernel_is_planned();
  stages_share_one_workspace();
  stages_are_explained();
}
