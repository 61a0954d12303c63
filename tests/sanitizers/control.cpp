// What the sanitizers must find, so that a run without findings means something: control race | overflow.
#include <limits.h>
#include <string.h>

#include <thread>

int shared = 0;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "race") == 0) {
    std::thread first([] { ++shared; }), second([] { ++shared; });
    first.join();
    second.join();
    return 0;
  }
  shared = INT_MAX;
  shared += argc;
  return shared == argc ? 1 : 0;
}
