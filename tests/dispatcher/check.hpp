// A test framework in a page: checks report and count, tests run in the order of main().
#ifndef KERNELWRIGHT_TESTS_CHECK_HPP
#define KERNELWRIGHT_TESTS_CHECK_HPP

#include <stdio.h>
#include <string.h>

inline int& failures() {
  static int count = 0;
  return count;
}

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      fprintf(stderr, "  last error: %s\n", kw_last_error());         \
      __atomic_add_fetch(&failures(), 1, __ATOMIC_RELAXED);           \
    }                                                                 \
  } while (false)

// The call fails with this status, and the text names every one of the words.
#define CHECK_FAILS(call, expected, ...)                                                           \
  do {                                                                                             \
    CHECK((call) == (expected));                                                                   \
    const char* words[] = {__VA_ARGS__};                                                           \
    for (const char* word : words) {                                                               \
      if (strstr(kw_last_error(), word) != nullptr) continue;                                      \
      fprintf(stderr, "%s:%d: \"%s\" is not in: %s\n", __FILE__, __LINE__, word, kw_last_error()); \
      ++failures();                                                                                \
    }                                                                                              \
  } while (false)

#endif  // KERNELWRIGHT_TESTS_CHECK_HPP
