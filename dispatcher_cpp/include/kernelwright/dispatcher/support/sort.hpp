// Heap sort: no allocation, no worst case. Callers' orders are total, so stability does not matter.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_SORT_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_SORT_HPP

#include <stddef.h>

namespace kernelwright {

template <typename T, typename Before>
void sift_down(T* items, size_t root, size_t count, Before before) {
  for (size_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
    if (child + 1 < count && before(items[child], items[child + 1])) ++child;
    if (!before(items[root], items[child])) return;
    const T swapped = items[root];
    items[root] = items[child];
    items[child] = swapped;
  }
}

template <typename T, typename Before>
void sort(T* items, size_t count, Before before) {
  for (size_t root = count / 2; root-- > 0;) sift_down(items, root, count, before);
  for (size_t end = count; end-- > 1;) {
    const T largest = items[0];
    items[0] = items[end];
    items[end] = largest;
    sift_down(items, 0, end, before);
  }
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_SORT_HPP
