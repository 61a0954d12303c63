// A kernel that is missing, compiled now: jit LIBRARY.so [COMMAND ...]
//
// D = (A B) * D0 * D1 with A by columns, which no shipped kernel computes. COMMAND is the start of the command line,
// "kernelwright" unless given; it needs the compilers of the Python package kernelwright[jit]. Its cache makes the
// second run a look-up.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "example.hpp"

extern char** environ;

namespace {

// The first line that a command writes to its standard output; nothing unless it ends with exit status 0.
std::string first_line(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got; !failed && (got = read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return "";
  return text.substr(0, text.find('\n'));
}

// The plan for a problem; if no kernel is for it, with a library that `kernelwright jit` makes.
const kw_plan* plan_for(kw_dispatcher* dispatcher, const kw_gemm_problem& problem, std::vector<std::string> command) {
  const kw_plan* plan = nullptr;
  const kw_status status = kw_dispatcher_select(dispatcher, &problem.base, &plan);
  if (status != KW_NO_KERNEL) {
    require(status, "select");
    return plan;
  }
  std::printf("no kernel yet, compiling\n");
  for (const char* word : {"jit", "--device", "cpu", "--set", "fp32_crr_multi_d", "--filter",
                           "c.d_op == 'multiply' and c.num_d == 2 and c.activation == 'none'"}) {
    command.emplace_back(word);
  }
  const std::string library = first_line(command);
  if (library.empty()) {
    std::fprintf(stderr, "%s: made no library; what it says stands above\n", command[0].c_str());
    std::exit(1);
  }
  require(kw_dispatcher_add_library(dispatcher, library.c_str(), nullptr), library.c_str());
  require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  std::vector<std::string> command(argv + 2, argv + argc);
  if (command.empty()) command.emplace_back("kernelwright");
  constexpr int64_t m = 30, n = 20, k = 25;
  const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
  const std::vector<float> gate = whole_numbers(m * n, 3), scale = whole_numbers(n, 9);
  std::vector<float> d(m * n);

  kw_gemm_problem problem = fp32_problem(m, n, k);
  problem.layout_a = KW_COL_MAJOR, problem.lda = m;
  problem.num_d = 2;
  problem.d_op = KW_D_MULTIPLY;
  problem.ld_multi_d[0] = n;
  problem.ld_multi_d[1] = 0;  // one row for all
  const kw_plan* plan = plan_for(dispatcher, problem, command);
  Workspace workspace(plan);
  kw_gemm_args args = arguments(a.data(), b.data(), d.data());
  args.multi_d[0] = gate.data();
  args.multi_d[1] = scale.data();
  const kw_launch launch = workspace.launch();
  require(kw_plan_launch(plan, &launch, &args), "launch");

  int wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const size_t at = static_cast<size_t>(i * n + j);
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[static_cast<size_t>(l * m + i)] * b[static_cast<size_t>(l * n + j)];
      wrong += d[at] != sum * gate[at] * scale[static_cast<size_t>(j)];
    }
  }
  std::printf("%s: %d wrong of %d\n", kernel_of(plan).c_str(), wrong, static_cast<int>(m * n));
  return wrong != 0;
}
