// A library's file is compared with the manifest beside it, and the very file that was compared is loaded.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/loading/json.hpp"
#include "kernelwright/dispatcher/loading/sha256.hpp"

namespace {

std::string sha256(const std::string& text, size_t step) {
  kernelwright::Sha256 hash;
  for (size_t at = 0; at < text.size(); at += step) hash.update(&text[at], std::min(step, text.size() - at));
  char hex[kernelwright::Sha256::kHexBytes];
  hash.finish(hex);
  return hex;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& text) {
  unlink(path.c_str());  // not into a file that this process has mapped
  std::ofstream(path, std::ios::binary) << text;
}

std::string manifest(const std::string& library, const std::string& digest) {
  return R"({"kernels": [{"sha256": "of a kernel", "spec": {"tile": [1, -2.5e3]}}], "schema_version": 1, "library": ")" +
         library + R"(", "sha256": ")" + digest + "\", \"note\": \"\\u00e9 \\\"\"}\n";
}

// A folder with libgood.so and its manifest.
struct Packaged {
  std::string path, library, text;
  Packaged() {
    char name[] = "/tmp/kernelwright-loading-XXXXXX";
    CHECK(mkdtemp(name) != nullptr);
    path = name;
    library = path + "/libgood.so";
    text = read_file(mock("good"));
    write_file(library, text);
    describe(manifest("libgood.so", sha256(text, 1 << 20)));
  }
  ~Packaged() {
    for (const char* name : {"/libgood.so", "/liblink.so", "/manifest.json"}) unlink((path + name).c_str());
    rmdir(path.c_str());
  }
  void describe(const std::string& json) const { write_file(path + "/manifest.json", json); }
  kw_status add(uint32_t digest_check = KW_DIGEST_OF_MANIFEST) const {
    const Handle h;
    const kw_library_options options = {sizeof options, 0, digest_check, 0};
    return kw_dispatcher_add_library(h.d, library.c_str(), &options);
  }
};

void digests_are_those_of_fips_180_4() {
  const std::string two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  CHECK(sha256("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc", 3) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256(two, 56) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a'), 4096) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    const std::string text(bytes, 'x');
    for (const size_t step : {size_t{1}, size_t{63}, size_t{64}, size_t{65}}) {
      CHECK(sha256(text, step) == sha256(text, 1 << 20));
    }
  }
}

void a_library_is_loaded_with_its_manifest() {
  const Packaged packaged;
  CHECK(packaged.add() == KW_OK);
  CHECK(packaged.add() == KW_OK);
  const Handle h;
  CHECK(kw_dispatcher_add_library(h.d, packaged.library.c_str(), nullptr) == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) > 0);
  CHECK_FAILS(packaged.add(2), KW_INVALID_ARGUMENT, "digest_check = 2", "allowed: 0");
}

void a_flipped_bit_is_refused() {
  const Packaged packaged;
  for (const size_t at : {size_t{9}, packaged.text.size() / 2, packaged.text.size() - 1}) {
    std::string damaged = packaged.text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(packaged.library, damaged);
    CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "libgood.so beside it has sha256", "copy or build both again");
  }
  write_file(packaged.library, packaged.text + "x");
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "sha256");
  CHECK(packaged.add(KW_DIGEST_UNCHECKED) == KW_OK);
  write_file(packaged.library, packaged.text);
  CHECK(packaged.add() == KW_OK);
}

void a_missing_manifest_is_refused() {
  const Packaged packaged;
  unlink((packaged.path + "/manifest.json").c_str());
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "manifest.json: cannot be opened", "KW_DIGEST_UNCHECKED");
  CHECK(packaged.add(KW_DIGEST_UNCHECKED) == KW_OK);
}

void the_manifest_of_another_file_is_refused() {
  const Packaged packaged;
  const std::string digest = sha256(packaged.text, 1 << 20);
  packaged.describe(manifest("libother.so", digest));
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "describes \"libother.so\", not libgood.so", "folder");
  packaged.describe(manifest("libgood.so", sha256(packaged.text + "x", 64)));
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, digest.c_str(), "the manifest says");
  packaged.describe(manifest("libgood.so", "0" + digest.substr(1) + "0"));
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "allowed: 64 hex digits");
  packaged.describe(R"({"schema_version": 2, "library": "libgood.so", "sha256": ")" + digest + "\"}");
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "schema_version is 2; allowed: 1");
  packaged.describe(R"({"schema_version": 1, "library": "libgood.so"})");
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "sha256 is missing");
  packaged.describe("");
  CHECK_FAILS(packaged.add(), KW_LOAD_FAILED, "has 0 bytes");
}

void manifests_are_read_strictly() {
  const auto refused = [](const std::string& text) {
    kernelwright::JsonMember members[] = {{"a", {}}};
    return kernelwright::read_json_object(text.data(), text.size(), members, 1) != nullptr;
  };
  for (const char* text :
       {"{}", " {\"a\" : 1}\n", "{\"b\":[],\"a\":{\"a\":[0,-1.5e+3,true,false,null,\"\\u0041\"]}}"}) {
    CHECK(!refused(text));
    for (size_t bytes = 0; text[bytes + 1] != '\0' && text[bytes + 1] != '\n'; ++bytes) {
      CHECK(refused(std::string(text, bytes)));  // whatever is cut off
    }
  }
  for (const char* text :
       {"[]", "{\"a\":1,}", "{\"a\":1}{}", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":1}", "{a:1}", "{\"a\":}", "{\"a\":01}",
        "{\"a\":+1}", "{\"a\":.5}", "{\"a\":1.}", "{\"a\":NaN}", "{\"a\":'x'}", "{\"\\u0061\":1}", "{\"a\":\"\\x\"}",
        "{\"a\":\"\n\"}", "{\"a\":[1,]}", "{\"a\":tru}"}) {
    CHECK(refused(text));
  }
  const std::string deep = std::string(63, '[') + std::string(63, ']');
  CHECK(!refused("{\"a\":" + deep + "}"));
  CHECK(refused("{\"a\":[[" + deep + "]]}"));
  CHECK(refused("{\"a\":" + std::string(1 << 20, '[')));
}

// The path names a good library for the comparison, and another file by the time of loading.
void the_file_that_was_compared_is_loaded() {
  const Packaged packaged;
  const std::string link = packaged.path + "/liblink.so", other = mock("nosymbol");
  packaged.describe(manifest("liblink.so", sha256(packaged.text, 64)));
  bool stop = false;
  std::thread swaps([&] {
    const std::string fresh = packaged.path + "/fresh";
    for (bool good = true; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); good = !good) {
      CHECK(symlink((good ? packaged.library : other).c_str(), fresh.c_str()) == 0);
      CHECK(rename(fresh.c_str(), link.c_str()) == 0);
    }
  });
  int loaded = 0, refused = 0;
  while (access(link.c_str(), F_OK) != 0) std::this_thread::yield();
  for (int i = 0; i < 300; ++i) {
    const Handle h;
    if (kw_dispatcher_add_library(h.d, link.c_str(), nullptr) == KW_OK) {
      ++loaded;
    } else {
      ++refused;  // for its digest: that the other has no symbol is never found out
      CHECK(strstr(kw_last_error(), "has sha256") != nullptr);
    }
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  swaps.join();
  CHECK(loaded + refused == 300);
}

void threads_load_one_file() {
  const Packaged packaged;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) CHECK(packaged.add() == KW_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void loading() {
  digests_are_those_of_fips_180_4();
  a_library_is_loaded_with_its_manifest();
  a_flipped_bit_is_refused();
  a_missing_manifest_is_refused();
  the_manifest_of_another_file_is_refused();
  manifests_are_read_strictly();
  the_file_that_was_compared_is_loaded();
  threads_load_one_file();
}
