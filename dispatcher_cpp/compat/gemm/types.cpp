#include <string.h>

#include "kernelwright/dispatcher/compat/gemm_types.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/gemm/checks.h"

namespace kernelwright {
namespace {

constexpr uint32_t kDtypes = KW_INT32;

uint32_t find_dtype(const char* text, size_t length) {
  for (uint32_t dtype = KW_FP32; dtype <= kDtypes; ++dtype) {
    const char* name = kw_dtype_name(dtype);
    if (strlen(name) == length && memcmp(name, text, length) == 0) return dtype;
  }
  return 0;
}

// As a spec's: 8-bit floats write fp16, integers int32.
uint32_t default_output(uint32_t dtype) {
  if (dtype == KW_FP8 || dtype == KW_BF8) return KW_FP16;
  return dtype == KW_INT8 ? static_cast<uint32_t>(KW_INT32) : dtype;
}

uint32_t default_accumulator(uint32_t dtype) { return dtype == KW_INT8 || dtype == KW_INT32 ? KW_INT32 : KW_FP32; }

GemmTypes types_of(const kw_gemm_traits& traits) {
  return {traits.dtype_a,  traits.dtype_b,  traits.dtype_c, traits.dtype_acc,
          traits.layout_a, traits.layout_b, traits.layout_c};
}

void add_types(const GemmTypes& types, Text* text) {
  text->add(kw_dtype_name(types.dtype_a)).add('_');
  const uint32_t layouts[] = {types.layout_a, types.layout_b, types.layout_c};
  for (const uint32_t layout : layouts) text->add(layout == KW_ROW_MAJOR ? 'r' : 'c');
  if (types.dtype_c != default_output(types.dtype_a)) text->add('_').add(kw_dtype_name(types.dtype_c));
}

bool same(const GemmTypes& one, const GemmTypes& other) { return memcmp(&one, &other, sizeof one) == 0; }
bool same(const Epilogue& one, const Epilogue& other) { return memcmp(&one, &other, sizeof one) == 0; }

// "add_relu_d1", as parse_epilogue reads it.
void add_epilogue(const Epilogue& epilogue, Text* text) {
  text->add(kw_d_op_name(epilogue.d_op)).add('_').add(kw_activation_name(epilogue.activation));
  text->add("_d").add(epilogue.num_d);
}

bool parse_epilogue(const char* text, Epilogue* epilogue) {
  for (uint32_t op = KW_D_ADD; op <= KW_D_MULTIPLY; ++op) {
    for (uint32_t activation = KW_ACTIVATION_NONE; activation <= KW_ACTIVATION_TANH; ++activation) {
      for (uint32_t count = 1; count <= KW_MAX_D; ++count) {
        const Epilogue one = {count, op, activation};
        Text name;
        add_epilogue(one, &name);
        if (strcmp(name.c_str(), text) != 0) continue;
        *epilogue = one;
        return true;
      }
    }
  }
  return false;
}

// Without an epilogue.
kw_status parse_plain(const char* text, GemmTypes* types);

}  // namespace

kw_status parse_types(const char* text, GemmTypes* types, Epilogue* epilogue) {
  const char* colon = strchr(text, ':');
  *epilogue = {};
  if (colon != nullptr && !parse_epilogue(colon + 1, epilogue)) {
    return fail(KW_INVALID_ARGUMENT,
                "types = %s; allowed behind the colon: add or multiply, an activation or none, and the number of D "
                "tensors, such as add_relu_d1",
                text);
  }
  Text before;
  for (const char* at = text; *at != '\0' && at != colon; ++at) before.add(*at);
  return parse_plain(before.c_str(), types);
}

kw_status common_epilogue(kw_dispatcher* dispatcher, const GemmTypes& types, Epilogue* epilogue) {
  Vec<Epilogue> epilogues;
  bool any = false;  // does a kernel read its epilogue from the problem?
  const uint64_t count = kw_dispatcher_kernel_count(dispatcher);
  for (uint64_t i = 0; i < count; ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    if (kw_status status = kw_dispatcher_kernel_at(dispatcher, i, &info)) return status;
    const auto& traits = *static_cast<const kw_gemm_traits*>(info.kernel->traits);
    if (info.kernel->op != KW_OP_GEMM || traits.num_d == 0 || !same(types_of(traits), types)) continue;
    if (traits.activation == KW_ACTIVATION_ANY) {
      any = true;
      continue;
    }
    const Epilogue one = {traits.num_d, traits.d_op, traits.activation};
    bool known = false;
    for (const Epilogue& other : epilogues) known = known || same(one, other);
    if (!known && !epilogues.push(one)) return fail(KW_OUT_OF_MEMORY, "no memory for %zu epilogues", epilogues.size());
  }
  Text name, listed;
  add_types(types, &name);
  if (any) {
    return fail(KW_INVALID_ARGUMENT,
                "the kernels for %s serve any epilogue; say which one is meant in KERNELWRIGHT_GEMM_TYPES or "
                "dispatcher_init_from, such as %s:add_relu_d1",
                name.c_str(), name.c_str());
  }
  if (epilogues.empty()) return fail(KW_NO_KERNEL, "no kernel for %s takes D tensors", name.c_str());
  if (epilogues.size() == 1) {
    *epilogue = epilogues[0];
    return KW_OK;
  }
  for (const Epilogue& one : epilogues) {
    listed.add(listed.size() != 0 ? ", " : "").add(name.c_str()).add(':');
    add_epilogue(one, &listed);
  }
  return fail(KW_INVALID_ARGUMENT,
              "the kernels for %s have %zu epilogues; say which one is meant in KERNELWRIGHT_GEMM_TYPES or "
              "dispatcher_init_from: %s",
              name.c_str(), epilogues.size(), listed.c_str());
}

namespace {

kw_status parse_plain(const char* text, GemmTypes* types) {
  const char* layouts = strchr(text, '_');
  const uint32_t dtype = layouts == nullptr ? 0 : find_dtype(text, static_cast<size_t>(layouts - text));
  bool right = dtype != 0 && dtype != KW_INT32;
  uint32_t layout[3] = {0, 0, 0};
  for (size_t i = 0; right && i < 3; ++i) {
    const char letter = layouts[1 + i];  // the terminating zero is no letter, so nothing behind it is read
    right = letter == 'r' || letter == 'c';
    layout[i] = letter == 'c' ? KW_COL_MAJOR : KW_ROW_MAJOR;
  }
  uint32_t output = default_output(dtype);
  if (right && layouts[4] == '_') {
    output = find_dtype(layouts + 5, strlen(layouts + 5));
    right = output != 0;
  } else {
    right = right && layouts[4] == '\0';
  }
  if (!right) {
    return fail(KW_INVALID_ARGUMENT,
                "types = %s; allowed: <dtype>_<layouts> or <dtype>_<layouts>_<dtype of C> with dtype fp32, fp16, bf16, "
                "fp8, bf8 or int8 and three letters r or c, such as fp16_rcr",
                text);
  }
  *types = {dtype, dtype, output, default_accumulator(dtype), layout[0], layout[1], layout[2]};
  return KW_OK;
}

}  // namespace

kw_status common_types(kw_dispatcher* dispatcher, GemmTypes* types) {
  Vec<GemmTypes> combinations;
  const uint64_t count = kw_dispatcher_kernel_count(dispatcher);
  for (uint64_t i = 0; i < count; ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    if (kw_status status = kw_dispatcher_kernel_at(dispatcher, i, &info)) return status;
    if (info.kernel->op != KW_OP_GEMM && info.kernel->op != KW_OP_GROUPED_GEMM) continue;
    const GemmTypes one = types_of(*static_cast<const kw_gemm_traits*>(info.kernel->traits));
    bool known = false;
    for (const GemmTypes& other : combinations) known = known || same(one, other);
    if (!known && !combinations.push(one))
      return fail(KW_OUT_OF_MEMORY, "no memory for %zu types", combinations.size());
  }
  if (combinations.size() == 1) {
    *types = combinations[0];
    return KW_OK;
  }
  Text listed;
  for (const GemmTypes& one : combinations) {
    if (listed.size() != 0) listed.add(", ");
    add_types(one, &listed);
  }
  return fail(
      KW_INVALID_ARGUMENT,
      "the kernels are of %zu types; say which one is meant in KERNELWRIGHT_GEMM_TYPES or dispatcher_init_from: "
      "%s",
      combinations.size(), listed.c_str());
}

kw_gemm_problem packed_problem(const GemmTypes& types, int64_t m, int64_t n, int64_t k) {
  const auto leading = [](uint32_t layout, int64_t rows, int64_t columns) {
    const int64_t extent = layout == KW_ROW_MAJOR ? columns : rows;
    return extent > 1 ? extent : 1;
  };
  kw_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GEMM};
  problem.dtype_a = types.dtype_a;
  problem.dtype_b = types.dtype_b;
  problem.dtype_c = types.dtype_c;
  problem.dtype_acc = types.dtype_acc;
  problem.layout_a = types.layout_a;
  problem.layout_b = types.layout_b;
  problem.layout_c = types.layout_c;
  problem.split_k = 1;
  problem.batch = 1;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.lda = leading(types.layout_a, m, k);
  problem.ldb = leading(types.layout_b, k, n);
  problem.ldc = leading(types.layout_c, m, n);
  problem.alpha = 1.0;
  return problem;
}

}  // namespace kernelwright
