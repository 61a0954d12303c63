// Arrays that positional attention functions have no argument for.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_FILLED_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_FILLED_HPP

#include <stdint.h>
#include <stdlib.h>

#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {

// Host memory that goes with its block. An array that cannot be had is null, and status() says so.
class Filled {
 public:
  Filled() = default;
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;
  ~Filled() {
    for (size_t i = 0; i < count_; ++i) free(arrays_[i]);
  }

  // Zeros: the product of sizes that are 0 or more, times the bytes of an element.
  template <typename... Sizes>
  void* zeros(int64_t item, Sizes... sizes) {
    int64_t bytes = item;
    bool fits = true;
    ((fits = fits && !__builtin_mul_overflow(bytes, static_cast<int64_t>(sizes), &bytes)), ...);
    // No bytes are an array too: null would mean that the problem has none.
    void* made = fits && count_ < kMost ? calloc(1, bytes > 0 ? static_cast<size_t>(bytes) : 1) : nullptr;
    if (made == nullptr) {
      status_ = fail(KW_OUT_OF_MEMORY, "no memory for an array that the function has no argument for");
    } else {
      arrays_[count_++] = made;
    }
    return made;
  }
  // first, first + step, ... ; the last one fits in 32 bits.
  int32_t* counts(int64_t count, int64_t first, int64_t step) {
    auto* made = static_cast<int32_t*>(zeros(sizeof(int32_t), count));
    for (int64_t i = 0; made != nullptr && i < count; ++i) made[i] = static_cast<int32_t>(first + i * step);
    return made;
  }
  kw_status status() const { return status_; }

 private:
  static constexpr size_t kMost = 16;
  void* arrays_[kMost] = {};
  size_t count_ = 0;
  kw_status status_ = KW_OK;
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_FMHA_FILLED_HPP
