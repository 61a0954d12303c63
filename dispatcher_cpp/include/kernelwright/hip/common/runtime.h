/* What the host side of every AMD kernel shares: code objects, launches, errors.
 *
 * The HIP runtime is opened on the first launch or device check, so a library loads, and `supports` and `plan` work, on
 * a machine without ROCm. Nothing is allocated here; code objects are loaded once per device and stay loaded.
 */
#ifndef KERNELWRIGHT_HIP_COMMON_RUNTIME_H
#define KERNELWRIGHT_HIP_COMMON_RUNTIME_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KW_HIP_MAX_DEVICES 64

/* An embedded code object, its kernel and its facts. */
typedef struct kw_hip_code {
  const unsigned char* image;
  const unsigned char* image_end;
  const char* function;
  const char* facts; /* the symbol of a struct of constants that only the device compiler knows */
  void** functions;  /* KW_HIP_MAX_DEVICES handles, null until the code object is loaded on that device */
} kw_hip_code;

/* Copies the facts out of the code object. 0 if it has no such symbol of exactly `bytes` bytes. */
KW_HIDDEN int kw_hip_read_facts(const kw_hip_code* code, void* facts, size_t bytes);

/* Launches the kernel of a code object on the device and stream of `where`, with
 * `bytes` of kernel arguments; grid counts workgroups, block work-items. The thread's current device stays what it is.
 */
KW_HIDDEN kw_status kw_hip_launch(const kw_hip_code* code, const kw_launch* where, uint32_t grid, uint32_t block,
                                  void* arguments, size_t bytes);
/* The same of a grid with three extents. */
KW_HIDDEN kw_status kw_hip_launch_grid(const kw_hip_code* code, const kw_launch* where, const uint32_t* grid,
                                       uint32_t block, void* arguments, size_t bytes);
/* Stores the text for kw_backend_last_error of this thread and returns the status. */
KW_HIDDEN kw_status kw_hip_fail(kw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));
KW_HIDDEN kw_status kw_backend_check_device(int32_t device, char* reason, size_t reason_bytes);
KW_HIDDEN const char* kw_backend_last_error(void);
KW_HIDDEN kw_status kw_backend_set_num_threads(uint32_t threads);
KW_HIDDEN kw_status kw_backend_set_runtime(const char* path);

#ifdef __cplusplus
}
#endif
#endif
