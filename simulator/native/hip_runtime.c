/* A stand-in for libamdhip64: a simulated device for each architecture that it is told of, launches go to a callback.
 *
 * It has what kernelwright's launcher asks of the HIP runtime and nothing else: no memory of its own (kernels read and
 * write the host's), no streams, no events. A launch is over when hipModuleLaunchKernel returns. Failures leave a text
 * for hipGetErrorString in the calling thread. Everything but the callback's own work may be called from any thread.
 */
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { /* hipError_t */
       SUCCESS = 0,
       INVALID_VALUE = 1,
       OUT_OF_MEMORY = 2,
       NOT_INITIALIZED = 3,
       INVALID_CONFIGURATION = 9,
       INVALID_DEVICE = 101,
       INVALID_IMAGE = 200,
       NO_BINARY_FOR_GPU = 209,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       LAUNCH_FAILURE = 719
};

#define AMDGPU 224            /* e_machine of AMD code objects */
#define MACH_MASK 0xffu       /* EF_AMDGPU_MACH in e_flags */
#define PROPERTIES_BYTES 1472 /* sizeof(hipDeviceProp_tR0600) */
#define NAME_AT 0             /* its members name[256] … */
#define ARCH_NAME_AT 1160     /* … and gcnArchName[256] */
#define MAX_WORKITEMS 1024u   /* per workgroup, on every architecture */
#define TEXT_BYTES 1536

#define NAME_BYTES 65
#define MOST_DEVICES 256

typedef struct device {
  char name[NAME_BYTES];
  char arch[NAME_BYTES]; /* as gcnArchName says */
  uint32_t mach;         /* EF_AMDGPU_MACH_AMDGCN_*, LLVM's AMDGPUUsage */
} device;

static device devices[MOST_DEVICES]; /* written once each, before their count includes them */
static int device_count;

static int count_devices(void) { return __atomic_load_n(&device_count, __ATOMIC_ACQUIRE); }

/* What a launch is. The pointers are valid during the call. */
typedef struct kw_simulator_launch {
  uint32_t struct_size;
  int32_t device;
  const void* image;
  uint64_t image_bytes;
  const char* kernel;
  const void* arguments;
  uint64_t argument_bytes;
  uint32_t grid[3], block[3]; /* workgroups, work-items per workgroup */
  uint32_t lds_bytes;         /* beyond what the kernel declares */
  uint32_t reserved;
} kw_simulator_launch;

/* Runs the kernel to its end: 0, or another number and the reason in text. */
typedef int (*kw_simulator_callback)(const kw_simulator_launch* launch, char* text, uint64_t text_bytes);

typedef struct module {
  struct module* next;
  int device;
  uint64_t bytes;
  unsigned char image[];
} module;

typedef struct function {
  struct function* next;
  const module* owner;
  char name[];
} function;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the three below */
static module* modules;
static function* functions;
static kw_simulator_callback callback;

static __thread int current;
static __thread int failed;
static __thread char text[TEXT_BYTES];

__attribute__((format(printf, 2, 3))) static int fail(int error, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return failed = error;
}

/* The ordinal of the device for the architecture `name`, which is made if it is not there; -1 if there is no room. */
EXPORT int kw_simulator_device(const char* name, const char* arch, uint32_t mach) {
  pthread_mutex_lock(&mutex);
  const int count = count_devices();
  int at = 0;
  while (at < count && strcmp(devices[at].name, name) != 0) ++at;
  if (at == MOST_DEVICES || strlen(name) >= NAME_BYTES || strlen(arch) >= NAME_BYTES) {
    at = -1;
  } else if (at == count) {
    strcpy(devices[at].name, name);
    strcpy(devices[at].arch, arch);
    devices[at].mach = mach;
    __atomic_store_n(&device_count, count + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  return at;
}

/* Who runs kernels from now on; null = nobody. */
EXPORT void kw_simulator_install(kw_simulator_callback runs) {
  pthread_mutex_lock(&mutex);
  callback = runs;
  pthread_mutex_unlock(&mutex);
}

EXPORT const char* hipGetErrorString(int error) {
  if (error == SUCCESS) return "no error";
  return error == failed ? text : "an error of another thread, or none of the simulator";
}

EXPORT int hipGetDeviceCount(int* count) {
  if (!count) return fail(INVALID_VALUE, "hipGetDeviceCount: the pointer is null");
  *count = count_devices();
  return SUCCESS;
}

EXPORT int hipGetDevice(int* ordinal) {
  if (!ordinal) return fail(INVALID_VALUE, "hipGetDevice: the pointer is null");
  *ordinal = current;
  return SUCCESS;
}

EXPORT int hipStreamGetDevice(void* stream, int* ordinal) {
  if (!ordinal) return fail(INVALID_VALUE, "hipStreamGetDevice: the pointer is null");
  if (stream) return fail(INVALID_HANDLE, "the simulator has no streams; launch on stream 0");
  *ordinal = current;
  return SUCCESS;
}

static int check_ordinal(int ordinal) {
  const int count = count_devices();
  if (ordinal >= 0 && ordinal < count) return SUCCESS;
  return fail(INVALID_DEVICE, "there is no simulated device %d; allowed: 0 to %d", ordinal, count - 1);
}

EXPORT int hipSetDevice(int ordinal) {
  const int error = check_ordinal(ordinal);
  if (!error) current = ordinal;
  return error;
}

EXPORT int hipGetDevicePropertiesR0600(void* properties, int ordinal) {
  if (!properties) return fail(INVALID_VALUE, "hipGetDeviceProperties: the pointer is null");
  const int error = check_ordinal(ordinal);
  if (error) return error;
  memset(properties, 0, PROPERTIES_BYTES);
  snprintf((char*)properties + NAME_AT, 256, "simulated %s", devices[ordinal].name);
  snprintf((char*)properties + ARCH_NAME_AT, 256, "%s", devices[ordinal].arch);
  return SUCCESS;
}

static void reach(uint64_t* end, uint64_t offset, uint64_t bytes) {
  if (offset + bytes > *end) *end = offset + bytes;
}

/* The file's length: HIP passes images without one, so it is where the last header, segment or section ends. */
static uint64_t image_bytes(const unsigned char* image) {
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)(const void*)image;
  uint64_t end = sizeof *header;
  reach(&end, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr));
  reach(&end, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr));
  const Elf64_Phdr* segments = (const Elf64_Phdr*)(const void*)(image + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; ++i) reach(&end, segments[i].p_offset, segments[i].p_filesz);
  const Elf64_Shdr* sections = (const Elf64_Shdr*)(const void*)(image + header->e_shoff);
  for (unsigned i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type != SHT_NOBITS) reach(&end, sections[i].sh_offset, sections[i].sh_size);
  return end;
}

static int check_image(const void* image) {
  const Elf64_Ehdr* header = image;
  if (!image) return fail(INVALID_VALUE, "hipModuleLoadData: the image is null");
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_machine != AMDGPU || (header->e_phnum && header->e_phentsize != sizeof(Elf64_Phdr)) ||
      (header->e_shnum && header->e_shentsize != sizeof(Elf64_Shdr)))
    return fail(INVALID_IMAGE, "the image is no AMD GPU code object");
  const uint32_t mach = header->e_flags & MACH_MASK;
  const int error = check_ordinal(current);
  if (error || mach == devices[current].mach) return error;
  const char* arch = "an architecture that is not simulated";
  for (int i = 0; i < count_devices(); ++i)
    if (devices[i].mach == mach) arch = devices[i].name;
  return fail(NO_BINARY_FOR_GPU, "the code object is for %s (0x%x), the simulated device %d is %s", arch, mach, current,
              devices[current].name);
}

EXPORT int hipModuleLoadData(void** result, const void* image) {
  if (!result) return fail(INVALID_VALUE, "hipModuleLoadData: the pointer is null");
  const int error = check_image(image);
  if (error) return error;
  const uint64_t bytes = image_bytes(image);
  module* made = malloc(sizeof *made + bytes);
  if (!made) return fail(OUT_OF_MEMORY, "no memory for a code object of %llu bytes", (unsigned long long)bytes);
  made->device = current;
  made->bytes = bytes;
  memcpy(made->image, image, bytes);
  pthread_mutex_lock(&mutex);
  made->next = modules;
  modules = made;
  pthread_mutex_unlock(&mutex);
  *result = made;
  return SUCCESS;
}

/* Under the mutex. */
static const module* find_module(const void* handle) {
  const module* at = modules;
  while (at && at != handle) at = at->next;
  return at;
}

/* Under the mutex. */
static const function* find_function(const void* handle) {
  const function* at = functions;
  while (at && at != handle) at = at->next;
  return at;
}

/* Whether a symbol table holds the kernel's descriptor, `<name>.kd`. */
static int has_kernel(const module* code, const char* name) {
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)(const void*)code->image;
  const Elf64_Shdr* sections = (const Elf64_Shdr*)(const void*)(code->image + header->e_shoff);
  const size_t length = strlen(name);
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const int is_table = sections[i].sh_type == SHT_DYNSYM || sections[i].sh_type == SHT_SYMTAB;
    if (!is_table || sections[i].sh_link >= header->e_shnum) continue;
    const Elf64_Shdr* strings = &sections[sections[i].sh_link];
    const Elf64_Sym* symbols = (const Elf64_Sym*)(const void*)(code->image + sections[i].sh_offset);
    for (uint64_t j = 0; j < sections[i].sh_size / sizeof *symbols; ++j) {
      if (symbols[j].st_name + length + 4 > strings->sh_size) continue;
      const char* symbol = (const char*)code->image + strings->sh_offset + symbols[j].st_name;
      if (strncmp(symbol, name, length) == 0 && strcmp(symbol + length, ".kd") == 0) return 1;
    }
  }
  return 0;
}

static int make_function(void** result, const module* owner, const char* name) {
  function* made = malloc(sizeof *made + strlen(name) + 1);
  if (!made) return fail(OUT_OF_MEMORY, "no memory for a kernel's handle");
  made->owner = owner;
  strcpy(made->name, name);
  pthread_mutex_lock(&mutex);
  made->next = functions;
  functions = made;
  pthread_mutex_unlock(&mutex);
  *result = made;
  return SUCCESS;
}

EXPORT int hipModuleGetFunction(void** result, void* handle, const char* name) {
  if (!result || !name) return fail(INVALID_VALUE, "hipModuleGetFunction: a pointer is null");
  pthread_mutex_lock(&mutex);
  const module* owner = find_module(handle);
  pthread_mutex_unlock(&mutex);
  if (!owner) return fail(INVALID_HANDLE, "hipModuleGetFunction: the handle is no module of this runtime");
  if (!has_kernel(owner, name)) return fail(NOT_FOUND, "the code object has no kernel %s", name);
  return make_function(result, owner, name);
}

static int check_shape(const uint32_t grid[3], const uint32_t block[3]) {
  uint64_t items = 1;
  for (int i = 0; i < 3; ++i) {
    if (!grid[i] || !block[i])
      return fail(INVALID_CONFIGURATION, "a grid of %ux%ux%u workgroups of %ux%ux%u work-items is empty", grid[0],
                  grid[1], grid[2], block[0], block[1], block[2]);
    if (block[i] <= MAX_WORKITEMS) items *= block[i];
    if (block[i] > MAX_WORKITEMS || items > MAX_WORKITEMS)
      return fail(INVALID_CONFIGURATION, "a workgroup of %ux%ux%u work-items has more than %u", block[0], block[1],
                  block[2], MAX_WORKITEMS);
    if ((uint64_t)grid[i] * block[i] > UINT32_MAX)
      return fail(INVALID_CONFIGURATION, "%u workgroups of %u work-items are 2^32 or more work-items", grid[i],
                  block[i]);
  }
  return SUCCESS;
}

/* {HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END} */
static int read_extra(void** arguments, void** extra, kw_simulator_launch* launch) {
  if (arguments || !extra)
    return fail(INVALID_VALUE, "arguments must be given as one buffer, in extra; kernelParams must be null");
  if (extra[0] != (void*)1 || !extra[1] || extra[2] != (void*)2 || !extra[3] || extra[4] != (void*)3)
    return fail(INVALID_VALUE, "extra is not a list of buffer pointer, buffer size and end");
  launch->arguments = extra[1];
  launch->argument_bytes = *(const size_t*)extra[3];
  return SUCCESS;
}

static int check_function(void* handle, const function** kernel, kw_simulator_callback* runs) {
  pthread_mutex_lock(&mutex);
  *kernel = find_function(handle);
  *runs = callback;
  pthread_mutex_unlock(&mutex);
  if (!*kernel) return fail(INVALID_HANDLE, "hipModuleLaunchKernel: the handle is no kernel of this runtime");
  const int owner = (*kernel)->owner->device;
  if (owner != current)
    return fail(INVALID_DEVICE, "the kernel was loaded for device %d (%s), the current device is %d (%s)", owner,
                devices[owner].arch, current, devices[current].arch);
  if (!*runs)
    return fail(NOT_INITIALIZED, "no simulator is installed; launch through kernelwright.dispatch on a device sim:%s",
                devices[current].arch);
  return SUCCESS;
}

EXPORT int hipModuleLaunchKernel(void* handle, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                                 uint32_t block_y, uint32_t block_z, uint32_t lds_bytes, void* stream, void** arguments,
                                 void** extra) {
  const function* kernel = NULL;
  kw_simulator_callback runs = NULL;
  kw_simulator_launch launch = {.struct_size = sizeof launch,
                                .device = current,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .lds_bytes = lds_bytes};
  int error = check_function(handle, &kernel, &runs);
  if (!error) error = check_shape(launch.grid, launch.block);
  if (!error) error = read_extra(arguments, extra, &launch);
  if (!error && stream) error = fail(INVALID_HANDLE, "the simulator has no streams; launch on stream 0");
  if (error) return error;
  launch.image = kernel->owner->image;
  launch.image_bytes = kernel->owner->bytes;
  launch.kernel = kernel->name;
  char reason[TEXT_BYTES] = "";
  if (runs(&launch, reason, sizeof reason) == 0) return SUCCESS;
  reason[sizeof reason - 1] = '\0';
  return fail(LAUNCH_FAILURE, "%s", *reason ? reason : "the simulator gave no reason");
}
