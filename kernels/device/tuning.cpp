#include "kernels/device/tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace convoy::kernels::tuning {
namespace {

using Choices = std::map<std::string, std::string>;

struct State {
  bool on = false;
  Mode mode = Mode::read;
  std::filesystem::path file;
  Choices known, kept;  // known: the choices in the file; kept: those measured since the last save
};
State& state() {
  static State one;
  return one;
}

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw std::runtime_error(fmt::format("tuning file {}: {}", file.string(), what));
}

Choices read(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  std::ifstream stream(file);
  if (!stream) fail(file, std::strerror(errno));
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object()) fail(file, "found no JSON object, expected {\"key\": \"choice\", ...}");
  Choices choices;
  for (const auto& [key, choice] : json.items()) {
    if (!choice.is_string()) fail(file, fmt::format("\"{}\" is not a string", key));
    choices[key] = choice.get<std::string>();
  }
  return choices;
}

// Writes the whole file or, if writing fails, nothing. If `link` is a symbolic link, replaces its
// target.
void write(const std::filesystem::path& link, const std::string& text) {
  const auto file = std::filesystem::exists(link) ? std::filesystem::canonical(link) : link;
  const std::string temporary = fmt::format("{}.{}", file.string(), getpid());
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const auto failed = [&] {
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) close(descriptor);
    unlink(temporary.c_str());
    fail(file, why);
  };
  if (descriptor < 0) failed();
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) failed();
    done += std::size_t(count);
  }
  if (fsync(descriptor) != 0 || rename(temporary.c_str(), file.c_str()) != 0) failed();
  close(descriptor);
}

}  // namespace

void use(const std::filesystem::path& file, Mode mode) {
  if (mode == Mode::read && !std::filesystem::exists(file))
    fail(file, "does not exist, and is only read here: a run of one rank measures and writes it");
  state() = {true, mode, file, read(file), {}};
}
void stop() { state() = {}; }

std::optional<std::string> find(const std::string& key) {
  const Choices& known = state().known;
  const auto found = known.find(key);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

bool measures() { return state().on && state().mode == Mode::measure; }

void keep(const std::string& key, const std::string& choice) {
  state().known[key] = state().kept[key] = choice;
}

void save() {
  State& s = state();
  if (!s.on || s.kept.empty()) return;
  Choices all = read(s.file);
  for (const auto& [key, choice] : s.kept) all[key] = choice;
  if (s.file.has_parent_path()) std::filesystem::create_directories(s.file.parent_path());
  write(s.file, nlohmann::json(all).dump(1) + "\n");
  s.kept.clear();
}

}  // namespace convoy::kernels::tuning
