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

struct Entry {
  Entry* next;
  uint64_t hash;
  uint32_t words;
  uint32_t launches;  // threads that are in one
  kw_torch_known known;
  int32_t dtype, device_type, device_index;
  int64_t dims, sizes[kMaxDims], strides[kMaxDims];
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

bool describe(const AtenTensorHandle* tensors, uint64_t count, uint64_t options, Key& key) {
  key.add(options);
  key.add(count);
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

/* The result, or null. */
AtenTensorHandle launch(const Entry& entry, const AtenTensorHandle* tensors, uint64_t count) {
  const kw_torch_known& known = entry.known;
  alignas(16) unsigned char args[KW_TORCH_ARGS_BYTES];
  memcpy(args, entry.args, known.args_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    const void* address = nullptr;
    if (torch.torch_get_const_data_ptr(tensors[i], &address) != 0) return nullptr;
    put(args, known.offsets[i], address);
  }
  Owned result, workspace;
  void* address = nullptr;
  if (torch.aoti_torch_empty_strided(entry.dims, entry.sizes, entry.strides, entry.dtype, entry.device_type,
                                     entry.device_index, &result.handle) != 0 ||
      torch.torch_get_mutable_data_ptr(result.handle, &address) != 0) {
    return nullptr;
  }
  put(args, known.offsets[KW_TORCH_TENSORS], address);
  kw_launch frame = {};
  frame.struct_size = sizeof frame;
  frame.device = known.device;
  frame.workspace_bytes = known.workspace_bytes;
  if (entry.device_type != torch.aoti_torch_device_type_cpu() &&
      torch.aoti_torch_get_current_cuda_stream(entry.device_index, &frame.stream) != 0) {
    return nullptr;
  }
  if (known.workspace_bytes != 0) {  // torch has it back behind the launch, in the order of its stream
    const int64_t bytes = static_cast<int64_t>(known.workspace_bytes + kAlignment), stride = 1;
    if (torch.aoti_torch_empty_strided(1, &bytes, &stride, torch.aoti_torch_dtype_uint8(), entry.device_type,
                                       entry.device_index, &workspace.handle) != 0 ||
        torch.torch_get_mutable_data_ptr(workspace.handle, &address) != 0) {
      return nullptr;
    }
    const uint64_t aligned = (reinterpret_cast<uint64_t>(address) + kAlignment - 1) / kAlignment * kAlignment;
    frame.workspace = reinterpret_cast<void*>(aligned);
  }
  return kw_plan_launch(known.plan, &frame, args) == KW_OK ? result.release() : nullptr;
}

AtenTensorHandle launch_known(const AtenTensorHandle* tensors, uint64_t count, uint64_t options) {
  Key key;
  if (!describe(tensors, count, options, key)) return nullptr;
  Entry* entry = nullptr;
  {
    Lock lock(mutex);
    entry = find(key);
    if (entry != nullptr) __atomic_add_fetch(&entry->launches, 1, __ATOMIC_RELAXED);
  }
  if (entry == nullptr) return nullptr;
  kw_torch_count& counted = counts[entry->known.counter];
  const bool timed = __atomic_fetch_add(&counted.calls, 1, __ATOMIC_RELAXED) % kTimed == 0;
  const uint64_t start = timed ? now_ns() : 0;
  AtenTensorHandle result = launch(*entry, tensors, count);
  if (result == nullptr) {
    __atomic_sub_fetch(&counted.calls, 1, __ATOMIC_RELAXED);
  } else if (timed) {
    __atomic_add_fetch(&counted.host_ns, kTimed * (now_ns() - start), __ATOMIC_RELAXED);
  }
  __atomic_sub_fetch(&entry->launches, 1, __ATOMIC_RELEASE);
  return result;
}

/* launch_two(Tensor a, Tensor b, int options) -> Tensor, and launch_three */
void launch_operator(StableIValue* stack, uint64_t given, uint64_t) {
  const uint64_t count = given - 1;
  AtenTensorHandle tensors[KW_TORCH_TENSORS] = {};
  for (uint64_t i = 0; i < count; ++i) tensors[i] = reinterpret_cast<AtenTensorHandle>(stack[i]);
  AtenTensorHandle result = launch_known(tensors, count, stack[count]);
  for (uint64_t i = 0; i < count; ++i) torch.aoti_torch_delete_tensor_object(tensors[i]);
  if (result == nullptr) torch.aoti_torch_new_uninitialized_tensor(&result);
  stack[0] = reinterpret_cast<StableIValue>(result);
}

bool learn(const AtenTensorHandle* tensors, uint64_t count, AtenTensorHandle result, uint64_t options,
           const kw_torch_known& known) {
  Key key;
  if (known.struct_size != sizeof known || known.args_bytes > KW_TORCH_ARGS_BYTES ||
      known.counter >= KW_TORCH_COUNTERS || !describe(tensors, count, options, key)) {
    return false;
  }
  for (uint32_t offset : known.offsets) {
    if (offset + sizeof(void*) > known.args_bytes) return false;
  }
  int64_t *sizes = nullptr, *strides = nullptr;
  auto* made = static_cast<Entry*>(calloc(1, sizeof(Entry)));
  if (made == nullptr) return false;
  made->known = known;
  made->hash = key.hash;
  made->words = key.count;
  memcpy(made->key, key.words, key.count * sizeof(uint64_t));
  memcpy(made->args, known.args, known.args_bytes);
  bool read = torch.aoti_torch_get_dim(result, &made->dims) == 0 && made->dims <= kMaxDims;
  read = read && torch.aoti_torch_get_sizes(result, &sizes) == 0 && torch.aoti_torch_get_strides(result, &strides) == 0;
  read = read && torch.aoti_torch_get_dtype(result, &made->dtype) == 0;
  read = read && torch.aoti_torch_get_device_type(result, &made->device_type) == 0;
  read = read && torch.aoti_torch_get_device_index(result, &made->device_index) == 0;
  if (read) {
    for (int64_t i = 0; i < made->dims; ++i) made->sizes[i] = sizes[i], made->strides[i] = strides[i];
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

/* learn_two(Tensor a, Tensor b, Tensor result, int options, int known) -> int, and learn_three: 1 = it is known now */
void learn_operator(StableIValue* stack, uint64_t given, uint64_t) {
  const uint64_t count = given - 3;
  AtenTensorHandle tensors[KW_TORCH_TENSORS + 1];
  for (uint64_t i = 0; i <= count; ++i) tensors[i] = reinterpret_cast<AtenTensorHandle>(stack[i]);
  const auto* known = reinterpret_cast<const kw_torch_known*>(stack[count + 2]);
  const bool learned = learn(tensors, count, tensors[count], stack[count + 1], *known);
  for (uint64_t i = 0; i <= count; ++i) torch.aoti_torch_delete_tensor_object(tensors[i]);
  stack[0] = learned ? 1 : 0;
}

struct Operator {
  const char* name;
  void (*run)(StableIValue*, uint64_t, uint64_t);
};

constexpr Operator kOperators[] = {{"launch_two", launch_operator},
                                   {"launch_three", launch_operator},
                                   {"learn_two", learn_operator},
                                   {"learn_three", learn_operator}};

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
  kw_torch_count found = {};
  if (counter >= KW_TORCH_COUNTERS) return found;
  found.calls = __atomic_load_n(&counts[counter].calls, __ATOMIC_RELAXED);
  found.host_ns = __atomic_load_n(&counts[counter].host_ns, __ATOMIC_RELAXED);
  if (reset != 0) {
    __atomic_store_n(&counts[counter].calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&counts[counter].host_ns, 0, __ATOMIC_RELAXED);
  }
  return found;
}
