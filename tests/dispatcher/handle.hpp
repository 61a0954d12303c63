// A dispatcher for tests, and problems for it.
#ifndef KERNELWRIGHT_TESTS_HANDLE_HPP
#define KERNELWRIGHT_TESTS_HANDLE_HPP

#include <string>

#include "check.hpp"
#include "kernelwright/dispatcher/gemm.h"

inline std::string& folder() {
  static std::string path;
  return path;
}
inline std::string mock(const char* name) { return folder() + "/" + name + ".so"; }

inline kw_gemm_problem make_problem(int64_t m, int64_t n, int64_t k) {
  kw_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = p.dtype_acc = KW_FP32;
  p.layout_b = KW_COL_MAJOR;
  p.split_k = 1;
  p.batch = 1;
  p.m = m, p.n = n, p.k = k;
  p.lda = p.ldb = k > 1 ? k : 1;
  p.ldc = n > 1 ? n : 1;
  p.alpha = 1;
  return p;
}

// A launch on device 0.
inline kw_launch make_launch(void* workspace = nullptr, uint64_t bytes = 0) {
  return {sizeof(kw_launch), 0, nullptr, workspace, bytes};
}
inline const kw_launch kLaunch = make_launch();

// Of a temporary too: it lives until the end of the call that it is an argument of.
inline const kw_problem* base(const kw_gemm_problem& problem) { return &problem.base; }

struct Handle {
  kw_dispatcher* d = nullptr;
  explicit Handle(const kw_dispatcher_options* options = nullptr) { CHECK(kw_dispatcher_create(options, &d) == KW_OK); }
  ~Handle() { kw_dispatcher_destroy(d); }
  kw_status add(const char* name, int32_t priority = 0) {
    const kw_library_options options = {sizeof options, priority, KW_DIGEST_UNCHECKED, 0};
    return kw_dispatcher_add_library(d, mock(name).c_str(), &options);
  }
  kw_status use(uint32_t provider, const char* kernel = nullptr) {
    kw_selection_options options = {};
    options.struct_size = sizeof options;
    options.provider = provider;
    options.kernel = kernel;
    return kw_dispatcher_set_selection(d, &options);
  }
  std::string chosen(const kw_gemm_problem& p, std::string* reason = nullptr) {
    const kw_plan* plan = nullptr;
    if (kw_dispatcher_select(d, &p.base, &plan) != KW_OK) return "";
    kw_stage_info info = {};
    info.struct_size = sizeof info;
    CHECK(kw_plan_get_stage(plan, 0, &info) == KW_OK);
    if (reason != nullptr) *reason = info.reason;
    return info.kernel->name;
  }
  std::string explain(const kw_gemm_problem& p) {
    size_t needed = 0;
    CHECK(kw_dispatcher_explain(d, &p.base, nullptr, 0, &needed) == KW_BUFFER_TOO_SMALL);
    std::string text(needed, '\0');
    CHECK(kw_dispatcher_explain(d, &p.base, &text[0], needed, nullptr) == KW_OK);
    return text;
  }
};

inline bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void loading();      // of loading_test.cpp
void estimates();    // of estimates_test.cpp
void plan_cache();   // of plan_cache_test.cpp
void variants();     // of variants_test.cpp
void stages();       // of stages_test.cpp
void models();       // of models_test.cpp
void convolution();  // of convolution_test.cpp
void attention();    // of attention_test.cpp
void sharing();      // of sharing_test.cpp
void widths();       // of widths_test.cpp
void threads();      // of threads_test.cpp

#endif  // KERNELWRIGHT_TESTS_HANDLE_HPP
