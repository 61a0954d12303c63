/* A stand-in for libamdhip64: two devices that write down what they are asked to load and launch.
 *
 * Streams are 0x1000 * (1 + device) + any number below 0x1000.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define GCN_ARCH_NAME_AT 1160 /* offset of gcnArchName in hipDeviceProp_tR0600 */

typedef struct record {
  uint32_t loads, launches;
  uint32_t machine, flags; /* of the last loaded ELF image */
  uint32_t grid[3], block[3], lds_bytes;
  uint32_t argument_bytes;
  uint32_t load_device, launch_device; /* that were current */
  void* stream;
  char function[128];
  unsigned char arguments[256];
} record;

EXPORT record fake_hip_record;
EXPORT int fake_hip_fail_launch;
EXPORT int fake_hip_devices = 2;
EXPORT int fake_hip_stream_calls; /* of all threads */
static _Thread_local int device;

EXPORT int hipSetDevice(int ordinal) {
  if (ordinal < 0 || ordinal > 1) return 101;
  device = ordinal;
  return 0;
}

EXPORT int hipGetDevice(int* current) {
  *current = device;
  return 0;
}

EXPORT int hipGetDeviceCount(int* count) {
  *count = fake_hip_devices;
  return 0;
}

EXPORT int hipStreamGetDevice(void* stream, int* owner) {
  const uintptr_t number = (uintptr_t)stream >> 12;
  __atomic_add_fetch(&fake_hip_stream_calls, 1, __ATOMIC_SEQ_CST);
  if (number < 1 || number > 2) return 400; /* hipErrorInvalidHandle */
  *owner = (int)number - 1;
  return 0;
}

EXPORT const char* hipGetErrorString(int error) { return error == 101 ? "invalid device ordinal" : "made-up error"; }

EXPORT int hipGetDevicePropertiesR0600(void* properties, int ordinal) {
  const char* arch = getenv("FAKE_HIP_ARCH");
  if (ordinal < 0 || ordinal > 1) return 101;
  memset(properties, 0, 1472);
  strcpy((char*)properties, "gfx name that is no architecture");
  strcpy((char*)properties + GCN_ARCH_NAME_AT, arch ? arch : "gfx942:sramecc+:xnack-");
  return 0;
}

EXPORT int hipModuleLoadData(void** module, const void* image) {
  const Elf64_Ehdr* header = image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 1;
  fake_hip_record.loads++;
  fake_hip_record.load_device = (uint32_t)device;
  fake_hip_record.machine = header->e_machine;
  fake_hip_record.flags = header->e_flags;
  *module = (void*)(uintptr_t)(0x10 + device);
  return 0;
}

EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  if (module != (void*)(uintptr_t)(0x10 + device) || strlen(name) >= sizeof fake_hip_record.function) return 2;
  strcpy(fake_hip_record.function, name);
  *function = (void*)(uintptr_t)(0x20 + device);
  return 0;
}

EXPORT int hipModuleLaunchKernel(void* function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                 uint32_t bz, uint32_t lds_bytes, void* stream, void** arguments, void** extra) {
  if (fake_hip_fail_launch) return fake_hip_fail_launch;
  /* {HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END} */
  if (function != (void*)(uintptr_t)(0x20 + device) || arguments || extra[0] != (void*)1 || extra[2] != (void*)2 ||
      extra[4] != (void*)3)
    return 3;
  const size_t bytes = *(const size_t*)extra[3];
  if (bytes > sizeof fake_hip_record.arguments) return 4;
  record* r = &fake_hip_record;
  r->launches++;
  r->launch_device = (uint32_t)device;
  r->grid[0] = gx, r->grid[1] = gy, r->grid[2] = gz;
  r->block[0] = bx, r->block[1] = by, r->block[2] = bz;
  r->lds_bytes = lds_bytes;
  r->argument_bytes = (uint32_t)bytes;
  r->stream = stream;
  memcpy(r->arguments, extra[1], bytes);
  return 0;
}
