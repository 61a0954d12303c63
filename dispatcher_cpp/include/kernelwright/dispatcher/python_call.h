/* A launch as CPython calls it: for the Python bindings, which would otherwise convert arguments on every call.
 *
 * kw_python_call is the ml_meth of a PyMethodDef with METH_NOARGS. Its self is a tuple that begins with the address of
 * a kw_bound_call, as an int, and keeps alive what that refers to. Python's own functions come as pointers, so that
 * this library needs no Python. PyObject is void here. */
#ifndef KERNELWRIGHT_DISPATCHER_PYTHON_CALL_H
#define KERNELWRIGHT_DISPATCHER_PYTHON_CALL_H

#include <stddef.h>

#include "kernelwright/dispatcher.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All of Python's stable ABI. */
typedef struct kw_python_functions {
  void* (*tuple_item)(void* tuple, ptrdiff_t index); /* PyTuple_GetItem */
  void* (*as_pointer)(void* number);                 /* PyLong_AsVoidPtr */
  void (*retain)(void* object);                      /* Py_IncRef */
  void* (*call)(void* callable, void* arguments);    /* PyObject_CallObject */
  void* (*release_interpreter)(void);                /* PyEval_SaveThread */
  void (*acquire_interpreter)(void* state);          /* PyEval_RestoreThread */
} kw_python_functions;

typedef struct kw_bound_call {
  const kw_plan* plan;
  const kw_launch* launch;
  const void* args;
  void* result; /* what a call returns */
  void* failed; /* called without arguments after a launch that failed; raises */
  kw_status status;
  uint32_t keep_interpreter; /* 1 = over so soon that other Python threads can wait */
} kw_bound_call;

/* Before the first call; the same functions every time. */
KW_EXPORT void kw_python_use(const kw_python_functions* functions);
KW_EXPORT void* kw_python_call(void* self, void* unused);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_PYTHON_CALL_H */
