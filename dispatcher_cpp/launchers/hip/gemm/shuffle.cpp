// B in the order in which a preshuffle kernel reads it: warp tile by warp tile, and in those what a lane multiplies at
// a time is contiguous. Whole warp tiles: beyond n and k are zeros.
#include "launchers/hip/gemm/conditions.hpp"

namespace kernelwright::hip {
namespace {

// Bytes of B in that order.
int64_t shuffled_bytes(const kw_gemm_traits& t, const kw_gemm_problem& p) {
  return kw_mul3(round_up(p.n, t.warp_tile_n), round_up(p.k, t.warp_tile_k), kw_dtype_bytes(p.dtype_b));
}

kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_facts* facts) {
  if (!kernel || !problem || problem->op != KW_OP_GEMM || problem->struct_size < sizeof(kw_gemm_problem))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the problem is not a kw_gemm_problem of this ABI version");
  const auto& gemm = held_by<kw_hip_gemm>(kernel);
  const auto& p = as<kw_gemm_problem>(problem);
  const long long n = p.n, k = p.k, ldb = p.ldb;
  if (p.dtype_b != gemm.traits.dtype_b || p.layout_b != gemm.traits.layout_b)
    return kw_hip_fail(KW_UNSUPPORTED, "dtype_b and layout_b are not those of this kernel");
  if (!kw_fits_int32(n) || !kw_fits_int32(k) || ldb < k || ldb > INT32_MAX)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "n = %lld, k = %lld and ldb = %lld are no matrix", n, k, ldb);
  const int64_t given = kw_mul3(n, ldb, kw_dtype_bytes(p.dtype_b));
  if (!kw_fits_int64(given) || !kw_fits_int64(shuffled_bytes(gemm.traits, p)))
    return kw_hip_fail(KW_UNSUPPORTED, "n = %lld, k = %lld and ldb = %lld: bytes of B do not fit into 63 bits", n, k,
                       ldb);
  if (!read_facts(gemm, sizeof(kw_hip_gemm_arguments), facts) || facts->packed_k == 0)
    return kw_hip_fail(KW_LOAD_FAILED, "the code object of this kernel is damaged");
  return KW_OK;
}

kw_status shuffle_b_bytes(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_hip_gemm_facts facts;
  if (!bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "bytes must not be null");
  const kw_status status = check(kernel, problem, &facts);
  if (status != KW_OK) return status;
  *bytes = static_cast<uint64_t>(shuffled_bytes(held_by<kw_hip_gemm>(kernel).traits, as<kw_gemm_problem>(problem)));
  return KW_OK;
}

// `count` elements of K of one column, zeros beyond its end; returns where the next ones go.
unsigned char* put(unsigned char* to, const unsigned char* column, int64_t k, int64_t count, int64_t length,
                   int64_t size) {
  const int64_t inside = column ? kw_larger(0, kw_smaller(count, length - k)) : 0;
  if (inside > 0) memcpy(to, column + k * size, static_cast<size_t>(inside * size));
  memset(to + inside * size, 0, static_cast<size_t>((count - inside) * size));
  return to + count * size;
}

kw_status shuffle_b(const kw_kernel* kernel, const kw_problem* problem, const void* b, void* shuffled) {
  kw_hip_gemm_facts facts;
  if (!b || !shuffled) return kw_hip_fail(KW_INVALID_ARGUMENT, "b and shuffled must not be null");
  const kw_status status = check(kernel, problem, &facts);
  if (status != KW_OK) return status;
  const auto& p = as<kw_gemm_problem>(problem);
  const kw_gemm_traits& t = held_by<kw_hip_gemm>(kernel).traits;
  const int64_t size = kw_dtype_bytes(p.dtype_b), packed = facts.packed_k;
  const auto* from = static_cast<const unsigned char*>(b);
  auto* to = static_cast<unsigned char*>(shuffled);
  for (int64_t n = 0; n < p.n; n += t.warp_tile_n)
    for (int64_t k = 0; k < p.k; k += t.warp_tile_k)
      for (int64_t part = 0; part < t.warp_tile_k; part += packed)
        for (int64_t column = n; column < n + t.warp_tile_n; ++column) {
          const unsigned char* at = column < p.n ? from + column * p.ldb * size : nullptr;
          to = put(to, at, k + part, packed, p.k, size);
        }
  return KW_OK;
}

}  // namespace
}  // namespace kernelwright::hip

const kw_gemm_extension kw_hip_preshuffle = {sizeof(kw_gemm_extension), 0, kernelwright::hip::shuffle_b_bytes,
                                             kernelwright::hip::shuffle_b};
