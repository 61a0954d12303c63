// Plans problems of extreme extents with the launchers of every backend: fuzz COUNT SECONDS [FIRST].
//
// COUNT problems of each operation and backend, from seed FIRST on (0 unless given); none may take more than SECONDS of
// a processor. A child plans; its parent watches which problem it is at, and ends it where it stays too long. So a
// problem that hangs or crashes costs one fork, and the rest are planned all the same.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "execute.hpp"
#include "kernelwright/dispatcher.h"

extern "C" {
extern const kw_kernel* const gemm_kernels_under_test[];
extern const kw_kernel* const conv_kernels_under_test[];
extern const kw_kernel *const forward_under_test,
    *const eight_bits_under_test, *const narrow_under_test, *const slopes_under_test,
                                                                *const splits_under_test,
                                                                    *const combine_under_test,
                                                                        *const dot_under_test,
                                                                            *const convert_under_test,
                                                                                *const gradient_under_test,
                                                                                    *const append_under_test;
extern const kw_kernel* const kHipKernels[];
extern const kw_kernel* const kCudaKernels[];
const char* kw_backend_last_error(void);
}

namespace {

using bounds::kOperationCount;

// Limits are of processor time, so that other work of the machine counts for nothing; but who waits does not wait for
// ever.
constexpr double kMostWaiting = 120;

double now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// --- the three backends, each a dispatcher with all of its kernels

struct Backend {
  const char* name;
  uint32_t backend, dtype;
  kw_dispatcher* dispatcher;
};
Backend backends[] = {{"x86_64", KW_BACKEND_CPU, KW_FP32, nullptr},
                      {"gfx942", KW_BACKEND_HIP, KW_FP16, nullptr},
                      {"sm_90a", KW_BACKEND_CUDA, KW_FP16, nullptr}};
constexpr int64_t kBackends = 3;

// Descriptors of tests have no identities: they get some here.
void add_named(const kw_kernel* kernel, std::vector<kw_kernel>* to) {
  static char identities[64][65];
  char* identity = identities[to->size()];
  snprintf(identity, 65, "%064zx", to->size() + 1);
  kw_kernel made = *kernel;
  made.identity = identity;
  to->push_back(made);
}

void add_cpu(std::vector<kw_kernel>* to) {
  for (const kw_kernel* const* next = gemm_kernels_under_test; *next != nullptr; ++next) add_named(*next, to);
  for (const kw_kernel* const* next = conv_kernels_under_test; *next != nullptr; ++next) add_named(*next, to);
  const struct {
    const kw_kernel* kernel;
    const char* name;
  } attention[] = {{forward_under_test, "attention_forward"}, {eight_bits_under_test, "attention_eight_bits"},
                   {narrow_under_test, "attention_narrow"},   {slopes_under_test, "attention_slopes"},
                   {splits_under_test, "attention_splits"},   {combine_under_test, "attention_combine"},
                   {dot_under_test, "attention_dot"},         {convert_under_test, "attention_convert"},
                   {gradient_under_test, "attention_grad"},   {append_under_test, "attention_append"}};
  for (const auto& one : attention) {
    add_named(one.kernel, to);
    to->back().name = one.name;
  }
}

kw_dispatcher* dispatcher_of(const Backend& b) {
  static std::vector<kw_kernel> held[kBackends];
  static std::vector<const kw_kernel*> kernels[kBackends];
  static kw_arch archs[kBackends];
  static kw_library libraries[kBackends];
  const size_t at = static_cast<size_t>(&b - backends);
  if (b.backend == KW_BACKEND_CPU) add_cpu(&held[at]);
  const kw_kernel* const* gpu = b.backend == KW_BACKEND_HIP ? kHipKernels : kCudaKernels;
  for (; b.backend != KW_BACKEND_CPU && *gpu != nullptr; ++gpu) held[at].push_back(**gpu);
  for (kw_kernel& kernel : held[at]) kernels[at].push_back(&kernel), kernel.arch = b.name;
  archs[at] = {sizeof(kw_arch),
               b.backend,
               b.name,
               132,
               b.backend == KW_BACKEND_CPU ? 1u : 64u,
               KW_FP8_OCP,
               0,
               1 << 16,
               1.8,
               4000.0,
               {0, 256, 4096, 4096, 8192, 8192, 8192}};
  libraries[at] = {sizeof(kw_library),
                   KW_ABI_VERSION,
                   b.name,
                   &archs[at],
                   kernels[at].data(),
                   kernels[at].size(),
                   [](int32_t, char*, size_t) { return KW_OK; },
                   b.backend == KW_BACKEND_CPU ? kw_backend_last_error : [] { return ""; },
                   [](uint32_t) { return KW_OK; },
                   nullptr};
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.device_check = b.backend == KW_BACKEND_CPU ? KW_CHECK_ON_LAUNCH : KW_CHECK_NEVER;
  options.compute_units = b.backend == KW_BACKEND_CPU ? 2 : 132;
  kw_dispatcher* dispatcher = nullptr;
  if (kw_dispatcher_create(&options, &dispatcher) != KW_OK ||
      kw_dispatcher_add_descriptor(dispatcher, &libraries[at], nullptr) != KW_OK) {
    fprintf(stderr, "fuzz: %s: %s\n", b.name, kw_last_error());
    exit(2);
  }
  return dispatcher;
}

// --- what parent and child share

struct Shared {
  uint64_t at;        // the problem that is being planned; count = all are
  uint64_t planned;   // problems that a kernel serves
  uint64_t refused;   // by a kernel
  uint64_t invalid;   // by the dispatcher
  uint64_t executed;  // on a CPU, and right
  uint64_t wrong;
  uint64_t slowest_at;
  double slowest;
};

struct Settings {
  uint64_t first, count;
  double limit;
};

struct Place {
  int64_t backend, kind;
  uint64_t seed;
};

Place place_of(const Settings& s, uint64_t index) {
  const int64_t all = kBackends * kOperationCount, way = static_cast<int64_t>(index % static_cast<uint64_t>(all));
  return {way / kOperationCount, way % kOperationCount, s.first + index / static_cast<uint64_t>(all)};
}

// Plans one problem, with all that a plan is asked, and the ranking of all kernels.
kw_status plan(const Backend& b, const kw_problem& problem) {
  kw_plan* made = nullptr;
  const kw_status status = kw_plan_create(b.dispatcher, &problem, &made);
  static char text[1 << 16];
  if (status != KW_INVALID_ARGUMENT) kw_dispatcher_explain(b.dispatcher, &problem, text, sizeof text, nullptr);
  kw_plan_destroy(made);
  return status;
}

void name(const Settings& s, uint64_t index, const char* what) {
  const Place place = place_of(s, index);
  fprintf(stderr, "fuzz: %s: %s on %s, seed %llu\n", what, bounds::kOperations[place.kind],
          backends[place.backend].name, static_cast<unsigned long long>(place.seed));
}

[[noreturn]] void work(const Settings& s, volatile Shared* shared, uint64_t end) {
  for (; shared->at < end; shared->at = shared->at + 1) {
    const Place place = place_of(s, shared->at);
    const Backend& b = backends[place.backend];
    bounds::DrawnProblem drawn;
    bounds::draw(place.seed * 64 + static_cast<uint64_t>(place.kind), place.kind, b.dtype, &drawn);
    const double began = now(CLOCK_THREAD_CPUTIME_ID);
    const kw_status status = plan(b, drawn.base);
    const double took = now(CLOCK_THREAD_CPUTIME_ID) - began;
    if (took > shared->slowest) shared->slowest = took, shared->slowest_at = shared->at;
    if (status == KW_OK && b.backend == KW_BACKEND_CPU) {
      const bounds::Ran ran = bounds::execute(b.dispatcher, drawn);
      shared->executed = shared->executed + (ran == bounds::Ran::kRight ? 1 : 0);
      if (ran == bounds::Ran::kWrong || ran == bounds::Ran::kFailed) {
        shared->wrong = shared->wrong + 1;
        name(s, shared->at, ran == bounds::Ran::kWrong ? "is wrong" : kw_last_error());
      }
    }
    volatile uint64_t& counted = status == KW_OK                 ? shared->planned
                                 : status == KW_INVALID_ARGUMENT ? shared->invalid
                                                                 : shared->refused;
    counted = counted + 1;
  }
  _exit(0);
}

// True if the child is gone; waits for at most a moment.
bool is_gone(pid_t child, int* status) {
  const timespec moment = {0, 5000000};
  if (waitpid(child, status, WNOHANG) == child) return true;
  nanosleep(&moment, nullptr);
  return false;
}

// Plans until the end or the first problem that does not come back. How many did not: 0 or 1.
int watch(const Settings& s, volatile Shared* shared, uint64_t end) {
  const pid_t child = fork();
  if (child == 0) work(s, shared, end);
  clockid_t busy = CLOCK_MONOTONIC;
  clock_getcpuclockid(child, &busy);
  uint64_t seen = shared->at;
  double since = now(busy), wall = now(CLOCK_MONOTONIC);
  int status = 0;
  while (!is_gone(child, &status)) {
    const uint64_t at = shared->at;
    if (at != seen) seen = at, since = now(busy), wall = now(CLOCK_MONOTONIC);
    if (now(busy) - since < s.limit && now(CLOCK_MONOTONIC) - wall < kMostWaiting) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    name(s, at, "hangs");
    shared->at = shared->at + 1;
    return 1;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  name(s, shared->at, "crashes");
  shared->at = shared->at + 1;
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return fprintf(stderr, "usage: fuzz COUNT SECONDS [FIRST]\n"), 2;
  const Settings s = {count > 3 ? strtoull(words[3], nullptr, 10) : 0, strtoull(words[1], nullptr, 10),
                      strtod(words[2], nullptr)};
  for (Backend& b : backends) b.dispatcher = dispatcher_of(b);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return perror("fuzz"), 2;
  auto* shared = static_cast<volatile Shared*>(memory);
  const uint64_t end = s.count * static_cast<uint64_t>(kBackends * kOperationCount);
  int failures = 0;
  while (shared->at < end && failures < 40) failures += watch(s, shared, end);
  name(s, shared->slowest_at, "slowest");
  printf(
      "%llu problems: %llu planned, %llu refused by kernels, %llu invalid; %llu executed, %llu wrong; "
      "slowest plan %.1f ms; %d hang or crash\n",
      static_cast<unsigned long long>(shared->at), static_cast<unsigned long long>(shared->planned),
      static_cast<unsigned long long>(shared->refused), static_cast<unsigned long long>(shared->invalid),
      static_cast<unsigned long long>(shared->executed), static_cast<unsigned long long>(shared->wrong),
      1e3 * shared->slowest, failures);
  return failures == 0 && shared->wrong == 0 ? 0 : 1;
}
