// Streams that swallow their text.
#ifndef KERNELWRIGHT_CUDA_QUIET_NULL_STREAM_HPP
#define KERNELWRIGHT_CUDA_QUIET_NULL_STREAM_HPP
#include <iosfwd>

namespace std {
struct kernelwright_null_stream {
  template <class T>
  constexpr const kernelwright_null_stream& operator<<(const T&) const {
    return *this;
  }
  const kernelwright_null_stream& operator<<(ostream& (*)(ostream&)) const { return *this; }
};
inline constexpr kernelwright_null_stream cerr{};
inline constexpr kernelwright_null_stream cout{};
}  // namespace std
#endif
