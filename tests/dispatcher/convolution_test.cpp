// Convolution as the dispatcher sees it: what is refused, how problems are cached, backward weight in one or two
// stages. The kernels are the test's: one leaves slices for a second kernel, the other adds them up itself.
#include "kernelwright/convolution.h"

#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/operation.hpp"

namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const kw_problem* base(const kw_conv_problem& problem) { return &problem.base; }

kw_conv_problem make(uint32_t op) {
  kw_conv_problem p = {};
  p.base = {sizeof p, op};
  p.dtype_x = p.dtype_w = p.dtype_y = p.dtype_acc = KW_FP32;
  p.layout = KW_CONV_NHWGC;
  p.split_k = op == KW_OP_CONV_BACKWARD_WEIGHT ? 0 : 1;
  p.groups = 2;
  p.n = 3;
  p.c = 4;
  p.k = 6;
  for (int dim = 0; dim < 3; ++dim) p.extent[dim] = p.filter[dim] = p.stride[dim] = p.dilation[dim] = 1;
  p.extent[1] = 8, p.extent[2] = 9, p.filter[1] = p.filter[2] = 3;
  const int64_t x[] = {8 * 9 * 4, 1, 0, 9 * 4, 4}, y[] = {6 * 7 * 6, 1, 0, 7 * 6, 6};
  memcpy(p.stride_x, x, sizeof x);
  memcpy(p.stride_y, y, sizeof y);
  p.alpha = 1;
  return p;
}

void problems_are_validated() {
  CHECK(kw_problem_validate(base(make(KW_OP_CONV_FORWARD))) == KW_OK);
  CHECK(kw_problem_validate(base(make(KW_OP_CONV_BACKWARD_WEIGHT))) == KW_OK);
  const auto refused = [](void (*change)(kw_conv_problem*), const char* field, const char* allowed,
                          uint32_t op = KW_OP_CONV_FORWARD) {
    kw_conv_problem p = make(op);
    change(&p);
    CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, field, allowed);
  };
  refused([](kw_conv_problem* p) { p->base.struct_size = 8; }, "struct_size = 8", "320");
  refused([](kw_conv_problem* p) { p->dtype_w = 99; }, "dtype_w = 99", "1 (fp32)");
  refused([](kw_conv_problem* p) { p->layout = 4; }, "layout = 4", "0 (nwgc) to 3 (ngchw)");
  refused([](kw_conv_problem* p) { p->bias = 2; }, "bias = 2", "0 to 1");
  refused([](kw_conv_problem* p) { p->groups = 0; }, "groups = 0", "1 or more");
  refused([](kw_conv_problem* p) { p->groups = 4; }, "k = 6", "multiple of groups = 4");
  refused([](kw_conv_problem* p) { p->n = -1; }, "n = -1", "0 or more");
  refused([](kw_conv_problem* p) { p->stride[2] = 0; }, "stride along w = 0", "1 or more");
  refused([](kw_conv_problem* p) { p->pad_left[1] = -1; }, "pad_left along h = -1", "0 or more");
  refused([](kw_conv_problem* p) { p->extent[0] = 2; }, "nhwgc has no dimension d", "1, padding 0");
  refused([](kw_conv_problem* p) { p->dilation[1] = 4; }, "leaves no output along h", "at most");
  refused([](kw_conv_problem* p) { p->filter[2] = INT64_MAX; }, "leaves no output along w", "at most");
  refused([](kw_conv_problem* p) { p->pad_right[2] = INT64_MAX; }, "overflows", "at most");
  refused([](kw_conv_problem* p) { p->stride_x[1] = 2; }, "stride 1 of x = 2", "nhwgc: 1");
  refused([](kw_conv_problem* p) { p->stride_y[4] = 5; }, "y let results overlap", "6 or more");
  refused([](kw_conv_problem* p) { p->stride_x[3] = -4; }, "stride 3 of x = -4", "0 or more");
  refused([](kw_conv_problem* p) { p->stride_x[0] = INT64_MAX; }, "x spans too much memory", "at most");
  refused([](kw_conv_problem* p) { p->split_k = 2; }, "split_k = 2", "allowed: 1");
  refused([](kw_conv_problem* p) { p->leaves_slices = 1; }, "leaves_slices = 1", "allowed: 0");
  refused([](kw_conv_problem* p) { p->activation = KW_ACTIVATION_RELU; }, "activation", "forward only",
          KW_OP_CONV_BACKWARD_DATA);
  kw_conv_problem repeated = make(KW_OP_CONV_BACKWARD_DATA);
  repeated.stride_y[0] = 0;  // one dy for all images; dx is what is written
  CHECK(kw_problem_validate(&repeated.base) == KW_OK);
}

// --- kernels of backward weight

struct Kernel {
  kw_conv_traits traits;
  kw_kernel descriptor;

  Kernel(uint32_t op, const char* name, char digit, uint32_t max_split_k, uint32_t slices) : traits(), descriptor() {
    traits.struct_size = sizeof traits;
    traits.dtype_x = traits.dtype_w = traits.dtype_y = traits.dtype_acc = KW_FP32;
    traits.layout = KW_CONV_NDHWGC;
    traits.tile_m = traits.tile_n = traits.warp_tile_m = traits.warp_tile_n = traits.warp_tile_k = 1;
    traits.tile_k = 4;
    traits.max_split_k = max_split_k;
    traits.slices = slices;
    static char identities[4][65];
    char* identity = identities[digit - 'a'];
    memset(identity, digit, 64);
    descriptor.struct_size = sizeof descriptor;
    descriptor.abi_version = KW_ABI_VERSION;
    descriptor.op = op;
    descriptor.plan_bytes = sizeof(kw_conv_problem);
    descriptor.name = name;
    descriptor.arch = "x86_64_v3";
    descriptor.identity = identity;
    descriptor.features = "";
    descriptor.traits = &traits;
    descriptor.supports = [](const kw_kernel*, const kw_problem* p, char*, size_t) {
      const auto& part = reinterpret_cast<const kw_conv_problem&>(*p);
      return part.leaves_slices <= 1 && part.split_k >= 1 ? KW_OK : KW_UNSUPPORTED;
    };
    descriptor.workspace_size = [](const kw_kernel*, const kw_problem*, uint64_t* bytes) {
      *bytes = 64;
      return KW_OK;
    };
    descriptor.plan = [](const kw_kernel*, const kw_problem* p, void* storage) {
      memcpy(storage, p, sizeof(kw_conv_problem));
      return KW_OK;
    };
    descriptor.launch = launch;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Writes the number of its slice, or adds slices up: enough to see what reaches which kernel.
  static kw_status launch(const kw_kernel* kernel, const void* plan, const kw_launch*, const void* arguments) {
    const auto& p = *static_cast<const kw_conv_problem*>(plan);
    const auto& args = *static_cast<const kw_conv_args*>(arguments);
    const int64_t count = p.k * (p.c / p.groups) * p.filter[0] * p.filter[1] * p.filter[2];
    auto* out = static_cast<float*>(args.d);
    if (kernel->op == KW_OP_CONV_SUM_SLICES) {
      const auto* slices = static_cast<const float*>(args.a);
      for (int64_t i = 0; i < count; ++i) {
        out[i] = 0;
        for (uint32_t slice = 0; slice < p.split_k; ++slice) out[i] += slices[slice * count + i];
      }
      return args.b == nullptr ? KW_OK : KW_INVALID_ARGUMENT;
    }
    const uint32_t written = p.leaves_slices == 1 ? p.split_k : 1;
    for (int64_t i = 0; i < count * written; ++i) out[i] = static_cast<float>(1 + i / count);
    return KW_OK;
  }
};

const Kernel kLeaves(KW_OP_CONV_WEIGHT_SLICES, "leaves", 'a', 8, 1), kSums(KW_OP_CONV_SUM_SLICES, "sums", 'b', 8, 0);
const Kernel kAlone(KW_OP_CONV_WEIGHT_SLICES, "alone", 'c', 1, 0);
const kw_arch kArch = {sizeof kArch, KW_BACKEND_CPU, "x86_64_v3", 1, 1, KW_FP8_OCP, 0, 1 << 20, 1.0, 1.0, {}};

kw_library library_of(const kw_kernel* const* kernels, uint64_t count) {
  return {sizeof(kw_library),
          KW_ABI_VERSION,
          "convolution",
          &kArch,
          kernels,
          count,
          [](int32_t, char*, size_t) { return KW_OK; },
          [] { return ""; },
          [](uint32_t) { return KW_OK; },
          nullptr};
}

kw_plan_info info_of(const kw_plan* plan) {
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_info(plan, &info) == KW_OK);
  return info;
}

std::string kernel_of(const kw_plan* plan, uint32_t index) {
  kw_stage_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_stage(plan, index, &info) == KW_OK);
  return info.kernel->name;
}

void slices_are_added_up_by_a_second_stage() {
  const kw_kernel* const kernels[] = {&kLeaves.descriptor, &kSums.descriptor};
  const kw_library library = library_of(kernels, 2);
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &library, nullptr) == KW_OK);
  kw_conv_problem p = make(KW_OP_CONV_BACKWARD_WEIGHT);
  p.split_k = 4;
  const kw_plan* plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  const kw_plan_info info = info_of(plan);
  CHECK(info.stage_count == 2 && strcmp(info.choices, "split_k=4") == 0);
  CHECK(kernel_of(plan, 0) == "leaves" && kernel_of(plan, 1) == "sums");
  const int64_t count = 6 * 2 * 3 * 3;
  void* workspace = nullptr;
  CHECK(posix_memalign(&workspace, 256, info.workspace_bytes) == 0);
  const kw_launch where = make_launch(workspace, info.workspace_bytes);
  std::string dw(static_cast<size_t>(count) * sizeof(float), '\0');
  const std::vector<float> read(1 << 16);  // by nobody
  const kw_conv_args args = {sizeof args, 0, read.data(), read.data(), &dw[0], nullptr, nullptr};
  CHECK(kw_dispatcher_run(h.d, &p.base, &where, &args) == KW_OK);
  for (int64_t i = 0; i < count; ++i) CHECK(reinterpret_cast<const float*>(dw.data())[i] == 1 + 2 + 3 + 4);
  free(workspace);
  p.split_k = 1;  // then the first kernel writes dw
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK && info_of(plan).stage_count == 1);
  p.split_k = 9;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "split_k is 9");
  p.split_k = 0;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(contains(info_of(plan).choices, "split_k="));
}

// Prefers `leaves` with three slices, then with two, and rules out the other kernel.
kw_status prefer_three(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  if (problem->op == KW_OP_CONV_SUM_SLICES) {  // which leaves nothing open
    CHECK(count == 1 && candidates[0].value == 0);
    return KW_UNSUPPORTED;
  }
  auto* seen = static_cast<std::string*>(user);
  for (uint64_t i = 0; i < count; ++i) {
    if (!seen->empty()) *seen += ' ';
    *seen += candidates[i].kernel->name + std::to_string(candidates[i].value);
    const uint32_t value = candidates[i].value;
    if (candidates[i].kernel == &kLeaves.descriptor) candidates[i].score = value < 4 ? 4.0 - value : 10.0;
    if (value == 8) candidates[i].score = -1.0 / 0.0;
  }
  return KW_OK;
}

void callbacks_score_each_value() {
  const kw_kernel* const kernels[] = {&kLeaves.descriptor, &kSums.descriptor, &kAlone.descriptor};
  const kw_library library = library_of(kernels, 3);
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &library, nullptr) == KW_OK);
  std::string seen;
  const kw_selection_options options = {sizeof options, KW_SELECT_CALLBACK, nullptr, prefer_three, &seen, "three"};
  CHECK(kw_dispatcher_set_selection(h.d, &options) == KW_OK);
  const kw_conv_problem p = make(KW_OP_CONV_BACKWARD_WEIGHT);
  const kw_plan* plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(info_of(plan).stage_count == 2 && strcmp(info_of(plan).choices, "split_k=3") == 0);
  CHECK(contains(info_of(plan).reason, "only kernel that fits"));
  // Values of a kernel stand side by side, those of least predicted time first.
  for (const char* one : {"alone1", "leaves1", "leaves2", "leaves3", "leaves4", "leaves6", "leaves8"}) {
    CHECK(contains(seen, one));
  }
  CHECK(seen.size() == 6 * 8 + 6);
  size_t needed = 0;
  CHECK(kw_dispatcher_explain(h.d, &p.base, nullptr, 0, &needed) == KW_BUFFER_TOO_SMALL);
  std::string text(needed, '\0');
  CHECK(kw_dispatcher_explain(h.d, &p.base, &text[0], needed, nullptr) == KW_OK);
  CHECK(contains(text, "\"values\":[{\"value\":3,\"choices\":\"split_k=3\",\"score\":1},{\"value\":2,"));
  CHECK(contains(text, "{\"value\":8,\"choices\":\"split_k=8\",\"score\":null}"));
}

void one_kernel_may_be_all() {
  const kw_kernel* const kernels[] = {&kAlone.descriptor};
  const kw_library library = library_of(kernels, 1);
  Handle h;
  CHECK(kw_dispatcher_add_descriptor(h.d, &library, nullptr) == KW_OK);
  kw_conv_problem p = make(KW_OP_CONV_BACKWARD_WEIGHT);
  const kw_plan *plan = nullptr, *again = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(info_of(plan).stage_count == 1 && strcmp(info_of(plan).choices, "split_k=1") == 0);
  CHECK(kw_dispatcher_select(h.d, &p.base, &again) == KW_OK && again == plan);
  p.pad_left[2] = 1;  // another problem, another plan
  p.stride_y[0] += 6 * 6, p.stride_y[3] += 6;
  CHECK(kw_dispatcher_select(h.d, &p.base, &again) == KW_OK && again != plan);
  const kw_conv_problem forward = make(KW_OP_CONV_FORWARD);
  CHECK_FAILS(kw_dispatcher_select(h.d, &forward.base, &plan), KW_NO_KERNEL,
              "conv forward fp32 nhwgc n3 c4 k6 8x9 filter 3x3 groups 2");
  const kw_conv_args args = {sizeof args, 0, nullptr, nullptr, nullptr, nullptr, nullptr};
  CHECK_FAILS(kw_dispatcher_run(h.d, base(make(KW_OP_CONV_BACKWARD_WEIGHT)), &kLaunch, &args), KW_INVALID_ARGUMENT,
              "is null");
}

// --- predicted times on an H200, against what benchmarks/gpu/conv_sweep.py measured on it

struct Tile {
  uint32_t m, n, warp_groups;
};

double predicted_us(uint32_t op, const Tile& tile, int64_t images, int64_t channels, int64_t size, int64_t stride,
                    uint32_t slices = 1, bool depthwise = false) {
  static const kw_arch hopper = {sizeof hopper, KW_BACKEND_CUDA,   "sm_90a", 132, 32, KW_FP8_OCP, 0, 232448, 1.83,
                                 4800,          {0, 0, 4096, 4096}};
  kw_conv_problem p = make(op);
  p.dtype_x = p.dtype_w = p.dtype_y = KW_BF16;
  p.n = images, p.c = p.k = channels, p.groups = depthwise ? channels : 1, p.split_k = slices;
  for (int dim = 1; dim < 3; ++dim) {
    p.extent[dim] = size, p.stride[dim] = stride, p.pad_left[dim] = p.pad_right[dim] = 1;
  }
  kw_conv_traits t = {};
  t.tile_m = tile.m, t.tile_n = tile.n, t.tile_k = 64, t.wave_m = tile.warp_groups;
  t.depthwise = depthwise && tile.m == 1;
  kw_kernel kernel = {};
  kernel.traits = &t;
  return kernelwright::find_operation(op)->estimate(kernel, p.base, {&hopper, hopper.compute_units}).total_us;
}

void times_on_hopper_are_near_measured_ones() {
  const auto near = [](double predicted, double measured) {
    return predicted < 1.4 * measured && measured < 1.4 * predicted;
  };
  const Tile square = {128, 128, 1}, tall = {128, 64, 1}, large = {256, 128, 2}, one = {1, 1, 1};
  const uint32_t forward = KW_OP_CONV_FORWARD, data = KW_OP_CONV_BACKWARD_DATA, weight = KW_OP_CONV_WEIGHT_SLICES;
  CHECK(near(predicted_us(forward, tall, 32, 64, 56, 1), 21.9));
  CHECK(near(predicted_us(forward, large, 32, 128, 56, 2), 18.6));
  CHECK(near(predicted_us(forward, square, 32, 256, 14, 1), 16.3));
  CHECK(near(predicted_us(data, tall, 32, 512, 7, 1), 19.8));
  CHECK(near(predicted_us(weight, {64, 128, 1}, 32, 64, 56, 1, 24), 30.9));
  CHECK(predicted_us(weight, {64, 128, 1}, 32, 64, 56, 1) > 10 * predicted_us(weight, {64, 128, 1}, 32, 64, 56, 1, 24));
  CHECK(predicted_us(forward, square, 32, 64, 56, 1) > predicted_us(forward, tall, 32, 64, 56, 1));
  CHECK(predicted_us(forward, one, 32, 144, 56, 1, 1, true) < predicted_us(forward, tall, 32, 144, 56, 1, 1, true));
  CHECK(predicted_us(data, one, 32, 144, 56, 1, 1, true) < predicted_us(data, tall, 32, 144, 56, 1, 1, true));
  CHECK(near(predicted_us(weight, one, 32, 144, 56, 1, 64, true), 29.7));
  CHECK(predicted_us(weight, one, 32, 144, 56, 1, 1, true) > 10 * predicted_us(weight, one, 32, 144, 56, 1, 64, true));
  CHECK(predicted_us(forward, {64, 128, 1}, 32, 512, 7, 1) < predicted_us(forward, tall, 32, 512, 7, 1));
  // Images of three channels are folded: three points along W are the channels of one.
  CHECK(predicted_us(forward, tall, 32, 3, 224, 1) < 0.6 * predicted_us(forward, tall, 32, 24, 224, 1));
}

}  // namespace

void convolution() {
  times_on_hopper_are_near_measured_ones();
  problems_are_validated();
  slices_are_added_up_by_a_second_stage();
  callbacks_score_each_value();
  one_kernel_may_be_all();
}
