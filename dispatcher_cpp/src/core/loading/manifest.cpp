#include "kernelwright/dispatcher/loading/manifest.hpp"

#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/loading/json.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {
namespace {

constexpr char kName[] = "manifest.json";
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// The file's text, for which the caller calls free().
kw_status read_text(const char* path, char** text, size_t* bytes) {
  PinnedFile file;
  if (kw_status status = file.open(path)) {
    Text why;
    why.add(kw_last_error());
    return fail(status, "%s; a library is loaded through the manifest beside it, or with KW_DIGEST_UNCHECKED",
                why.c_str());
  }
  if (file.size() == 0 || file.size() > kMostBytes) {
    return fail(KW_LOAD_FAILED, "%s: has %llu bytes; allowed: 1 to %llu", path,
                static_cast<unsigned long long>(file.size()), static_cast<unsigned long long>(kMostBytes));
  }
  *bytes = static_cast<size_t>(file.size());
  *text = static_cast<char*>(malloc(*bytes));
  if (*text == nullptr) return fail(KW_OUT_OF_MEMORY, "%s: no memory for %zu bytes", path, *bytes);
  return file.read(*text, *bytes, 0) ? KW_OK : fail(KW_LOAD_FAILED, "%s: cannot be read", path);
}

bool is_digest(const JsonText& text) {
  if (text.bytes != Sha256::kHexBytes - 1) return false;
  for (size_t i = 0; i < text.bytes; ++i) {
    if (strchr("0123456789abcdef", text.begin[i]) == nullptr || text.begin[i] == '\0') return false;
  }
  return true;
}

bool is(const JsonText& text, const char* wanted) {
  return text.bytes == strlen(wanted) && memcmp(text.begin, wanted, text.bytes) == 0;
}

kw_status compare(const char* manifest, const char* text, size_t bytes, const char* name, PinnedFile& file) {
  JsonMember wanted[] = {{"schema_version", {}}, {"library", {}}, {"sha256", {}}};
  if (const char* why = read_json_object(text, bytes, wanted, 3)) {
    return fail(KW_LOAD_FAILED, "%s: cannot be read as a manifest: %s", manifest, why);
  }
  for (const JsonMember& member : wanted) {
    if (member.value.begin == nullptr) return fail(KW_LOAD_FAILED, "%s: %s is missing", manifest, member.key);
  }
  if (!is(wanted[0].value, "1")) {
    return fail(KW_LOAD_FAILED, "%s: schema_version is %.*s; allowed: 1", manifest,
                static_cast<int>(wanted[0].value.shown()), wanted[0].value.begin);
  }
  const JsonText library = wanted[1].value.inside(), digest = wanted[2].value.inside();
  if (library.begin == nullptr || !is(library, name)) {
    return fail(KW_LOAD_FAILED, "%s: describes %.*s, not %s; keep each library in a folder with its own manifest",
                manifest, static_cast<int>(wanted[1].value.shown()), wanted[1].value.begin, name);
  }
  if (digest.begin == nullptr || !is_digest(digest)) {
    return fail(KW_LOAD_FAILED, "%s: sha256 is %.*s; allowed: 64 hex digits", manifest,
                static_cast<int>(wanted[2].value.shown()), wanted[2].value.begin);
  }
  char hex[Sha256::kHexBytes];
  if (!file.sha256(hex)) return fail(KW_LOAD_FAILED, "%s: %s beside it cannot be read", manifest, name);
  if (is(digest, hex)) return KW_OK;
  return fail(KW_LOAD_FAILED, "%s: %s beside it has sha256 %s, the manifest says %.*s; copy or build both again",
              manifest, name, hex, static_cast<int>(digest.bytes), digest.begin);
}

}  // namespace

kw_status check_manifest(const char* path, PinnedFile& file) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  Text manifest;
  for (const char* at = path; at < name; ++at) manifest.add(*at);
  manifest.add(kName);
  if (manifest.failed()) return fail(KW_OUT_OF_MEMORY, "%s: no memory for its path", path);
  char* text = nullptr;
  size_t bytes = 0;
  kw_status status = read_text(manifest.c_str(), &text, &bytes);
  if (status == KW_OK) status = compare(manifest.c_str(), text, bytes, name, file);
  free(text);
  return status;
}

}  // namespace kernelwright
