// Runs a shell command and returns its output, its exit status and its time.
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace convoy::test {

struct Outcome {
  int status = -1;
  double seconds = 0;
  std::string text;
  // Returns the lines that Convoy itself wrote, without those that mpirun adds.
  std::vector<std::string> ours() const {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; (begin = text.find("convoy: ", begin)) != std::string::npos;) {
      const std::size_t end = text.find('\n', begin);
      lines.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return lines;
  }
};

// Runs the command. If it takes longer than `timeout_seconds`, kills it and gives status 124.
inline Outcome run(const std::string& command, int timeout_seconds = 60) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  std::FILE* pipe =
      ::popen(("timeout " + std::to_string(timeout_seconds) + " " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.text += buffer.data();
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace convoy::test
