// Libraries that share kernels, and operands that share memory.
#include <string.h>

#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/operands.hpp"

namespace {

std::string json(kw_dispatcher* d) {
  size_t needed = 0;
  CHECK(kw_dispatcher_export_json(d, nullptr, 0, &needed) == KW_BUFFER_TOO_SMALL);
  std::string text(needed, '\0');
  CHECK(kw_dispatcher_export_json(d, &text[0], needed, nullptr) == KW_OK);
  return text;
}

kw_kernel_info find(const Handle& h, const char* kernel) {
  kw_kernel_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_dispatcher_find_kernel(h.d, kernel, &info) == KW_OK);
  return info;
}

// A second copy of a kernel is left out; the first one keeps its library and priority.
void the_first_copy_of_a_kernel_stays() {
  Handle h, others;
  CHECK(h.add("good", 3) == KW_OK && others.add("variants") == KW_OK);
  const kw_library& good = *find(h, "gemm_fp32_rcr_32x32x32").library;
  const kw_library& variants = *find(others, "gemm_fp32_rrr_plain").library;
  const kw_kernel* const kernels[] = {good.kernels[0], variants.kernels[0], good.kernels[1]};
  kw_library mixed = good;
  mixed.name = "mixed", mixed.kernels = kernels, mixed.kernel_count = 3;
  const kw_library_options options = {sizeof options, 7, KW_DIGEST_UNCHECKED, 0};
  CHECK(kw_dispatcher_add_descriptor(h.d, &mixed, &options) == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) == good.kernel_count + 1);
  CHECK(find(h, good.kernels[0]->identity).library == &good && find(h, good.kernels[0]->identity).priority == 3);
  CHECK(find(h, variants.kernels[0]->identity).library == &mixed && find(h, "gemm_fp32_rrr_plain").priority == 7);
  CHECK(contains(json(h.d), "\"name\":\"mixed\",\"arch\":\"x86_64_v3\",\"abi_version\":3,\"kernels\":3,\"shared\":2"));
}

void libraries_come_again() {
  Handle h;
  CHECK(h.add("good") == KW_OK && h.add("good") == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) == 9);
  const std::string once = json(h.d);
  CHECK(once.find("\"abi_version\"") == once.rfind("\"abi_version\""));
  CHECK(h.add("copy") == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) == 9 && contains(json(h.d), "\"kernels\":9,\"shared\":9"));
  const kw_library& good = *find(h, "gemm_fp32_rcr_32x32x32").library;
  const kw_kernel* const twice[] = {good.kernels[0], good.kernels[1], good.kernels[0]};
  kw_library wrong = good;
  wrong.name = "wrong", wrong.kernels = twice, wrong.kernel_count = 3;
  CHECK(kw_dispatcher_add_descriptor(h.d, &wrong, nullptr) == KW_OK);  // all three are here already
  Handle empty;
  CHECK_FAILS(kw_dispatcher_add_descriptor(empty.d, &wrong, nullptr), KW_INVALID_ARGUMENT, "identity", "once");
}

void a_name_of_two_kernels_is_refused_with_both_files() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  const std::string first = mock("good"), second = mock("same_names");
  CHECK_FAILS(h.add("same_names"), KW_INVALID_ARGUMENT, "has the name of kernel", first.c_str(), second.c_str(),
              "leave out one library");
  CHECK(kw_dispatcher_kernel_count(h.d) == 9);
}

// Models are asked in the order of libraries, whichever of these brought the kernels.
void models_of_libraries_without_kernels_of_their_own_are_asked() {
  Handle h;
  CHECK(h.add("good") == KW_OK && h.add("model") == KW_OK);
  std::string reason;
  CHECK(h.chosen(make_problem(5, 9, 64), &reason) == "gemm_fp32_rcr_128x128x64");
  CHECK(reason == "best of 3 by large_tiles");
  CHECK(strcmp(find(h, "gemm_fp32_rcr_128x128x64").library->name, "mock") == 0);
}

// D = A B for rows of floats in one piece of memory.
kw_status launch_at(const Handle& h, const kw_gemm_problem& p, const float* a, const float* b, const float* c, float* d,
                    void* workspace = nullptr, const float* d0 = nullptr) {
  const kw_plan* plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  const kw_gemm_args args = {sizeof args, 0, a, b, c, d, {d0}};
  const kw_launch where = make_launch(workspace, kw_plan_workspace_size(plan));
  return kw_plan_launch(plan, &where, &args);
}

void results_share_memory_with_nothing() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  std::vector<float> memory(4096, 1.0f);
  float* const m = memory.data();
  kw_gemm_problem p = make_problem(4, 4, 4);  // 16 elements each
  CHECK(launch_at(h, p, m, m, nullptr, m + 16) == KW_OK);
  CHECK_FAILS(launch_at(h, p, m, m + 32, nullptr, m), KW_INVALID_ARGUMENT, "gemm: d shares memory with a");
  CHECK_FAILS(launch_at(h, p, m, m + 32, nullptr, m + 15), KW_INVALID_ARGUMENT, "d shares memory with a");
  CHECK_FAILS(launch_at(h, p, m + 64, m, nullptr, m + 15), KW_INVALID_ARGUMENT, "d shares memory with b");
  CHECK_FAILS(launch_at(h, p, m + 30, m, nullptr, m + 15), KW_INVALID_ARGUMENT, "d shares memory with");
  p.beta = 1;
  CHECK(launch_at(h, p, m, m + 16, m + 32, m + 32) == KW_OK);
  CHECK_FAILS(launch_at(h, p, m, m + 16, m + 31, m + 32), KW_INVALID_ARGUMENT, "d shares memory with c", "same tensor");
  p.beta = 0;
  CHECK(launch_at(h, p, m, m + 16, m + 31, m + 32) == KW_OK);  // nobody reads C
  p.k = 0;
  CHECK(launch_at(h, p, m, m, nullptr, m) == KW_OK);  // nor A or B
}

// Blocks of one matrix of 16 columns.
void blocks_side_by_side_are_apart() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  std::vector<float> memory(4096, 1.0f);
  float* const m = memory.data();
  kw_gemm_problem p = make_problem(4, 4, 4);
  p.lda = p.ldc = 16;
  CHECK(launch_at(h, p, m, m + 1024, nullptr, m + 4) == KW_OK);
  CHECK(launch_at(h, p, m + 4, m + 1024, nullptr, m) == KW_OK);
  CHECK(launch_at(h, p, m + 4, m + 1024, nullptr, m + 16) == KW_OK);  // a row below
  CHECK(launch_at(h, p, m, m + 1024, nullptr, m + 28) == KW_OK);
  CHECK_FAILS(launch_at(h, p, m, m + 1024, nullptr, m + 3), KW_INVALID_ARGUMENT, "d shares memory with a");
  CHECK_FAILS(launch_at(h, p, m, m + 1024, nullptr, m + 14), KW_INVALID_ARGUMENT, "d shares memory with a");
  p.lda = 17;
  CHECK_FAILS(launch_at(h, p, m, m + 1024, nullptr, m + 4), KW_INVALID_ARGUMENT, "d shares memory with a");
}

void workspaces_share_memory_with_nothing() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  alignas(256) static float memory[8192];
  kw_gemm_problem p = make_problem(2, 2, 2);
  p.layout_b = KW_ROW_MAJOR;  // its kernel takes 4096 bytes
  float* const m = memory;
  CHECK(launch_at(h, p, m + 1024, m + 1028, nullptr, m + 1032, m) == KW_OK);
  CHECK_FAILS(launch_at(h, p, m + 1023, m + 1028, nullptr, m + 1032, m), KW_INVALID_ARGUMENT,
              "workspace shares memory with a");
  CHECK_FAILS(launch_at(h, p, m + 1024, m + 1028, nullptr, m, m), KW_INVALID_ARGUMENT,
              "workspace shares memory with d");
}

// Rows of a buffer that holds Q, K and V of shared heads one behind the other; Q is rotated in place.
void packed_heads_are_apart() {
  constexpr int64_t kRows = 3, kWidth = 8 + 2 + 2, kHdim = 16;
  const auto tensor = [](const char* name, int64_t heads, bool written) {
    kernelwright::Operand made;
    made.name = name, made.item = 4, made.inner = kHdim, made.written = written;
    made.extents[0] = 2, made.strides[0] = kRows * kWidth * kHdim;
    made.extents[1] = heads, made.strides[1] = kHdim;
    made.extents[2] = kRows, made.strides[2] = kWidth * kHdim;
    return made;
  };
  kernelwright::Operand both[] = {tensor("q_out", 8, true), tensor("k", 2, false)};
  const auto check = [&](int64_t q, int64_t k) {
    const uintptr_t begin = 1 << 20;
    uintptr_t args[2] = {begin + static_cast<uintptr_t>(q * kHdim * 4), begin + static_cast<uintptr_t>(k * kHdim * 4)};
    both[1].member = sizeof(uintptr_t);
    for (kernelwright::Operand& one : both) kernelwright::measure(&one);
    return kernelwright::check_apart("append", both, 2, args, nullptr, 0);
  };
  CHECK(check(0, 8) == KW_OK && check(0, 10) == KW_OK && check(2, 0) == KW_OK && check(4, 0) == KW_OK);
  CHECK(check(0, 8 + kWidth) == KW_OK && check(0, 100 * kWidth) == KW_OK);
  for (const int64_t k : {int64_t{0}, int64_t{7}, int64_t{11}, kWidth + 7}) {
    CHECK_FAILS(check(0, k), KW_INVALID_ARGUMENT, "append: q_out shares memory with k");
  }
}

// More groups than are compared one by one.
void groups_share_memory_with_nothing() {
  constexpr int kGroups = 40;
  Handle h;
  CHECK(h.add("variants") == KW_OK);
  const std::vector<kw_gemm_group> groups(kGroups, kw_gemm_group{2, 2, 2, 2, 2, 2});
  std::vector<float> memory(4096, 1.0f);
  std::vector<const void*> a(kGroups, memory.data()), b(kGroups, memory.data() + 4);
  std::vector<void*> d;
  for (int i = 0; i < kGroups; ++i) d.push_back(memory.data() + 8 + 4 * ((7 * i) % kGroups));
  kw_grouped_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GROUPED_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = p.dtype_acc = KW_FP32;
  p.group_count = kGroups, p.groups = groups.data(), p.alpha = 1;
  kw_grouped_gemm_args args = {sizeof args, 0, kGroups, groups.data(), a.data(), b.data(), nullptr, d.data()};
  alignas(256) static char workspace[1 << 16];
  const kw_launch where = make_launch(workspace, sizeof workspace);
  const auto run = [&] { return kw_dispatcher_run(h.d, &p.base, &where, &args); };
  CHECK(run() == KW_OK);
  void* const right = d[17];
  d[17] = memory.data() + 2;
  CHECK_FAILS(run(), KW_INVALID_ARGUMENT, "grouped gemm: d[17] shares memory with ");
  d[17] = static_cast<float*>(d[23]) + 3;
  CHECK_FAILS(run(), KW_INVALID_ARGUMENT, "shares memory with d[");
  d[17] = right;
  CHECK(run() == KW_OK);
}

void devices_have_ordinals() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  kw_dispatcher* d = nullptr;
  for (const int32_t device : {-1, -5, INT32_MIN}) {
    options.device = device;
    CHECK_FAILS(kw_dispatcher_create(&options, &d), KW_INVALID_ARGUMENT, "device = -", "allowed: an ordinal from 0 on");
    CHECK(d == nullptr);
  }
}

}  // namespace

void sharing() {
  the_first_copy_of_a_kernel_stays();
  libraries_come_again();
  a_name_of_two_kernels_is_refused_with_both_files();
  models_of_libraries_without_kernels_of_their_own_are_asked();
  results_share_memory_with_nothing();
  blocks_side_by_side_are_apart();
  workspaces_share_memory_with_nothing();
  packed_heads_are_apart();
  groups_share_memory_with_nothing();
  devices_have_ordinals();
}
