// Which GEMM problems a CK Tile kernel serves, and the counts that plans are made of.
#ifndef KERNELWRIGHT_HIP_LAUNCHERS_GEMM_CONDITIONS_HPP
#define KERNELWRIGHT_HIP_LAUNCHERS_GEMM_CONDITIONS_HPP

#include "kernelwright/hip/gemm/launcher.h"
#include "launchers/hip/common/launch.hpp"

namespace kernelwright::hip {

inline int64_t round_up(int64_t value, int64_t unit) { return kw_mul(kw_parts(value, unit), unit); }

// Output tiles of one matrix and of all, and K tiles.
inline int64_t matrix_tiles(const kw_gemm_traits& t, int64_t m, int64_t n) {
  return kw_mul(kw_parts(m, t.tile_m), kw_parts(n, t.tile_n));
}
inline int64_t all_tiles(const kw_gemm_traits& t, const kw_gemm_problem& p) {
  return kw_mul(matrix_tiles(t, p.m, p.n), p.batch);
}
inline int64_t k_tiles(const kw_gemm_traits& t, const kw_gemm_problem& p) { return kw_parts(p.k, t.tile_k); }

// The facts of a kernel's code object, whose kernel takes arguments of so many bytes. False if it is damaged.
inline bool read_facts(const kw_hip_gemm& gemm, size_t arguments_bytes, kw_hip_gemm_facts* facts) {
  return kw_hip_read_facts(&gemm.code, facts, sizeof *facts) && facts->magic == KW_HIP_GEMM_FACTS_MAGIC &&
         facts->arguments_bytes == arguments_bytes;
}

// What is checked of a GEMM but the struct itself.
KW_HIDDEN kw_status check_conditions(const kw_hip_gemm& gemm, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts,
                                     char* reason, size_t bytes);

}  // namespace kernelwright::hip

#endif  // KERNELWRIGHT_HIP_LAUNCHERS_GEMM_CONDITIONS_HPP
