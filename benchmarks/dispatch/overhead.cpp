// Nanoseconds of the native dispatcher against kernels that do nothing: plan-cache hit, launch, both.
// Usage: overhead LIBRARY.so VARIANTS.so [PLANS]; prints JSON. CPU time of the thread, so that other
// work on the machine does not count. LIBRARY must serve fp16 rrr, VARIANTS fp32 rrr (see mock_library.c).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/gemm.h"

namespace {

constexpr int kRepeats = 21;
constexpr int kCalls = 200000;
constexpr kw_launch kHere = {sizeof(kw_launch), 0, nullptr, nullptr, 0};

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

int compare(const void* left, const void* right) {
  const double l = *static_cast<const double*>(left), r = *static_cast<const double*>(right);
  return l < r ? -1 : l > r ? 1 : 0;
}

template <typename Call>
void measure(const char* name, Call call, int calls = kCalls, bool last = false) {
  double ns[kRepeats];
  for (double& sample : ns) {
    const double start = now_ns();
    for (int i = 0; i < calls; ++i) call(i);
    sample = (now_ns() - start) / calls;
  }
  qsort(ns, kRepeats, sizeof ns[0], compare);
  printf("  \"%s\": {\"median_ns\": %.1f, \"min_ns\": %.1f, \"p90_ns\": %.1f}%s\n", name, ns[kRepeats / 2], ns[0],
         ns[kRepeats * 9 / 10], last ? "" : ",");
}

kw_gemm_problem make_problem(int64_t m) {
  kw_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16;
  p.dtype_acc = KW_FP32;
  p.split_k = 1;
  p.batch = 1;
  p.m = m, p.n = 512, p.k = 256;
  p.lda = 256, p.ldb = p.ldc = 512;
  p.alpha = 1;
  return p;
}

// Of fp32, for the library of variants.
kw_gemm_problem with_variant(int64_t m, int64_t batch, uint32_t num_d) {
  kw_gemm_problem p = make_problem(m);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP32;
  p.batch = batch;
  if (batch > 1) p.stride_a = m * p.lda, p.stride_b = p.k * p.ldb, p.stride_c = m * p.ldc;
  p.num_d = num_d;
  p.d_op = num_d > 0 ? KW_D_MULTIPLY : KW_D_ADD;
  for (uint32_t i = 0; i < num_d; ++i) p.ld_multi_d[i] = p.ldc;
  return p;
}

void require(kw_status status) {
  if (status == KW_OK) return;
  fprintf(stderr, "overhead: %s\n", kw_last_error());
  exit(1);
}

// Addresses far apart, since a launch compares them; the kernels access none.
void* operand(int64_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(1 + number) << 32); }

// Hits of the plan cache for problems with a variant, and both steps of a run.
void measure_variant(const char* select_name, const char* run_name, kw_dispatcher* dispatcher, int plans, int64_t batch,
                     uint32_t num_d, const kw_gemm_args& args) {
  auto* problems = static_cast<kw_gemm_problem*>(malloc(sizeof(kw_gemm_problem) * static_cast<size_t>(plans)));
  const kw_plan* plan = nullptr;
  for (int i = 0; i < plans; ++i) {
    problems[i] = with_variant(1 + i, batch, num_d);
    require(kw_dispatcher_select(dispatcher, &problems[i].base, &plan));
  }
  measure(select_name, [&](int i) { require(kw_dispatcher_select(dispatcher, &problems[i % plans].base, &plan)); });
  measure(run_name, [&](int i) { require(kw_dispatcher_run(dispatcher, &problems[i % plans].base, &kHere, &args)); });
  free(problems);
}

// Groups are read and compared in every launch; plans of them are not cached.
void measure_grouped(kw_dispatcher* dispatcher) {
  constexpr int64_t kGroups = 16;
  kw_gemm_group groups[kGroups];
  const void* read[kGroups];
  void* written[kGroups];
  for (int64_t i = 0; i < kGroups; ++i) {
    groups[i] = {1 + i, 512, 256, 256, 512, 512};
    read[i] = operand(0), written[i] = operand(1 + i);
  }
  kw_grouped_gemm_problem problem = {};
  problem.base = {sizeof problem, KW_OP_GROUPED_GEMM};
  problem.dtype_a = problem.dtype_b = problem.dtype_c = problem.dtype_acc = KW_FP32;
  problem.group_count = kGroups, problem.groups = groups, problem.alpha = 1;
  alignas(256) static char workspace[4096];
  const kw_grouped_gemm_args args = {sizeof args, 0, kGroups, groups, read, read, nullptr, written};
  const kw_launch where = {sizeof where, 0, nullptr, workspace, sizeof workspace};
  kw_plan* plan = nullptr;
  require(kw_plan_create(dispatcher, &problem.base, &plan));
  measure("plan_launch_16_groups", [&](int) { require(kw_plan_launch(plan, &where, &args)); });
  kw_plan_destroy(plan);
  measure(
      "run_16_groups", [&](int) { require(kw_dispatcher_run(dispatcher, &problem.base, &where, &args)); }, kCalls / 50,
      true);
}

// A library of so many kernels that all serve the same problem, and differ in their tiles.
class Crowd {
 public:
  static constexpr uint32_t kKernels = 4608;

  // Kernels with an identity below `refusing` refuse every problem.
  Crowd(const kw_arch& arch, uint32_t max_split_k, uint32_t refusing) : arch_(arch) {
    traits_ = static_cast<kw_gemm_traits*>(calloc(kKernels, sizeof(kw_gemm_traits)));
    kernels_ = static_cast<kw_kernel*>(calloc(kKernels, sizeof(kw_kernel)));
    names_ = static_cast<char (*)[80]>(calloc(kKernels, sizeof *names_));
    pointers_ = static_cast<const kw_kernel**>(calloc(kKernels, sizeof(kw_kernel*)));
    for (uint32_t i = 0; i < kKernels; ++i) fill(i, max_split_k, i < refusing);
    library_.struct_size = sizeof library_;
    library_.abi_version = KW_ABI_VERSION;
    library_.name = "crowd";
    library_.arch = &arch_;
    library_.kernels = pointers_;
    library_.kernel_count = kKernels;
    library_.check_device = [](int32_t, char*, size_t) { return KW_OK; };
    library_.last_error = [] { return ""; };
    library_.set_num_threads = [](uint32_t) { return KW_OK; };
    require(kw_dispatcher_create(nullptr, &dispatcher_));
    require(kw_dispatcher_add_descriptor(dispatcher_, &library_, nullptr));
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    kw_dispatcher_destroy(dispatcher_);
    free(traits_);
    free(kernels_);
    free(names_);
    free(pointers_);
  }

  // A problem that nobody planned before, each time.
  void measure_selection(const char* name, uint32_t split_k) {
    measure(
        name,
        [&](int i) {
          kw_gemm_problem problem = make_problem(1000 + i);
          problem.split_k = split_k;
          kw_plan* plan = nullptr;
          require(kw_plan_create(dispatcher_, &problem.base, &plan));
          kw_plan_destroy(plan);
        },
        20);
  }

 private:
  void fill(uint32_t i, uint32_t max_split_k, bool refuses) {
    kw_gemm_traits& t = traits_[i];
    t.struct_size = sizeof t;
    t.dtype_a = t.dtype_b = t.dtype_c = KW_FP16;
    t.dtype_acc = KW_FP32;
    t.tile_m = 16 * (1 + i % 16), t.tile_n = 16 * (1 + i / 16 % 16), t.tile_k = 16 * (1 + i / 256);
    t.wave_m = t.wave_n = t.wave_k = 1;
    t.warp_tile_m = t.warp_tile_n = t.warp_tile_k = 16;
    t.max_split_k = max_split_k;
    snprintf(names_[i], sizeof names_[i], "%064x", i);
    kw_kernel& k = kernels_[i];
    k.struct_size = sizeof k;
    k.abi_version = KW_ABI_VERSION;
    k.op = KW_OP_GEMM;
    k.plan_bytes = 64;
    k.name = k.identity = names_[i];
    k.arch = arch_.name;
    k.features = "";
    k.traits = &t;
    k.supports = refuses ? refuse : serve;
    k.workspace_size = [](const kw_kernel*, const kw_problem*, uint64_t* bytes) { return *bytes = 0, KW_OK; };
    k.plan = [](const kw_kernel*, const kw_problem*, void*) { return KW_OK; };
    k.launch = [](const kw_kernel*, const void*, const kw_launch*, const void*) { return KW_OK; };
    pointers_[i] = &k;
  }
  static kw_status serve(const kw_kernel*, const kw_problem*, char*, size_t) { return KW_OK; }
  static kw_status refuse(const kw_kernel*, const kw_problem*, char*, size_t) { return KW_UNSUPPORTED; }

  const kw_arch& arch_;
  kw_gemm_traits* traits_;
  kw_kernel* kernels_;
  char (*names_)[80];
  const kw_kernel** pointers_;
  kw_library library_ = {};
  kw_dispatcher* dispatcher_ = nullptr;
};

// The formula of predicted times is the architecture's.
constexpr kw_arch kAmd = {sizeof(kw_arch), KW_BACKEND_HIP, "gfx942", 304, 64, KW_FP8_FNUZ, 0, 65536, 2.1, 5300,
                          {0, 256, 2048}};
constexpr kw_arch kNvidia = {sizeof(kw_arch), KW_BACKEND_CUDA, "sm_90a", 132, 32, KW_FP8_OCP, 0, 232448, 1.83, 4800,
                             {0, 0, 4096}};

void measure_cold_selection() {
  Crowd(kAmd, 1, 0).measure_selection("select_cold_4608", 1);
  Crowd(kAmd, 1, Crowd::kKernels - 1).measure_selection("select_cold_4608_all_but_one_refuse", 1);
  Crowd(kAmd, 1024, 0).measure_selection("select_cold_4608_each_with_split_k_open", 0);
  Crowd(kNvidia, 1, 0).measure_selection("select_cold_4608_sm_90a", 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: overhead LIBRARY.so VARIANTS.so [PLANS]\n");
    return 2;
  }
  const int plans = argc > 3 ? atoi(argv[3]) : 1000;
  kw_dispatcher *dispatcher = nullptr, *variants = nullptr;
  require(kw_dispatcher_create(nullptr, &dispatcher));
  const kw_library_options mock = {sizeof mock, 0, KW_DIGEST_UNCHECKED, 0};  // compiled here, without a manifest
  require(kw_dispatcher_add_library(dispatcher, argv[1], &mock));
  require(kw_dispatcher_create(nullptr, &variants));
  require(kw_dispatcher_add_library(variants, argv[2], &mock));
  auto* problems = static_cast<kw_gemm_problem*>(malloc(sizeof(kw_gemm_problem) * static_cast<size_t>(plans)));
  const kw_plan* plan = nullptr;
  for (int i = 0; i < plans; ++i) {
    problems[i] = make_problem(1 + i);
    require(kw_dispatcher_select(dispatcher, &problems[i].base, &plan));
  }
  const void* const read = operand(0);
  const kw_gemm_args args = {sizeof args, 0, read, read, nullptr, operand(1), {read, read}};
  kw_stage_info info = {};
  info.struct_size = sizeof info;
  require(kw_plan_get_stage(plan, 0, &info));

  printf("{\n  \"plans\": %d, \"calls\": %d, \"repeats\": %d,\n", plans, kCalls, kRepeats);
  measure("select_hit_one_problem", [&](int) { require(kw_dispatcher_select(dispatcher, &problems[0].base, &plan)); });
  measure("select_hit_all_problems",
          [&](int i) { require(kw_dispatcher_select(dispatcher, &problems[i % plans].base, &plan)); });
  measure("kernel_launch_raw", [&](int) { require(info.kernel->launch(info.kernel, read, &kHere, &args)); });
  measure("plan_launch", [&](int) { require(kw_plan_launch(plan, &kHere, &args)); });
  measure("run_hit", [&](int i) { require(kw_dispatcher_run(dispatcher, &problems[i % plans].base, &kHere, &args)); });
  measure_variant("select_hit_two_d", "run_hit_two_d", variants, plans, 1, 2, args);
  measure_variant("select_hit_batched", "run_hit_batched", variants, plans, 4, 0, args);
  measure_cold_selection();
  measure_grouped(variants);
  printf("}\n");
  free(problems);
  kw_dispatcher_destroy(variants);
  kw_dispatcher_destroy(dispatcher);
  return 0;
}
