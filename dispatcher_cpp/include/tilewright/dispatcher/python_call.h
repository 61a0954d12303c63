/* A launch as CPython calls it: for the Python bindings, which would otherwise convert arguments on every call.
 *
 * tw_python_call is the ml_meth of a PyMethodDef with METH_NOARGS. Its self is a tuple that begins with the address of
 * a tw_bound_call, as an int, and keeps alive what that refers to. Python's own functions come as pointers, so that
 * this library needs no Python. PyObject is void here. */
#ifndef TILEWRIGHT_DISPATCHER_PYTHON_CALL_H
#define TILEWRIGHT_DISPATCHER_PYTHON_CALL_H

#include <stddef.h>

#include "tilewright/dispatcher.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All of Python's stable ABI. */
typedef struct tw_python_functions {
  void* (*tuple_item)(void* tuple, ptrdiff_t index); /* PyTuple_GetItem */
  void* (*as_pointer)(void* number);                 /* PyLong_AsVoidPtr */
  void (*retain)(void* object);                      /* Py_IncRef */
  void* (*call)(void* callable, void* arguments);    /* PyObject_CallObject */
  void* (*release_interpreter)(void);                /* PyEval_SaveThread */
  void (*acquire_interpreter)(void* state);          /* PyEval_RestoreThread */
} tw_python_functions;

typedef struct tw_bound_call {
  const tw_plan* plan;
  const void* args;
  void* result; /* what a call returns */
  void* failed; /* called without arguments after a launch that failed; raises */
  tw_status status;
  uint32_t keep_interpreter; /* 1 = over so soon that other Python threads can wait */
} tw_bound_call;

/* Before the first call; the same functions every time. */
TW_EXPORT void tw_python_use(const tw_python_functions* functions);
TW_EXPORT void* tw_python_call(void* self, void* unused);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_DISPATCHER_PYTHON_CALL_H */
