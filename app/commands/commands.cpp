#include "app/commands/commands.h"

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "app/commands/command_line.h"
#include "app/commands/help.h"
#include "app/errors.h"
#include "app/training/report/build_info.h"
#include "comm/mpi_check.h"
#include "comm/placement/launcher.h"
#include "partition/graph/brief.h"

namespace convoy::app {
namespace {

const std::vector<AddVerb>& program_verbs() {
  static const std::vector<AddVerb> verbs{
      add_bench_command,   add_data_command,   add_train_command, add_share_command,     add_evaluate_command,
      add_predict_command, add_export_command, add_info_command,  add_partition_command, add_simulate_command,
  };
  return verbs;
}

// Returns the message in one line, without trailing white space.
std::string in_one_line(std::string message) {
  while (!message.empty() && std::isspace(static_cast<unsigned char>(message.back()))) message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

// Shortens what the message repeats of a command line's long word: the word, the value after its
// "=" or an item of its list. Paths stay whole, so that users can find the file.
void shorten(std::string& message, const std::string& word) {
  const std::string value = word.substr(word.find('=') + 1);
  for (const char* beginning : {"/", "./", "../"})
    if (value.starts_with(beginning)) return;
  std::vector<std::string> parts = {word, value};
  for (std::size_t begin = 0, end = 0; end < word.size(); begin = end + 1) {
    end = std::min(word.find_first_of("=,", begin), word.size());
    parts.push_back(word.substr(begin, end - begin));
  }
  for (const std::string& part : parts)
    if (const std::size_t at = message.find(part); part != partition::brief(part) && at != std::string::npos)
      message.replace(at, part.size(), partition::brief(part));
}

// Keeps warnings out of standard output, which holds the results.
void send_warnings_to_standard_error() {
  if (spdlog::get("convoy") != nullptr) return;
  auto logger = spdlog::stderr_color_mt("convoy");
  logger->set_pattern("convoy: %l: %v");
  spdlog::set_default_logger(std::move(logger));
}

// Prints the message on standard error and returns `status`. Before MPI starts, every process of a
// job finds the same error, so only one of them prints. Afterwards each rank prints its own error.
int failed(const std::string& message, int status) {
  int initialised = 0;
  comm::check_mpi(MPI_Initialized(&initialised), "MPI_Initialized");
  if (initialised != 0)
    fmt::print(stderr, "convoy: {}\n", in_one_line(message));
  else
    comm::print_once_before_mpi(in_one_line(message));
  return status;
}

// Reports that standard output cannot be written, because the disk is full for example.
int failed_output(int error) {
  return failed(fmt::format("standard output: cannot write: {}", std::strerror(error == 0 ? EIO : error)), 1);
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto failed_usage = [&](std::string message) {
    for (const std::string& word : words) shorten(message, word);
    return failed(message, 2);
  };
  try {
    if (const auto mistake = find_mistake(app, words)) return failed_usage(*mistake);
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& request) {  // the flags --help and --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return failed_usage(explain(app, error));
  } catch (const UsageError& error) {
    return failed_usage(error.what());
  } catch (const ExitStatus& exit) {
    return exit.status;
  } catch (const std::bad_alloc&) {
    return failed("out of memory", 1);
  } catch (const std::filesystem::filesystem_error& error) {
    return failed(fmt::format("{}: {}", error.path1().string(), error.code().message()), 1);
    // The fmt library, too, throws std::system_error if it cannot write to standard output.
  } catch (const std::system_error& error) {
    return std::ferror(stdout) != 0 ? failed_output(error.code().value()) : failed(error.what(), 1);
  } catch (const std::exception& error) {
    return failed(error.what(), 1);
  }
}

}  // namespace

int run_command(int argc, char** argv) { return run_command(argc, argv, program_verbs()); }

int run_command(int argc, char** argv, const std::vector<AddVerb>& verbs) {
  send_warnings_to_standard_error();
  CLI::App app{"Convoy trains convolutional networks over many ranks.", "convoy"};
  app.formatter(help_formatter());
  app.set_help_flag("--help", "print this and exit");
  app.set_version_flag("--version", fmt::format("convoy {} ({})", convoy_version(), git_hash()),
                       "print the version and exit");
  app.require_subcommand(1);
  for (const auto add_verb : verbs) add_verb(app);
  const int status = parse_and_run(app, argc, argv);
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  return status == 0 && lost ? failed_output(errno) : status;
}

}  // namespace convoy::app
