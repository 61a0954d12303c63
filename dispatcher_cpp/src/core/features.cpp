#include "kernelwright/dispatcher/features.hpp"

#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

namespace kernelwright {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };

// Where CPUID reports what a kernel may ask for beyond its x86-64 level (Intel SDM volume 2, CPUID; AMD APM volume 3).
struct Bit {
  const char* name;
  uint32_t leaf, subleaf;
  Register reg;
  uint32_t bit;
  uint64_t state;  // bits of XCR0 that the kernel must have enabled
};
constexpr uint64_t kAvx = 0x6;      // SSE, AVX
constexpr uint64_t kAvx512 = 0xe6;  // and opmask, ZMM
constexpr uint64_t kAmx = 0x60006;  // and tile configuration, tile data
constexpr Bit kBits[] = {
    {"fma", 1, 0, kEcx, 12, kAvx},
    {"f16c", 1, 0, kEcx, 29, kAvx},
    {"avx2", 7, 0, kEbx, 5, kAvx},
    {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512},
    {"avx512_vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512_fp16", 7, 0, kEdx, 23, kAvx512},
    {"avx512_bf16", 7, 1, kEax, 5, kAvx512},
    {"avx_vnni", 7, 1, kEax, 4, kAvx},
    {"amx_tile", 7, 0, kEdx, 24, kAmx},
    {"amx_bf16", 7, 0, kEdx, 22, kAmx},
    {"amx_int8", 7, 0, kEdx, 25, kAmx},
};

uint64_t enabled_state() {
  uint32_t r[4];
  if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || (r[kEcx] & (1u << 27)) == 0) return 0;  // OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Dot products of bf16 take Intel's processors so far four times as long as multiplying and adding in fp32, which makes
// kernels without them faster (benchmarks/results/cpu_sweep_20261123.json, of a fifth-generation Xeon); AMD's take them
// at the same rate. No bit of CPUID says so.
constexpr char kSlowDots[] = " slow_avx512_bf16";

bool is_intel() {
  uint32_t r[4];
  return __get_cpuid(0, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx]) != 0 && r[kEbx] == signature_INTEL_ebx &&
         r[kEdx] == signature_INTEL_edx && r[kEcx] == signature_INTEL_ecx;
}

char features[256];
pthread_once_t features_once = PTHREAD_ONCE_INIT;

void detect() {
  const uint64_t state = enabled_state();
  for (const Bit& bit : kBits) {
    uint32_t r[4] = {0, 0, 0, 0};
    if (!__get_cpuid_count(bit.leaf, bit.subleaf, &r[0], &r[1], &r[2], &r[3])) continue;
    if ((r[bit.reg] & (1u << bit.bit)) == 0 || (state & bit.state) != bit.state) continue;
    if (features[0] != '\0') strncat(features, " ", sizeof features - strlen(features) - 1);
    strncat(features, bit.name, sizeof features - strlen(features) - 1);
  }
  int length = 0;
  if (is_intel() && missing_feature("avx512_bf16", features, &length) == nullptr) {
    strncat(features, kSlowDots, sizeof features - strlen(features) - 1);
  }
}

}  // namespace

const char* cpu_features() {
  pthread_once(&features_once, detect);
  return features;
}

uint32_t cpu_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;  // more CPUs than the set holds
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<uint32_t>(count) : 1;
}

const char* missing_feature(const char* wanted, const char* offered, int* length) {
  while (*wanted != '\0') {
    const size_t word = strcspn(wanted, " ");
    bool matched = word == 0;
    for (const char* o = offered; !matched && *o != '\0';) {
      const size_t other = strcspn(o, " ");
      matched = other == word && memcmp(o, wanted, word) == 0;
      o += other;
      o += strspn(o, " ");
    }
    if (!matched) {
      *length = static_cast<int>(word);
      return wanted;
    }
    wanted += word;
    wanted += strspn(wanted, " ");
  }
  return nullptr;
}

}  // namespace kernelwright
