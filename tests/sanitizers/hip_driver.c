/* Drives the simulator's stand-in HIP runtime: right and wrong uses in one thread, then launches of many threads. */
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hipGetDeviceCount(int* count);
int hipSetDevice(int ordinal);
int hipGetDevice(int* ordinal);
int hipGetDevicePropertiesR0600(void* properties, int ordinal);
const char* hipGetErrorString(int error);
int hipModuleLoadData(void** module, const void* image);
int hipModuleGetFunction(void** function, void* module, const char* name);
int hipModuleLaunchKernel(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                          uint32_t block_y, uint32_t block_z, uint32_t lds_bytes, void* stream, void** arguments,
                          void** extra);
void kw_simulator_install(int (*runs)(const void* launch, char* text, uint64_t text_bytes));

#define REQUIRE(condition)                                                          \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

enum { THREADS = 8, LAUNCHES = 200, DEVICES = 5 };

static atomic_int ran;

static int count_up(const void* launch, char* text, uint64_t text_bytes) {
  (void)launch;
  if (atomic_fetch_add(&ran, 1) % 7 != 3) return 0;
  memset(text, 'x', text_bytes); /* without an end: the runtime must put one */
  return 1;
}

/* A code object in a block of exactly its size, with one kernel named "k". */
static unsigned char* make_image(uint32_t machine) {
  static const char names[] = "\0k.kd";
  const Elf64_Sym symbols[2] = {{0}, {.st_name = 1}};
  Elf64_Ehdr header = {.e_machine = 224, .e_flags = 0x500u | machine, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3};
  Elf64_Shdr sections[3] = {{0}};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  sections[1].sh_type = SHT_DYNSYM;
  sections[1].sh_link = 2;
  sections[1].sh_offset = sizeof header + sizeof sections;
  sections[1].sh_size = sizeof symbols;
  sections[2].sh_type = SHT_STRTAB;
  sections[2].sh_offset = sections[1].sh_offset + sizeof symbols;
  sections[2].sh_size = sizeof names;
  unsigned char* image = malloc(sections[2].sh_offset + sizeof names);
  REQUIRE(image);
  memcpy(image, &header, sizeof header);
  memcpy(image + header.e_shoff, sections, sizeof sections);
  memcpy(image + sections[1].sh_offset, symbols, sizeof symbols);
  memcpy(image + sections[2].sh_offset, names, sizeof names);
  return image;
}

static int launch(void* function, uint32_t grid, uint32_t block) {
  size_t bytes = 8;
  uint64_t argument = 0;
  void* extra[5] = {(void*)1, &argument, (void*)2, &bytes, (void*)3};
  return hipModuleLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, NULL, NULL, extra);
}

static void use_wrongly(void) {
  unsigned char* image = make_image(0x4c);
  void *module = NULL, *function = NULL;
  REQUIRE(hipGetDeviceCount(NULL) && hipGetDevice(NULL) && hipSetDevice(-1) && hipSetDevice(DEVICES));
  REQUIRE(hipGetDevicePropertiesR0600(NULL, 0));
  REQUIRE(hipModuleLoadData(&module, NULL) && hipModuleLoadData(NULL, image));
  REQUIRE(hipSetDevice(0) == 0 && hipModuleLoadData(&module, image)); /* of another architecture */
  REQUIRE(hipSetDevice(1) == 0 && hipModuleLoadData(&module, image) == 0);
  free(image);
  REQUIRE(hipModuleGetFunction(&function, module, "kk") && hipModuleGetFunction(&function, module, ""));
  REQUIRE(hipModuleGetFunction(&function, &function, "k") && hipModuleGetFunction(&function, module, NULL));
  REQUIRE(hipModuleGetFunction(&function, module, "k") == 0);
  REQUIRE(launch(&function, 1, 1) && launch(NULL, 1, 1));
  REQUIRE(launch(function, 1, 1)); /* nobody runs kernels yet */
  REQUIRE(strstr(hipGetErrorString(launch(function, 1, 64)), "no simulator"));
  kw_simulator_install(count_up);
  REQUIRE(launch(function, 0, 1) && launch(function, 1, 1025) && launch(function, UINT32_MAX, 1024));
  REQUIRE(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  REQUIRE(launch(function, 1, 64) == 0);
}

static void* work(void* index) {
  static const uint32_t machines[DEVICES] = {0x3f, 0x4c, 0x4f, 0x41, 0x4e};
  const int device = (int)((intptr_t)index % DEVICES);
  unsigned char* image = make_image(machines[device]);
  char* properties = malloc(1472);
  REQUIRE(properties);
  for (int i = 0; i < LAUNCHES; ++i) {
    void *module = NULL, *function = NULL;
    int count = 0, current = -1;
    REQUIRE(hipGetDeviceCount(&count) == 0 && count == DEVICES && hipSetDevice(device) == 0);
    REQUIRE(hipGetDevice(&current) == 0 && current == device);
    REQUIRE(hipGetDevicePropertiesR0600(properties, device) == 0);
    REQUIRE(hipModuleLoadData(&module, image) == 0 && hipModuleGetFunction(&function, module, "k") == 0);
    const int status = launch(function, 3, 256);
    REQUIRE(status == 0 || strlen(hipGetErrorString(status)) > 1000);
  }
  free(properties);
  free(image);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  use_wrongly();
  for (intptr_t i = 0; i < THREADS; ++i) REQUIRE(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (int i = 0; i < THREADS; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  REQUIRE(atomic_load(&ran) == 1 + THREADS * LAUNCHES);
  puts("simulator runtime: passed");
  return 0;
}
