#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"
#include "kernelwright/dispatcher/torch/call.h"

namespace kernelwright {
namespace {

constexpr int64_t kMaxDims = 8;
constexpr uint32_t kMaxWords = 2 + KW_TORCH_TENSORS * (2 + 2 * kMaxDims);
constexpr uint32_t kBuckets = 1024;
constexpr uint64_t kTimed = 16;       // of so many calls one is timed, for all of them: clocks take 4 % of a call
constexpr uint64_t kAlignment = 256;  // of workspaces, by the C ABI

kw_torch_shim torch;
bool in_use = false;
kw_torch_count counts[KW_TORCH_COUNTERS];

/* Metadata of the operands of a call. */
struct Key {
  uint64_t words[kMaxWords];
  uint32_t count = 0;
  uint64_t hash = 0xcbf29ce484222325u;

  void add(uint64_t word) {
    words[count++] = word;
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
};

/* What a result is allocated as. */
struct Result {
  int32_t dtype, device_type, device_index;
  int64_t dims, sizes[kMaxDims], strides[kMaxDims];
};

struct Entry {
  Entry* next;
  uint64_t hash;
  uint32_t words;
  uint32_t launches;  // threads that are in one
  kw_torch_known known;
  Result results[KW_TORCH_RESULTS];
  alignas(16) unsigned char args[KW_TORCH_ARGS_BYTES];
  uint64_t key[kMaxWords];
};

Entry* buckets[kBuckets];
uint32_t entries = 0;
Mutex mutex;  // of the two

bool describe(AtenTensorHandle tensor, Key& key) {
  int64_t dims = 0, *sizes = nullptr, *strides = nullptr;
  int32_t dtype = 0, type = 0, index = 0;
  if (torch.aoti_torch_get_dim(tensor, &dims) != 0 || dims > kMaxDims) return false;
  if (torch.aoti_torch_get_dtype(tensor, &dtype) != 0 || torch.aoti_torch_get_device_type(tensor, &type) != 0 ||
      torch.aoti_torch_get_device_index(tensor, &index) != 0 || torch.aoti_torch_get_sizes(tensor, &sizes) != 0 ||
      torch.aoti_torch_get_strides(tensor, &strides) != 0) {
    return false;
  }
  key.add(static_cast<uint64_t>(dims) << 32 | static_cast<uint32_t>(dtype));
  key.add(static_cast<uint64_t>(static_cast<uint32_t>(type)) << 32 | static_cast<uint32_t>(index));
  for (int64_t i = 0; i < dims; ++i) key.add(static_cast<uint64_t>(sizes[i]));
  for (int64_t i = 0; i < dims; ++i) key.add(static_cast<uint64_t>(strides[i]));
  return true;
}

bool describe(const AtenTensorHandle* tensors, uint64_t count, uint64_t results, uint64_t options, Key& key) {
  key.add(options);
  key.add(results << 32 | count);
  for (uint64_t i = 0; i < count; ++i) {
    if (!describe(tensors[i], key)) return false;
  }
  return true;
}

Entry* find(const Key& key) {
  for (Entry* each = buckets[key.hash % kBuckets]; each != nullptr; each = each->next) {
    if (each->hash == key.hash && each->words == key.count &&
        memcmp(each->key, key.words, key.count * sizeof(uint64_t)) == 0) {
      return each;
    }
  }
  return nullptr;
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/* A tensor of torch that goes back to it. */
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) torch.aoti_torch_delete_tensor_object(handle);
  }
  AtenTensorHandle release() {
    AtenTensorHandle released = handle;
    handle = nullptr;
    return released;
  }
  AtenTensorHandle handle = nullptr;
};

void* put(unsigned char* args, uint32_t offset, const void* address) {
  return memcpy(args + offset, &address, sizeof address);
}

bool allocate(const Result& result, Owned& made, void*& address) {
  return torch.aoti_torch_empty_strided(result.dims, result.sizes, result.strides, result.dtype, result.device_type,
                                        result.device_index, &made.handle) == 0 &&
         torch.torch_get_mutable_data_ptr(made.handle, &address) == 0;
}

/* Scratch memory on the device of the results, which torch has back behind the launch, in the order of its stream. */
bool allocate_workspace(const Entry& entry, Owned& made, kw_launch& frame) {
  Result bytes = entry.results[0];
  bytes.dtype = torch.aoti_torch_dtype_uint8();
  bytes.dims = 1;
  bytes.sizes[0] = static_cast<int64_t>(entry.known.workspace_bytes + kAlignment);
  bytes.strides[0] = 1;
  void* address = nullptr;
  if (!allocate(bytes, made, address)) return false;
  const uint64_t aligned = (reinterpret_cast<uint64_t>(address) + kAlignment - 1) / kAlignment * kAlignment;
  frame.workspace = reinterpret_cast<void*>(aligned);
  return true;
}

/* Whether it was launched, with the results in `made`. */
bool launch(const Entry& entry, const AtenTensorHandle* tensors, uint64_t count, Owned* made) {
  const kw_torch_known& known = entry.known;
  alignas(16) unsigned char args[KW_TORCH_ARGS_BYTES];
  memcpy(args, entry.args, known.args_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    const void* address = nullptr;
    if (torch.torch_get_const_data_ptr(tensors[i], &address) != 0) return false;
    put(args, known.offsets[i], address);
  }
  for (uint32_t i = 0; i < known.results; ++i) {
    void* address = nullptr;
    if (!allocate(entry.results[i], made[i], address)) return false;
    put(args, known.result_offsets[i], address);
  }
  const Result& first = entry.results[0];
  kw_launch frame = {};
  frame.struct_size = sizeof frame;
  frame.device = known.device;
  frame.workspace_bytes = known.workspace_bytes;
  if (first.device_type != torch.aoti_torch_device_type_cpu() &&
      torch.aoti_torch_get_current_cuda_stream(first.device_index, &frame.stream) != 0) {
    return false;
  }
  Owned workspace;
  if (known.workspace_bytes != 0 && !allocate_workspace(entry, workspace, frame)) return false;
  return kw_plan_launch(known.plan, &frame, args) == KW_OK;
}

bool launch_known(const AtenTensorHandle* tensors, uint64_t count, uint64_t results, uint64_t options, Owned* made) {
  Key key;
  if (!describe(tensors, count, results, options, key)) return false;
  Entry* entry = nullptr;
  {
    Lock lock(mutex);
    entry = find(key);
    if (entry != nullptr) __atomic_add_fetch(&entry->launches, 1, __ATOMIC_RELAXED);
  }
  if (entry == nullptr) return false;
  kw_torch_count& counted = counts[entry->known.counter];
  const bool timed = __atomic_fetch_add(&counted.calls, 1, __ATOMIC_RELAXED) % kTimed == 0;
  const uint64_t start = timed ? now_ns() : 0;
  const bool launched = launch(*entry, tensors, count, made);
  if (!launched) {
    __atomic_sub_fetch(&counted.calls, 1, __ATOMIC_RELAXED);
  } else if (timed) {
    __atomic_add_fetch(&counted.host_ns, kTimed * (now_ns() - start), __ATOMIC_RELAXED);
  }
  __atomic_sub_fetch(&entry->launches, 1, __ATOMIC_RELEASE);
  return launched;
}

/* launch_two(Tensor a, Tensor b, int options) -> Tensor, to launch_six; pair_three, pair_four -> (Tensor, Tensor);
 * triple_six -> (Tensor, Tensor, Tensor) */
void launch_operator(StableIValue* stack, uint64_t given, uint64_t results) {
  const uint64_t count = given - 1;
  AtenTensorHandle tensors[KW_TORCH_TENSORS] = {};
  for (uint64_t i = 0; i < count; ++i) tensors[i] = reinterpret_cast<AtenTensorHandle>(stack[i]);
  Owned made[KW_TORCH_RESULTS];
  const bool launched = launch_known(tensors, count, results, stack[count], made);
  for (uint64_t i = 0; i < count; ++i) torch.aoti_torch_delete_tensor_object(tensors[i]);
  for (uint64_t i = 0; i < results; ++i) {
    AtenTensorHandle result = launched ? made[i].release() : nullptr;
    if (result == nullptr) torch.aoti_torch_new_uninitialized_tensor(&result);
    stack[i] = reinterpret_cast<StableIValue>(result);
  }
}

bool read(AtenTensorHandle tensor, Result& result) {
  int64_t *sizes = nullptr, *strides = nullptr;
  if (torch.aoti_torch_get_dim(tensor, &result.dims) != 0 || result.dims > kMaxDims) return false;
  if (torch.aoti_torch_get_sizes(tensor, &sizes) != 0 || torch.aoti_torch_get_strides(tensor, &strides) != 0 ||
      torch.aoti_torch_get_dtype(tensor, &result.dtype) != 0 ||
      torch.aoti_torch_get_device_type(tensor, &result.device_type) != 0 ||
      torch.aoti_torch_get_device_index(tensor, &result.device_index) != 0) {
    return false;
  }
  for (int64_t i = 0; i < result.dims; ++i) result.sizes[i] = sizes[i], result.strides[i] = strides[i];
  return true;
}

bool can_be_known(const kw_torch_known& known, uint64_t tensors) {
  if (known.struct_size != sizeof known || known.args_bytes > KW_TORCH_ARGS_BYTES ||
      known.counter >= KW_TORCH_COUNTERS || known.results < 1 || known.results > KW_TORCH_RESULTS ||
      tensors <= known.results || tensors - known.results > KW_TORCH_TENSORS) {
    return false;
  }
  for (uint32_t offset : known.offsets) {
    if (offset + sizeof(void*) > known.args_bytes) return false;
  }
  for (uint32_t offset : known.result_offsets) {
    if (offset + sizeof(void*) > known.args_bytes) return false;
  }
  return true;
}

/* Of `count` tensors the last ones are the results. */
bool learn(const AtenTensorHandle* tensors, uint64_t count, uint64_t options, const kw_torch_known& known) {
  if (!can_be_known(known, count)) return false;
  const uint64_t operands = count - known.results;
  Key key;
  if (!describe(tensors, operands, known.results, options, key)) return false;
  auto* made = static_cast<Entry*>(calloc(1, sizeof(Entry)));
  if (made == nullptr) return false;
  made->known = known;
  made->hash = key.hash;
  made->words = key.count;
  memcpy(made->key, key.words, key.count * sizeof(uint64_t));
  memcpy(made->args, known.args, known.args_bytes);
  bool known_results = true;
  for (uint32_t i = 0; i < known.results; ++i) {
    known_results = known_results && read(tensors[operands + i], made->results[i]);
  }
  if (known_results) {
    Lock lock(mutex);
    if (entries < KW_TORCH_LIMIT && find(key) == nullptr) {
      Entry*& bucket = buckets[key.hash % kBuckets];
      made->next = bucket;
      bucket = made;
      ++entries;
      return true;
    }
  }
  free(made);
  return false;
}

/* learn_three(Tensor a, Tensor b, Tensor c, int options, int known) -> int, to learn_nine: 1 = it is known now */
void learn_operator(StableIValue* stack, uint64_t given, uint64_t) {
  const uint64_t count = given - 2;
  AtenTensorHandle tensors[KW_TORCH_TENSORS + KW_TORCH_RESULTS] = {};
  for (uint64_t i = 0; i < count; ++i) tensors[i] = reinterpret_cast<AtenTensorHandle>(stack[i]);
  const auto* known = reinterpret_cast<const kw_torch_known*>(stack[count + 1]);
  const bool learned = learn(tensors, count, stack[count], *known);
  for (uint64_t i = 0; i < count; ++i) torch.aoti_torch_delete_tensor_object(tensors[i]);
  stack[0] = learned ? 1 : 0;
}

struct Operator {
  const char* name;
  void (*run)(StableIValue*, uint64_t, uint64_t);
};

constexpr Operator kOperators[] = {
    {"launch_two", launch_operator},  {"launch_three", launch_operator}, {"launch_four", launch_operator},
    {"launch_five", launch_operator}, {"launch_six", launch_operator},   {"pair_three", launch_operator},
    {"pair_four", launch_operator},   {"triple_six", launch_operator},   {"learn_three", learn_operator},
    {"learn_four", learn_operator},   {"learn_five", learn_operator},    {"learn_six", learn_operator},
    {"learn_seven", learn_operator},  {"learn_nine", learn_operator},
};

bool implement(const char* key) {
  TorchLibraryHandle library = nullptr;  // torch forgets what was registered with a library that is deleted
  if (torch.aoti_torch_library_init_impl("kernelwright", key, __FILE__, __LINE__, &library) != 0) return false;
  for (const Operator& each : kOperators) {
    if (torch.torch_library_impl(library, each.name, each.run, KW_TORCH_ABI_VERSION) != 0) return false;
  }
  return true;
}

}  // namespace
}  // namespace kernelwright

kw_status kw_torch_use(const kw_torch_shim* shim) {
  using namespace kernelwright;
  if (in_use) return fail(KW_INVALID_ARGUMENT, "torch's functions are in use already; allowed: one call in a process");
  torch = *shim;
  in_use = true;
  const bool gpu = torch.aoti_torch_get_current_cuda_stream != nullptr;
  if (implement("CPU") && (!gpu || implement("CUDA"))) return KW_OK;
  return fail(KW_LOAD_FAILED, "torch refused the implementation of an operator; call without the native road");
}

void kw_torch_forget(void) {
  using namespace kernelwright;
  Entry* dropped = nullptr;
  {
    Lock lock(mutex);
    for (Entry*& bucket : buckets) {
      while (bucket != nullptr) {
        Entry* each = bucket;
        bucket = each->next;
        each->next = dropped;
        dropped = each;
      }
    }
    entries = 0;
  }
  while (dropped != nullptr) {
    Entry* each = dropped;
    dropped = each->next;
    while (__atomic_load_n(&each->launches, __ATOMIC_ACQUIRE) != 0) sched_yield();
    free(each);
  }
}

void kw_torch_after_fork(void) {
  using namespace kernelwright;
  Lock lock(mutex);
  for (Entry* bucket : buckets) {
    for (Entry* each = bucket; each != nullptr; each = each->next) each->launches = 0;
  }
}

kw_torch_count kw_torch_counted(uint32_t counter, uint32_t reset) {
  using namespace kernelwright;
  kw_torch_count copy = {};
  if (counter >= KW_TORCH_COUNTERS) return copy;
  copy.calls = __atomic_load_n(&counts[counter].calls, __ATOMIC_RELAXED);
  copy.host_ns = __atomic_load_n(&counts[counter].host_ns, __ATOMIC_RELAXED);
  if (reset != 0) {
    __atomic_store_n(&counts[counter].calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counts[counter].host_ns, 0, __ATOMIC_RELAXED);
  }
  return copy;
}
