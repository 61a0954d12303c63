// One kernel per operation of the language: what the compiler makes of them for each architecture is what is tested.
#ifndef KERNELWRIGHT_TESTS_AMD_ARITHMETIC_HPP
#define KERNELWRIGHT_TESTS_AMD_ARITHMETIC_HPP

#include <hip/hip_runtime.h>

namespace arithmetic {

using f16 = _Float16;
using f32 = float;
using f64 = double;
using i16 = short;
using i32 = int;
using i64 = long;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long;
using f16x2 = f16 __attribute__((ext_vector_type(2)));
using f32x2 = f32 __attribute__((ext_vector_type(2)));
using i16x2 = i16 __attribute__((ext_vector_type(2)));

}  // namespace arithmetic

// Each lane applies the expression to its elements a, b and c of three arrays.
#define OPERATION(name, result, type, ...)                                                                     \
  extern "C" __global__ void name(arithmetic::result* d, const arithmetic::type* x, const arithmetic::type* y, \
                                  const arithmetic::type* z) {                                                 \
    using namespace arithmetic;                                                                                \
    const unsigned lane = __builtin_amdgcn_workitem_id_x();                                                    \
    [[maybe_unused]] const type a = x[lane], b = y[lane], c = z[lane];                                         \
    d[lane] = static_cast<result>(__VA_ARGS__);                                                                \
  }

#define FLOATS(type)                                                       \
  OPERATION(add_##type, type, type, a + b)                                 \
  OPERATION(subtract_##type, type, type, a - b)                            \
  OPERATION(multiply_##type, type, type, a* b)                             \
  OPERATION(divide_##type, type, type, a / b)                              \
  OPERATION(fused_##type, type, type, __builtin_elementwise_fma(a, -b, c)) \
  OPERATION(root_##type, type, type, __builtin_elementwise_sqrt(a))        \
  OPERATION(floor_##type, type, type, __builtin_elementwise_floor(a))      \
  OPERATION(ceil_##type, type, type, __builtin_elementwise_ceil(a))        \
  OPERATION(truncate_##type, type, type, __builtin_elementwise_trunc(a))   \
  OPERATION(round_##type, type, type, __builtin_elementwise_rint(a))       \
  OPERATION(least_##type, type, type, __builtin_elementwise_min(a, b))     \
  OPERATION(most_##type, type, type, __builtin_elementwise_max(a, b))      \
  OPERATION(less_##type, i32, type, a < b)                                 \
  OPERATION(unequal_##type, i32, type, a != b)                             \
  OPERATION(clamped_##type, type, type, a<b ? b : a> c ? c : a)            \
  OPERATION(from_i32_##type, type, i32, a)                                 \
  OPERATION(from_u32_##type, type, u32, a)                                 \
  OPERATION(from_i64_##type, type, i64, a)                                 \
  OPERATION(from_u64_##type, type, u64, a)                                 \
  OPERATION(to_i32_##type, i32, type, a)                                   \
  OPERATION(to_i64_##type, i64, type, a)

FLOATS(f16)
FLOATS(f32)
FLOATS(f64)
OPERATION(exp2_f32, f32, f32, __builtin_elementwise_exp2(a))
OPERATION(log2_f32, f32, f32, __builtin_elementwise_log2(a))
OPERATION(exp_f32, f32, f32, __builtin_elementwise_exp(a))
OPERATION(log_f32, f32, f32, __builtin_elementwise_log(a))
OPERATION(exp2_f16, f16, f16, __builtin_elementwise_exp2(a))
OPERATION(f32_to_f16, f16, f32, a)
OPERATION(f64_to_f16, f16, f64, a)
OPERATION(f64_to_f32, f32, f64, a)
OPERATION(f16_to_f32, f32, f16, a)
OPERATION(f32_to_f64, f64, f32, a)
OPERATION(f32_to_bf16, u16, f32, __builtin_bit_cast(u16, static_cast<__bf16>(a)))
OPERATION(bf16_to_f32, f32, u16, static_cast<f32>(__builtin_bit_cast(__bf16, a)))
OPERATION(mixed_f16, f32, f16,
          __builtin_elementwise_fma(static_cast<f32>(a), -static_cast<f32>(b), static_cast<f32>(c)))
OPERATION(add_f16x2, f16x2, f16x2, a + b)
OPERATION(fused_f16x2, f16x2, f16x2, __builtin_elementwise_fma(a, b, c))
OPERATION(scaled_f16x2, f16x2, f16x2, a* static_cast<f16>(4) + f16x2{static_cast<f16>(2), static_cast<f16>(0)})
OPERATION(multiply_f32x2, f32x2, f32x2, a* b.yx)
OPERATION(fused_f32x2, f32x2, f32x2, __builtin_elementwise_fma(a, b, c))
OPERATION(multiply_i16x2, i16x2, i16x2, a* b + c)
OPERATION(least_i16x2, i16x2, i16x2, __builtin_elementwise_min(a, b))

#define INTEGERS(unsigned_, signed_)                                                             \
  OPERATION(add_##unsigned_, unsigned_, unsigned_, a + b - c)                                    \
  OPERATION(multiply_##unsigned_, unsigned_, unsigned_, a* b + c)                                \
  OPERATION(divide_##unsigned_, unsigned_, unsigned_, a / (b | 1))                               \
  OPERATION(divide_##signed_, signed_, signed_, (a / 2) / (b | 1))                               \
  OPERATION(remainder_##unsigned_, unsigned_, unsigned_, a % (b | 1))                            \
  OPERATION(remainder_##signed_, signed_, signed_, (a / 2) % (b | 1))                            \
  OPERATION(left_##unsigned_, unsigned_, unsigned_, a << (b & (8 * sizeof(a) - 1)))              \
  OPERATION(right_##unsigned_, unsigned_, unsigned_, a >> (b & (8 * sizeof(a) - 1)))             \
  OPERATION(right_##signed_, signed_, signed_, a >> (b & (8 * sizeof(a) - 1)))                   \
  OPERATION(least_##signed_, signed_, signed_, __builtin_elementwise_min(a, b))                  \
  OPERATION(most_##unsigned_, unsigned_, unsigned_, __builtin_elementwise_max(a, b))             \
  OPERATION(saturated_##signed_, signed_, signed_, __builtin_elementwise_add_sat(a, b))          \
  OPERATION(saturated_##unsigned_, unsigned_, unsigned_, __builtin_elementwise_sub_sat(a, b))    \
  OPERATION(reversed_##unsigned_, unsigned_, unsigned_, __builtin_elementwise_bitreverse(a))     \
  OPERATION(ones_##unsigned_, unsigned_, unsigned_, __builtin_elementwise_popcount(a))           \
  OPERATION(zeros_##unsigned_, unsigned_, unsigned_, a == 0 ? 8 * sizeof(a) : __builtin_clzg(a)) \
  OPERATION(selected_##unsigned_, unsigned_, unsigned_, (a & b) | (~a & c))                      \
  OPERATION(parity_##unsigned_, unsigned_, unsigned_, a ^ b ^ c)                                 \
  OPERATION(less_##signed_, i32, signed_, a < b)                                                 \
  OPERATION(less_##unsigned_, i32, unsigned_, a < b)

INTEGERS(u16, i16)
INTEGERS(u32, i32)
INTEGERS(u64, i64)
OPERATION(high_u64, u64, u64, static_cast<unsigned __int128>(a) * b >> 64)
OPERATION(high_u32, u32, u32, static_cast<u64>(a) * b >> 32)
OPERATION(bytes_u32, u32, u32, __builtin_bswap32(a) ^ (b >> 8 & 0xFF00FF))
OPERATION(median_i32, i32, i32,
          __builtin_elementwise_max(__builtin_elementwise_min(a, b),
                                    __builtin_elementwise_min(__builtin_elementwise_max(a, b), c)))

#endif
