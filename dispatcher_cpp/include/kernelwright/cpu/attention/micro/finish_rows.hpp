// From the sums of a block of rows to O and LSE. A row that saw nothing has zeros and -inf.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_FINISH_ROWS_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_FINISH_ROWS_HPP

#include "kernelwright/cpu/attention/kernel.hpp"
#include "kernelwright/cpu/attention/micro/power.hpp"
#include "kernelwright/cpu/common/element.hpp"

namespace kernelwright::cpu {
namespace {

inline void write_lse(const row_block& rows, int64_t row) {
  if (rows.lse[row] == nullptr) return;
  const double lse = rows.sum[row] == 0 ? -__builtin_inf() : logarithm(rows.sum[row]) + rows.top[row];
  *rows.lse[row] = static_cast<float>(lse * kLn2);
}

// What the sums of O of a row are multiplied by.
inline float row_factor(const row_block& rows, int64_t row, float factor) {
  return rows.sum[row] == 0 ? 0.0f : factor / rows.sum[row];
}

template <class Output>
KW_CPU_INLINE void write_elements(void* o, int64_t at, vec v, int64_t count) {
  auto* const to = static_cast<typename Output::storage*>(o) + at;
  if (count >= kLanes) {
    Output::store_float(to, v);
  } else {
    Output::store_first(to, v, count);
  }
}

// The sums are transposed: panels of NR rows, an element of O below the other.
template <class Element, int MR, int NR>
struct panel_finisher {
  static void finish(const finish_call& call) {
    const row_block& rows = *call.rows;
    const int64_t lines = round_up(call.hdim_v, MR);
    for (int64_t row = 0; row < rows.rows; row += kLanes) {
      const int64_t used = smaller(rows.rows - row, kLanes);
      float factors[kLanes] = {};
      for (int64_t i = 0; i < used; ++i) factors[i] = row_factor(rows, row + i, call.factor);
      const float* const sums = call.partial + row / NR * NR * lines + row % NR;
      for (int64_t at = 0; at < call.hdim_v; at += kLanes) {
        const int64_t count = smaller(call.hdim_v - at, kLanes);
        vec v[kLanes];
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          v[i] = i < count ? mul(load(sums + (at + i) * NR), load(factors)) : zero();
        }
        transpose(v);
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          if (i >= used) continue;
          if (call.fp32) {
            write_elements<fp32>(rows.o[row + i], at, v[i], count);
          } else {
            write_elements<Element>(rows.o[row + i], at, v[i], count);
          }
        }
      }
      for (int64_t i = 0; i < used; ++i) write_lse(rows, row + i);
    }
  }
};

// The sums of a row lie side by side.
template <class Element>
void finish_few_rows(const finish_call& call) {
  const row_block& rows = *call.rows;
  const int64_t ld = round_up(call.hdim_v, kSpareUnits);
  for (int64_t row = 0; row < rows.rows; ++row) {
    const vec factor = broadcast(row_factor(rows, row, call.factor));
    for (int64_t at = 0; at < call.hdim_v; at += kLanes) {
      const vec v = mul(load(call.partial + row * ld + at), factor);
      if (call.fp32) {
        write_elements<fp32>(rows.o[row], at, v, call.hdim_v - at);
      } else {
        write_elements<Element>(rows.o[row], at, v, call.hdim_v - at);
      }
    }
    write_lse(rows, row);
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_FINISH_ROWS_HPP
