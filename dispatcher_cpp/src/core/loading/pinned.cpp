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
  char hex[Sha256::kHexBytes];  // of the contents that were mapped; empty: they were not compared with a manifest
};

// Files that were mapped. The dynamic linker takes a file for one that it has mapped if the name or the inode is the
// same; so a descriptor whose number is part of a name must never name another file.
Mutex mutex;
Vec<Mapped> mapped;

constexpr char kOverwritten[] =
    "%s: this process loaded the file before, and it was overwritten since; start the process "
    "anew, and put another file in place of a library (rename, install) instead of writing into it";
constexpr char kWritten[] =
    "%s: was written into while it was loaded; load it again, and put another file in place of a "
    "library (rename, install) instead of writing into it";

FileStamp stamp_of(const struct stat& status) {
  constexpr int64_t kSecond = 1000000000;
  return {static_cast<uint64_t>(status.st_size), status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec};
}

bool is_mapped(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

kw_status load_failed(const char* path) {
  const char* why = dlerror();
  return fail(KW_LOAD_FAILED, "%s: %s", path, why == nullptr ? "no memory or descriptor" : why);
}

}  // namespace

PinnedFile::~PinnedFile() {
  if (descriptor_ >= 0 && !is_kept_) close(descriptor_);
}

kw_status PinnedFile::open(const char* path) {
  descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return fail(KW_LOAD_FAILED, "%s: cannot be opened: %s", path, strerror(errno));
  struct stat status;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(KW_LOAD_FAILED, "%s: is not a regular file", path);
  }
  stamp_ = stamp_of(status);
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

bool PinnedFile::sha256(char (&hex)[Sha256::kHexBytes]) {
  if (!hash(hex)) return false;
  memcpy(hex_, hex, sizeof hex_);
  return true;
}

bool PinnedFile::hash(char (&hex)[Sha256::kHexBytes]) const {
  Sha256 hash;
  char part[16384];
  for (uint64_t offset = 0; offset < size(); offset += sizeof part) {
    const size_t bytes = size() - offset < sizeof part ? static_cast<size_t>(size() - offset) : sizeof part;
    if (!read(part, bytes, offset)) return false;
    hash.update(part, bytes);
  }
  hash.finish(hex);
  return true;
}

// A hard link or another mode changes the stamp too, but not the time of the last writing.
bool PinnedFile::still_holds_what_was_hashed() {
  struct stat status;
  if (fstat(descriptor_, &status) != 0) return false;
  const FileStamp now = stamp_of(status);
  if (hex_[0] == '\0' || now == stamp_) return true;
  if (now.bytes != stamp_.bytes || now.modified_ns != stamp_.modified_ns) return false;
  stamp_ = now;
  char actual[Sha256::kHexBytes];
  return hash(actual) && memcmp(actual, hex_, sizeof actual) == 0;
}

kw_status PinnedFile::load(const char* path, void** handle) {
  const Lock lock(mutex);
  if (!still_holds_what_was_hashed()) return fail(KW_LOAD_FAILED, kWritten, path);
  int named = descriptor_, highest = 2;
  bool taken = false;
  Mapped* known = nullptr;
  for (Mapped& file : mapped) {
    if (file.device == device_ && file.inode == inode_) named = file.descriptor, known = &file;
    taken = taken || file.descriptor == descriptor_;
    highest = file.descriptor > highest ? file.descriptor : highest;
  }
  if (known == nullptr && taken) {  // somebody closed the other one, whose number still names its file
    named = fcntl(descriptor_, F_DUPFD_CLOEXEC, highest + 1);
    if (named < 0) return fail(KW_LOAD_FAILED, "%s: %s", path, strerror(errno));
    close(descriptor_);
    descriptor_ = named;
  }
  if (known == nullptr && !mapped.reserve(mapped.size() + 1)) return fail(KW_OUT_OF_MEMORY, "%s: no memory", path);
  // Not /proc/self: so Python names what it loads, and if a program closes descriptors their numbers return.
  snprintf(name_, sizeof name_, "/proc/thread-self/fd/%d", named);
  const bool was_mapped = known != nullptr && is_mapped(name_);
  if (was_mapped && hex_[0] != '\0' && known->hex[0] != '\0' && memcmp(hex_, known->hex, sizeof hex_) != 0) {
    return fail(KW_LOAD_FAILED, kOverwritten, path);
  }
  *handle = dlopen(name_, RTLD_NOW | RTLD_LOCAL);
  if (*handle == nullptr) return load_failed(path);
  if (known == nullptr && mapped.push({device_, inode_, named, ""})) {  // there is room
    known = &mapped[mapped.size() - 1];
    is_kept_ = true;
  }
  if (was_mapped) return KW_OK;
  memcpy(known->hex, hex_, sizeof known->hex);
  if (still_holds_what_was_hashed()) return KW_OK;
  dlclose(*handle);
  return fail(KW_LOAD_FAILED, kWritten, path);
}

}  // namespace kernelwright
