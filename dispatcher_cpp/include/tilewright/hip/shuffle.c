/* B in the order in which a preshuffle kernel reads it: warp tile by warp tile, and in those what a lane multiplies at
 * a time is contiguous. Whole warp tiles: beyond n and k are zeros. */
#include <stdio.h>
#include <string.h>

#include "tilewright/hip/launcher.h"

static tw_status check(const tw_kernel* kernel, const tw_problem* problem, tw_hip_gemm_facts* facts) {
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  if (!kernel || !problem || problem->op != TW_OP_GEMM || problem->struct_size < sizeof *p)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "the problem is not a tw_gemm_problem of this ABI version");
  const tw_hip_gemm* gemm = (const tw_hip_gemm*)kernel->traits;
  if (p->dtype_b != gemm->traits.dtype_b || p->layout_b != gemm->traits.layout_b)
    return tw_hip_fail(TW_UNSUPPORTED, "dtype_b and layout_b are not those of this kernel");
  if (p->n < 0 || p->k < 0 || p->n > INT32_MAX || p->k > INT32_MAX || p->ldb < p->k || p->ldb > INT32_MAX)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "n = %lld, k = %lld and ldb = %lld are no matrix", (long long)p->n,
                       (long long)p->k, (long long)p->ldb);
  if (!tw_hip_read_facts(&gemm->code, sizeof(tw_hip_gemm_arguments), facts) || facts->packed_k == 0)
    return tw_hip_fail(TW_LOAD_FAILED, "the code object of this kernel is damaged");
  return TW_OK;
}

tw_status tw_hip_shuffle_b_bytes(const tw_kernel* kernel, const tw_problem* problem, uint64_t* bytes) {
  tw_hip_gemm_facts facts;
  if (!bytes) return tw_hip_fail(TW_INVALID_ARGUMENT, "bytes must not be null");
  const tw_status status = check(kernel, problem, &facts);
  if (status != TW_OK) return status;
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  const tw_gemm_traits* t = &((const tw_hip_gemm*)kernel->traits)->traits;
  *bytes = (uint64_t)tw_hip_round_up(p->n, t->warp_tile_n) * (uint64_t)tw_hip_round_up(p->k, t->warp_tile_k) *
           (uint64_t)tw_hip_element_bytes(p->dtype_b);
  return TW_OK;
}

/* `count` elements of K of one column, zeros beyond its end; returns where the next ones go. */
static unsigned char* put(unsigned char* to, const unsigned char* column, int64_t k, int64_t count, int64_t length,
                          int64_t size) {
  const int64_t inside = !column || k >= length ? 0 : k + count <= length ? count : length - k;
  if (inside > 0) memcpy(to, column + k * size, (size_t)(inside * size));
  memset(to + inside * size, 0, (size_t)((count - inside) * size));
  return to + count * size;
}

tw_status tw_hip_shuffle_b(const tw_kernel* kernel, const tw_problem* problem, const void* b, void* shuffled) {
  tw_hip_gemm_facts facts;
  if (!b || !shuffled) return tw_hip_fail(TW_INVALID_ARGUMENT, "b and shuffled must not be null");
  const tw_status status = check(kernel, problem, &facts);
  if (status != TW_OK) return status;
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  const tw_gemm_traits* t = &((const tw_hip_gemm*)kernel->traits)->traits;
  const int64_t size = tw_hip_element_bytes(p->dtype_b), packed = facts.packed_k;
  const unsigned char* from = (const unsigned char*)b;
  unsigned char* to = (unsigned char*)shuffled;
  for (int64_t n = 0; n < p->n; n += t->warp_tile_n)
    for (int64_t k = 0; k < p->k; k += t->warp_tile_k)
      for (int64_t part = 0; part < t->warp_tile_k; part += packed)
        for (int64_t column = n; column < n + t->warp_tile_n; ++column) {
          const unsigned char* at = column < p->n ? from + column * p->ldb * size : NULL;
          to = put(to, at, k + part, packed, p->k, size);
        }
  return TW_OK;
}
