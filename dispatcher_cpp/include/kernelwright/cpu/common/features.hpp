// What the processor and the operating system offer, by cpuid.
#ifndef KERNELWRIGHT_CPU_COMMON_FEATURES_HPP
#define KERNELWRIGHT_CPU_COMMON_FEATURES_HPP

#include <cpuid.h>
#include <stdint.h>

namespace kernelwright::cpu {

// Processor features beyond the architecture level, as bits.
enum feature : uint32_t { kNoFeature = 0, kAvx512Bf16 = 1, kAvx512Vnni = 2, kAmxTile = 4, kAmxBf16 = 8, kAmxInt8 = 16 };

struct processor {
  uint32_t level;     // x86-64-v<level>, of 1, 3 and 4
  uint32_t features;  // bits of `feature`
};

// The system saves tiles (XCR0 bits 17 and 18), and this process may use them: Linux gives leave when it is asked for
// (Documentation/arch/x86/xstate.rst: ARCH_REQ_XCOMP_PERM of component 18), for all threads and for forked children. It
// refuses where a thread has an alternate signal stack too small for the state of tiles.
inline bool tiles_allowed(uint32_t enabled) {
  constexpr long kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
  if ((enabled & 0x60000) != 0x60000) return false;
  long status = kArchPrctl;
  __asm__ volatile("syscall" : "+a"(status) : "D"(kRequestPermission), "S"(kTileData) : "rcx", "r11", "memory");
  return status == 0;
}

// Sources: the x86-64 psABI (levels), Intel SDM volume 2 CPUID (bits) and volume 1 chapter 13 (XCR0).
inline processor detect_processor() {
  const auto has = [](uint32_t word, uint32_t mask) { return (word & mask) == mask; };
  uint32_t a = 0, b = 0, c = 0, d = 0;
  processor result = {1, kNoFeature};
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return result;
  // FMA, MOVBE, OSXSAVE, AVX, F16C
  if (!has(c, 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29)) return result;
  uint32_t enabled = 0, enabled_high = 0;
  __asm__("xgetbv" : "=a"(enabled), "=d"(enabled_high) : "c"(0));
  if (!has(enabled, 0x6)) return result;                                                 // the system saves xmm and ymm
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) == 0 || !has(c, 1u << 5)) return result;  // LZCNT
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return result;
  if (!has(b, 1u << 3 | 1u << 5 | 1u << 8)) return result;  // BMI1, AVX2, BMI2
  result.level = 3;
  // AVX-512 F, DQ, CD, BW, VL; the system saves opmask and zmm
  if (!has(b, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) || !has(enabled, 0xe6)) return result;
  result.level = 4;
  if (has(c, 1u << 11)) result.features |= kAvx512Vnni;
  if (has(d, 1u << 24) && tiles_allowed(enabled)) {
    result.features |= kAmxTile;
    if (has(d, 1u << 22)) result.features |= kAmxBf16;
    if (has(d, 1u << 25)) result.features |= kAmxInt8;
  }
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && has(a, 1u << 5)) result.features |= kAvx512Bf16;
  return result;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_COMMON_FEATURES_HPP
