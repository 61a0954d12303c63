#include "kernelwright/dispatcher/loading/pinned.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"
#include "kernelwright/dispatcher/support/vec.hpp"

namespace kernelwright {
namespace {

struct Mapped {
  uint64_t device, inode;
  int descriptor;
};

// Files that were mapped. The dynamic linker takes a file for one that it has mapped if the name or the inode is the
// same; so a descriptor whose number is part of a name must never name another file.
Mutex mutex;
Vec<Mapped> mapped;

}  // namespace

PinnedFile::~PinnedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

kw_status PinnedFile::open(const char* path) {
  descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return fail(KW_LOAD_FAILED, "%s: cannot be opened: %s", path, strerror(errno));
  struct stat status;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(KW_LOAD_FAILED, "%s: is not a regular file", path);
  }
  size_ = static_cast<uint64_t>(status.st_size);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return KW_OK;
}

bool PinnedFile::read(void* target, size_t bytes, uint64_t offset) const {
  char* at = static_cast<char*>(target);
  while (bytes != 0) {
    const ssize_t got = pread(descriptor_, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, bytes -= static_cast<size_t>(got), offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool PinnedFile::sha256(char (&hex)[Sha256::kHexBytes]) const {
  Sha256 hash;
  char part[16384];
  for (uint64_t offset = 0; offset < size_; offset += sizeof part) {
    const size_t bytes = size_ - offset < sizeof part ? static_cast<size_t>(size_ - offset) : sizeof part;
    if (!read(part, bytes, offset)) return false;
    hash.update(part, bytes);
  }
  hash.finish(hex);
  return true;
}

void* PinnedFile::load() {
  const Lock lock(mutex);
  int named = descriptor_, highest = 2;
  bool known = false, taken = false;
  for (const Mapped& file : mapped) {
    if (file.device == device_ && file.inode == inode_) named = file.descriptor, known = true;
    taken = taken || file.descriptor == descriptor_;
    highest = file.descriptor > highest ? file.descriptor : highest;
  }
  if (!known && taken) {  // somebody closed the other one, whose number still names its file
    named = fcntl(descriptor_, F_DUPFD_CLOEXEC, highest + 1);
    if (named < 0) return nullptr;
    close(descriptor_);
    descriptor_ = named;
  }
  if (!known && !mapped.reserve(mapped.size() + 1)) return nullptr;
  // Not /proc/self: so Python names what it loads, and if a program closes descriptors their numbers return.
  snprintf(name_, sizeof name_, "/proc/thread-self/fd/%d", named);
  void* handle = dlopen(name_, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr && !known) {
    if (mapped.push({device_, inode_, named})) descriptor_ = -1;  // there is room
  }
  return handle;
}

}  // namespace kernelwright
