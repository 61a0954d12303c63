// A growing array without libc++: the dispatcher links against libc alone, so it loads beside any C++ runtime.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_VEC_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_VEC_HPP

#include <stddef.h>
#include <stdlib.h>

namespace kernelwright {

template <typename T>
class Vec {
  static_assert(__is_trivially_copyable(T), "elements are moved by realloc");

 public:
  Vec() = default;
  Vec(const Vec&) = delete;
  Vec& operator=(const Vec&) = delete;
  ~Vec() { free(data_); }

  // False when memory ran out; the content is then unchanged.
  [[nodiscard]] bool reserve(size_t capacity) {
    if (capacity <= capacity_) return true;
    void* grown = realloc(data_, capacity * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }
  [[nodiscard]] bool push(const T& value) {
    const T copy = value;
    if (size_ == capacity_ && !reserve(capacity_ == 0 ? 16 : 2 * capacity_)) return false;
    data_[size_++] = copy;
    return true;
  }
  void resize_down(size_t size) { size_ = size; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct InPlace {};

}  // namespace kernelwright

// What <new> would declare, under a tag of our own so that both can be seen in one file.
inline void* operator new(size_t, void* storage, kernelwright::InPlace) noexcept { return storage; }
inline void operator delete(void*, void*, kernelwright::InPlace) noexcept {}

namespace kernelwright {

// An object of a type with constructor and destructor in storage from malloc; null when memory ran out.
template <typename T>
T* make_object() {
  void* storage = nullptr;
  const size_t alignment = alignof(T) < sizeof(void*) ? sizeof(void*) : alignof(T);
  if (posix_memalign(&storage, alignment, sizeof(T)) != 0) return nullptr;
  return ::new (storage, InPlace()) T();
}

template <typename T>
void destroy_object(T* object) {
  if (object == nullptr) return;
  object->~T();
  free(object);
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_VEC_HPP
