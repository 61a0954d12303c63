// SHA-256 as FIPS 180-4 defines it. No pinned wheel brings an implementation in C or C++, and the dispatcher links
// against libc alone.
#ifndef KERNELWRIGHT_DISPATCHER_LOADING_SHA256_HPP
#define KERNELWRIGHT_DISPATCHER_LOADING_SHA256_HPP

#include <stddef.h>
#include <stdint.h>

namespace kernelwright {

class Sha256 {
 public:
  static constexpr size_t kHexBytes = 65;  // 64 digits and a zero

  void update(const void* data, size_t bytes);
  // Ends the message; nothing may be added after it.
  void finish(char (&hex)[kHexBytes]);

 private:
  void block(const unsigned char* data);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t bytes_ = 0;
  unsigned char rest_[64] = {};
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_LOADING_SHA256_HPP
