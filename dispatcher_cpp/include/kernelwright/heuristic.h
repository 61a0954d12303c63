/* A compiled selection model: what its shared library exports.
 *
 * C99. `score` is a provider for kw_dispatcher_set_selection (KW_SELECT_CALLBACK); `user` is null or a uint32_t with
 * the compute units of the device. It leaves problems that the model was not trained on to the predicted times.
 */
#ifndef KERNELWRIGHT_HEURISTIC_H
#define KERNELWRIGHT_HEURISTIC_H

#include "kernelwright/dispatcher.h"

#define KW_HEURISTIC_VERSION 1u

#define KW_HEURISTIC_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kw_heuristic {
  uint32_t struct_size;
  uint32_t version; /* KW_HEURISTIC_VERSION */
  const char* name;
  const char* arch;
  const char* schema; /* sha256 of the features that it was trained on */
  const char* sha256; /* of the model */
  kw_score_fn score;
} kw_heuristic;

/* The table of a kernel library that brings models: dispatchers ask them in this order (KW_SELECT_AUTO).
 * base.struct_size is that of the whole, which is how a dispatcher knows.
 */
typedef struct kw_library_models {
  kw_library base;
  const kw_heuristic* const* heuristics;
  uint64_t heuristic_count;
} kw_library_models;

/* The one symbol of a library of one model. */
KW_HEURISTIC_EXPORT const kw_heuristic* kw_heuristic_entry(void);

#ifdef __cplusplus
}
#endif

#endif /* KERNELWRIGHT_HEURISTIC_H */
