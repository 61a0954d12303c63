// What the familiar functions of an operation work on between init and cleanup, and how they launch.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_SESSION_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_SESSION_HPP

#include <pthread.h>
#include <stdlib.h>

#include "kernelwright/dispatcher/compat/kernel_files.hpp"
#include "kernelwright/dispatcher/compat/memory.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"

namespace kernelwright {

// Where an operation's kernel libraries are, unless the caller says.
struct Places {
  const char* variable;   // of the environment: files and folders, separated by colons
  const char* beside;     // a folder beside this file
  const char* installed;  // of wheels, seen from the folder of this file
};

// The kernels of one device.
struct Target {
  int32_t device;
  kw_dispatcher* dispatcher;
};

struct Session {
  Libraries libraries;
  Memory memory;
  Target first{};  // of the device that was current in open()
  char* json = nullptr;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Loads libraries and writes json. kernels: as the variable of places; null leaves them to places.
  kw_status open(const char* kernels, const Places& places);
  // The device that is current in the calling thread, with its kernels.
  kw_status here(Target* target);

 private:
  kw_status load(const char* kernels, const Places& places);
  Mutex mutex_;  // of the others
  Vec<Target> others_;
};

// The argument, else the variable of the environment; null where neither says anything.
const char* given(const char* argument, const char* variable);

// The one State of a library. Calls hold it for reading, so that cleaning up waits for them.
template <class State>
class Slot {
 public:
  // Fills a new State unless there is one.
  template <class Fill>
  kw_status init(Fill fill) {
    pthread_rwlock_wrlock(&lock_);
    kw_status status = KW_OK;
    if (state_ == nullptr) {
      State* state = make_object<State>();
      status = state == nullptr ? fail(KW_OUT_OF_MEMORY, "no memory") : fill(state);
      if (status == KW_OK) {
        state_ = state;
        fail(KW_OK, "%s", "");  // asking for a size left a sentence
      } else {
        destroy_object(state);
      }
    }
    pthread_rwlock_unlock(&lock_);
    return status;
  }
  void cleanup() {
    pthread_rwlock_wrlock(&lock_);
    destroy_object(state_);
    state_ = nullptr;
    pthread_rwlock_unlock(&lock_);
  }

  class Reading {
   public:
    explicit Reading(Slot& slot) : slot_(slot) { pthread_rwlock_rdlock(&slot_.lock_); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { pthread_rwlock_unlock(&slot_.lock_); }
    // Null before init.
    State* get() const { return slot_.state_; }
    // Null, with the reason left for the function that tells the last error, before init.
    State* state(const char* init) const {
      if (slot_.state_ == nullptr) fail(KW_INVALID_ARGUMENT, "not initialised; call %s() first", init);
      return slot_.state_;
    }

   private:
    Slot& slot_;
  };

 private:
  pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
  State* state_ = nullptr;
};

// The plan of a problem: the dispatcher's, or one of our own where its cache is full or, for groups, keeps none.
class Planned {
 public:
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() { kw_plan_destroy(own_); }

  kw_status make(const Target& target, const kw_problem& problem, bool cached = true);
  const kw_plan* get() const { return plan_; }
  // The name of the first stage's kernel.
  kw_status write_name(char* name, int bytes) const;

 private:
  const kw_plan* plan_ = nullptr;
  kw_plan* own_ = nullptr;
};

// A plan and its place, and what of a launch does not depend on where operands are.
struct Run {
  const Memory& memory;
  const kw_plan* plan;
  kw_launch where;
};

// Launches and waits. With time_ms, launches again for about 100 ms, at least 1 and at most 10 times, and writes their
// average.
kw_status launch(const Run& run, const void* args, float* time_ms);
// The name of the kernel that launch() ran last in the calling thread; null before. Libraries stay mapped.
const char* last_kernel();

// KW_BUFFER_TOO_SMALL where text and its zero do not fit.
kw_status write_name(const char* text, char* name, int bytes);
// The name of a kernel by its index; KW_INVALID_ARGUMENT for one out of range, such as a negative one.
kw_status write_kernel_name(const Session& session, int index, char* name, int bytes);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_SESSION_HPP
