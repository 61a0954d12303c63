// The two orderings that the dispatcher needs, on compiler builtins: with no C++ standard header in it, the library
// builds and links in one command against libc alone.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_ATOMIC_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_ATOMIC_HPP

namespace kernelwright {

template <typename T>
class Atomic {
 public:
  Atomic() = default;
  explicit Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T acquire() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  T relaxed() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  void release(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }

 private:
  T value_ = T();
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_ATOMIC_HPP
