// What a dispatcher holds and why it chooses, as JSON: export_json LIBRARY.so
#include "example.hpp"

namespace {

// Both calls say how much room they need, then fill it.
template <typename Write>
std::string text_of(Write write) {
  size_t needed = 0;
  if (write(nullptr, 0, &needed) != KW_BUFFER_TOO_SMALL) require(KW_INVALID_ARGUMENT, "size");
  std::vector<char> buffer(needed);
  require(write(buffer.data(), buffer.size(), &needed), "json");
  return buffer.data();
}

}  // namespace

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  const kw_gemm_problem problem = fp32_problem(256, 256, 256);
  const std::string registry = text_of([&](char* buffer, size_t bytes, size_t* needed) {
    return kw_dispatcher_export_json(dispatcher, buffer, bytes, needed);
  });
  const std::string ranking = text_of([&](char* buffer, size_t bytes, size_t* needed) {
    return kw_dispatcher_explain(dispatcher, &problem.base, buffer, bytes, needed);
  });
  std::printf("{\"registry\": %s,\n \"explanation\": %s}\n", registry.c_str(), ranking.c_str());
  return 0;
}
