// The conditions are those of CK Tile's own UniversalGemmKernel::IsSupportedArgument plus what its device code takes
// for granted: 32-bit byte offsets, rows at least as long as their extent, a minimal number of K tiles.
#include "launchers/hip/gemm/conditions.hpp"

#include "kernelwright/gemm/checks.h"

namespace kernelwright::hip {
namespace {

// K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around).
constexpr int64_t kMaxPrefetch = 8;
// A, B, what the kernel writes, C and the D tensors.
constexpr int kMaxOperands = 4 + KW_MAX_D;

struct operand {
  const char* name;
  const char* contiguous_name;
  int64_t contiguous, strided;  // extents along and across rows of memory
  int64_t stride;
  int64_t strided_end;  // across rows, as many as the kernel addresses from one place
  int64_t overrun;      // along rows
  uint32_t vector, tile, padded;
  uint32_t dtype;
};

bool splits(const kw_gemm_traits& t) { return t.max_split_k > 1; }

kw_status check_scalars(const kw_gemm_traits& t, const kw_gemm_problem& p, char* reason, size_t bytes) {
  const bool scales = t.dtype_acc == KW_FP32;
  if (p.alpha != 1.0 && !scales)
    snprintf(reason, bytes, "alpha is %g, this kernel serves 1.", p.alpha);
  else if (p.beta != 0.0 && !scales)
    snprintf(reason, bytes, "beta is %g, this kernel serves 0.", p.beta);
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

// Permuted B: rows of whole warp tiles, as wide as one and as long as K.
operand permuted_b(const kw_gemm_traits& t, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts) {
  const int64_t row = kw_mul(round_up(p.k, t.warp_tile_k), t.warp_tile_n);
  const int64_t end = round_up(p.n, t.tile_n) / t.warp_tile_n;
  const uint32_t tile = t.tile_k * t.warp_tile_n;
  return {"permuted B", "k", row, p.n, row, end, tile * kMaxPrefetch, facts.packed_k, tile, t.pad_k, p.dtype_b};
}

// How an extent is tiled: what the kernel addresses of it across rows of memory, and beyond its end along them.
struct axis {
  int64_t end, overrun;
  uint32_t tile, padded;
};

// M and N: rows of a tile are addressed from its first one on.
axis axis_of(uint32_t tile, uint32_t padded) { return {tile, tile, tile, padded}; }

// K tiles are fetched ahead.
axis axis_k(const kw_gemm_traits& t, const kw_gemm_problem& p) {
  const int64_t ahead = t.tile_k * kMaxPrefetch;
  return {round_up(p.k, t.tile_k) + ahead, ahead, t.tile_k, t.pad_k};
}

operand operand_of(const kw_gemm_Matrix& matrix, const axis& rows, const axis& columns, uint32_t vector) {
  const bool by_rows = matrix.layout == KW_ROW_MAJOR;
  const axis &along = by_rows ? columns : rows, &across = by_rows ? rows : columns;
  return {matrix.name,
          kw_gemm_line_name(matrix),
          kw_gemm_line(matrix),
          kw_gemm_lines(matrix),
          matrix.ld,
          across.end,
          along.overrun,
          vector,
          along.tile,
          along.padded,
          matrix.dtype};
}

// Returns how many there are: those of C and D only, which have one leading dimension, come as two.
int describe_operands(const kw_gemm_traits& t, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts,
                      operand (&operands)[kMaxOperands]) {
  const axis m = axis_of(t.tile_m, t.pad_m), n = axis_of(t.tile_n, t.pad_n), k = axis_k(t, p);
  operands[0] = operand_of(kw_gemm_matrix_a(&p), m, k, facts.vector_a);
  operands[1] = t.b_format != 0 ? permuted_b(t, p, facts) : operand_of(kw_gemm_matrix_b(&p), k, n, facts.vector_b);
  operands[2] = operands[3] = operand_of(kw_gemm_matrix_c(&p), m, n, facts.vector_d);
  if (splits(t)) {
    operands[2].name = "a slice of C";
    operands[2].stride = round_up(p.n, KW_HIP_SUM_VECTOR);
    operands[2].dtype = p.dtype_acc;
  }
  for (uint32_t i = 0; i < p.num_d; ++i) {  // read element by element; one row for all is not stepped through
    operand& x = operands[4 + i] = operand_of(kw_gemm_matrix_d(&p, i), m, n, 1);
    x.tile = x.padded = 1;
    if (p.ld_multi_d[i] == 0) x.stride = x.contiguous, x.strided_end = 1;
  }
  return 4 + static_cast<int>(p.num_d);
}

// What an access of an operand needs: no more bytes than it has.
uint32_t alignment(const operand& x, const kw_hip_gemm_facts& facts) {
  return static_cast<uint32_t>(kw_smaller(x.vector * static_cast<int64_t>(kw_dtype_bytes(x.dtype)), facts.row_bytes));
}

kw_status check_alignment(const operand& x, const kw_hip_gemm_facts& facts, char* reason, size_t bytes) {
  const uint32_t aligned = alignment(x, facts);
  if (x.stride * static_cast<int64_t>(kw_dtype_bytes(x.dtype)) % aligned == 0) return KW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld: its rows are not aligned to %u bytes.", x.name,
           static_cast<long long>(x.stride), aligned);
  return KW_UNSUPPORTED;
}

kw_status check_operand(const operand& x, const kw_hip_gemm_facts& facts, char* reason, size_t bytes) {
  const long long extent = x.contiguous, stride = x.stride;
  const int64_t span = kw_add(kw_mul(x.strided_end, x.stride), x.overrun);
  if (!x.padded && x.contiguous % x.tile != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of the tile's %u, and this kernel does not pad %s.",
             x.contiguous_name, extent, x.tile, x.contiguous_name);
  else if (x.contiguous % x.vector != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of %u, the vector in which %s is accessed.", x.contiguous_name,
             extent, x.vector, x.name);
  else if (check_alignment(x, facts, reason, bytes) != KW_OK)
    return KW_UNSUPPORTED;
  else if (!kw_bytes_fit_int32(kw_larger(span, x.stride), kw_dtype_bytes(x.dtype)))
    snprintf(reason, bytes, "%s spans %lld rows of %lld elements: its byte offsets do not fit into 31 bits.", x.name,
             static_cast<long long>(x.strided), stride);
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

// The matrices of a batch begin at whole rows' alignments, and the last one's bytes are counted in 63 bits.
kw_status check_strides(const kw_gemm_problem& p, const operand (&operands)[kMaxOperands],
                        const kw_hip_gemm_facts& facts, char* reason, size_t bytes) {
  const int64_t strides[] = {p.stride_a, p.stride_b, p.stride_c};
  const uint32_t dtypes[] = {p.dtype_a, p.dtype_b, p.dtype_c};
  for (int i = 0; i < 3 + static_cast<int>(p.num_d) && p.batch > 1; ++i) {
    const int64_t stride = i < 3 ? strides[i] : p.stride_multi_d[i - 3];
    const int64_t one = kw_mul(stride, kw_dtype_bytes(i < 3 ? dtypes[i] : p.dtype_c));
    if (!kw_fits_int64(kw_mul(one, p.batch))) {
      snprintf(reason, bytes, "%lld matrices that are %lld elements apart do not fit into 63 bits of bytes.",
               static_cast<long long>(p.batch), static_cast<long long>(stride));
      return KW_UNSUPPORTED;
    }
    const uint32_t aligned = alignment(operands[i < 2 ? i : i + 1], facts);
    if (one % aligned == 0) continue;
    snprintf(reason, bytes, "stride_%c is %lld: the matrices of the batch are not aligned to %u bytes.", 'a' + i,
             static_cast<long long>(stride), aligned);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

// Without K there is nothing to multiply, and the kernel that adds up slices does the rest. Grouped ones have none.
bool finishes_alone(const kw_hip_gemm& gemm, const kw_gemm_problem& p) { return p.k == 0 && gemm.sum.image != nullptr; }

// Workgroups of the kernel that adds slices up, or finishes alone.
int64_t sum_blocks(const kw_gemm_problem& p) {
  const int64_t vectors = kw_mul(p.m, kw_parts(p.n, KW_HIP_SUM_VECTOR));
  return kw_mul(kw_parts(vectors, KW_HIP_SUM_BLOCK), p.batch);
}

kw_status check_counts(const kw_hip_gemm& gemm, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts, char* reason,
                       size_t bytes) {
  const kw_gemm_traits& t = gemm.traits;
  const int64_t loops = k_tiles(t, p), matrix = matrix_tiles(t, p.m, p.n);
  const int64_t tiles = kw_mul3(matrix, p.batch, p.split_k);
  const long long m = p.m, n = p.n, batch = p.batch;
  if (loops / p.split_k < static_cast<int64_t>(facts.min_k_loops) && !finishes_alone(gemm, p))
    snprintf(reason, bytes, "k = %lld is %lld tiles of %u for split_k = %u, each needs %u.",
             static_cast<long long>(p.k), static_cast<long long>(loops), t.tile_k, p.split_k, facts.min_k_loops);
  else if (!kw_fits_int32(tiles) || !kw_fits_uint32(kw_mul(tiles, facts.block_size)))
    snprintf(reason, bytes,
             "m = %lld by n = %lld is %lld tiles for each of %lld matrices, more than a launch can have.", m, n,
             static_cast<long long>(matrix), batch);
  else if ((splits(t) || p.k == 0) && !kw_fits_uint32(kw_mul(sum_blocks(p), KW_HIP_SUM_BLOCK)))
    snprintf(reason, bytes, "m = %lld by n = %lld for each of %lld matrices is more than a launch can add up.", m, n,
             batch);
  else if (t.stream_k != KW_STREAM_K_NONE && !kw_fits_int32(kw_mul(tiles, loops)))
    snprintf(reason, bytes, "%lld tiles of %lld K tiles each are more than stream-K can count.",
             static_cast<long long>(tiles), static_cast<long long>(loops));
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

kw_status check_sizes(const kw_hip_gemm& gemm, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts, char* reason,
                      size_t bytes) {
  operand operands[kMaxOperands];
  const int count = describe_operands(gemm.traits, p, facts, operands);
  kw_status status = kw_gemm_check_all_leading(&p, reason, bytes);
  if (status != KW_OK) return status;
  if (p.m == 0 || p.n == 0) return KW_OK;
  for (int i = 0; i < count && status == KW_OK; ++i) {
    if (i == 3) continue;  // C: only its rows' alignment matters, below
    if (i < 2 && finishes_alone(gemm, p)) continue;
    status = check_operand(operands[i], facts, reason, bytes);
  }
  if (status == KW_OK) status = check_alignment(operands[3], facts, reason, bytes);
  if (status == KW_OK) status = check_strides(p, operands, facts, reason, bytes);
  return status == KW_OK ? check_counts(gemm, p, facts, reason, bytes) : status;
}

// Extents beyond 31 bits are refused first, so that nothing later can overflow 64 bits.
kw_status check_range(const kw_gemm_problem& p, char* reason, size_t bytes) {
  const int64_t values[] = {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.batch};
  const char* const names[] = {"m", "n", "k", "lda", "ldb", "ldc", "batch"};
  for (int i = 0; i < 7 + static_cast<int>(p.num_d); ++i) {
    const int64_t value = i < 7 ? values[i] : p.ld_multi_d[i - 7];
    const char* name = i < 7 ? names[i] : "a leading dimension of D";
    if (value < 0) {
      snprintf(reason, bytes, "%s = %lld is negative.", name, static_cast<long long>(value));
      return KW_INVALID_ARGUMENT;
    }
    if (value > INT32_MAX) {
      snprintf(reason, bytes, "%s = %lld does not fit into 31 bits.", name, static_cast<long long>(value));
      return KW_UNSUPPORTED;
    }
  }
  bool negative = p.stride_a < 0 || p.stride_b < 0 || p.stride_c < 0;
  for (uint32_t i = 0; i < p.num_d; ++i) negative = negative || p.stride_multi_d[i] < 0;
  if (!negative) return KW_OK;
  snprintf(reason, bytes, "a stride between the matrices of the batch is negative.");
  return KW_INVALID_ARGUMENT;
}

}  // namespace

kw_status check_conditions(const kw_hip_gemm& gemm, const kw_gemm_problem& p, const kw_hip_gemm_facts& facts,
                           char* reason, size_t bytes) {
  kw_status status = kw_gemm_traits_match(&gemm.traits, &p, reason, bytes);
  if (status == KW_OK) status = check_range(p, reason, bytes);
  if (status == KW_OK) status = check_scalars(gemm.traits, p, reason, bytes);
  return status == KW_OK ? check_sizes(gemm, p, facts, reason, bytes) : status;
}

}  // namespace kernelwright::hip
