/* The three functions that a library table names; defined in runtime.c. */
#ifndef TILEWRIGHT_CUDA_LIBRARY_H
#define TILEWRIGHT_CUDA_LIBRARY_H
#include "tilewright/cuda/runtime.h"
#endif /* TILEWRIGHT_CUDA_LIBRARY_H */
