#include "app/training/checkpoint/folder.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "app/training/checkpoint/sealed_file.h"
#include "data/atomic_file.h"
#include "data/path_kind.h"

namespace convoy::app {
namespace {

namespace fs = std::filesystem;

// Returns the step in a checkpoint's file name, or nothing for other files. Steps are written with
// at least eight digits.
std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kBefore = "step-", kAfter = ".h5";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return std::nullopt;
  const char* first = name.data() + kBefore.size();
  const char* last = name.data() + name.size() - kAfter.size();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(first, last, step);
  if (error != std::errc() || end != last || last - first < 8) return std::nullopt;
  return step;
}

bool is_left_over(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.find(".h5.partial-") != std::string::npos &&
         (name.starts_with("step-") || name.starts_with("best."));
}

}  // namespace

std::string checkpoint_file(const std::string& path) {
  const std::filesystem::path folder(path);
  if (!data::is_folder(folder)) return path;
  const bool whole_run = data::is_folder(folder / "checkpoint");
  return ((whole_run ? folder / "checkpoint" : folder) / "best.h5").string();
}

CheckpointFolder::CheckpointFolder(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(static_cast<std::size_t>(keep)) {
  if (keep < 1) throw std::invalid_argument("a checkpoint folder keeps at least one");
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("{}: cannot make the folder: {}", folder_.string(), error.message()));
  }
}

void CheckpointFolder::clear() const {
  const std::vector<fs::directory_entry> entries(fs::directory_iterator(folder_), fs::directory_iterator{});
  for (const fs::path& path : entries) {
    if (!step_of(path) && !is_left_over(path) && path != best()) continue;
    std::error_code error;
    fs::remove(path, error);
    if (error)
      throw std::runtime_error(
          fmt::format("{}: cannot remove an old checkpoint: {}", path.string(), error.message()));
  }
}

fs::path CheckpointFolder::save(const CheckpointState& state, bool best) {
  const auto path = folder_ / fmt::format("step-{:08}.h5", state.step);
  save_checkpoint(path, state);
  if (best) make_best(path);
  remove_old(state.step);
  return path;
}

void CheckpointFolder::make_best(const fs::path& checkpoint) const {
  data::AtomicFile file(best());
  std::error_code error;
  fs::remove(file.path(), error);
  // Make best.h5 a second name of the same file, which takes no space. If the file system has no
  // hard links, make a copy.
  fs::create_hard_link(checkpoint, file.path(), error);
  if (error) fs::copy_file(checkpoint, file.path(), fs::copy_options::overwrite_existing, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot write: {}", best().string(), error.message()));
  }
  file.commit();
}

std::vector<fs::path> CheckpointFolder::newest_first() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

void CheckpointFolder::remove_old(std::int64_t current_step) const {
  std::vector<fs::path> old;
  std::size_t kept = 0;
  for (const auto& path : newest_first()) {
    // Remove checkpoints of later steps, too. They were written before the run was resumed from an
    // earlier checkpoint, and a later --resume would load them.
    if (*step_of(path) > current_step || ++kept > keep_) old.push_back(path);
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (is_left_over(entry.path())) old.push_back(entry.path());
  }
  for (const auto& path : old) {
    std::error_code error;
    fs::remove(path, error);
    if (error) spdlog::warn("{}: cannot remove an old checkpoint: {}", path.string(), error.message());
  }
}

std::int64_t CheckpointFolder::step_in_name(const fs::path& checkpoint) {
  return step_of(checkpoint).value();
}

std::optional<fs::path> CheckpointFolder::latest(bool speaks, std::int64_t at_most) const {
  std::vector<std::string> damaged;
  for (const auto& path : newest_first()) {
    if (*step_of(path) > at_most) continue;
    try {
      check_seal(path);
    } catch (const DamagedFile& error) {
      damaged.emplace_back(error.what());
      continue;
    }
    if (speaks)
      for (const std::string& what : damaged) spdlog::warn("{}; going back to the checkpoint before", what);
    return path;
  }
  if (!damaged.empty()) throw DamagedFile(damaged.front());
  return std::nullopt;
}

}  // namespace convoy::app
