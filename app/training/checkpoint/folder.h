// Manages the folder of a run's checkpoints. It holds the newest checkpoints, such as
// step-00001200.h5, and the best, best.h5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Returns the path of best.h5 if `path` is the folder of a run or of its checkpoints. Else returns
// `path`.
std::string checkpoint_file(const std::string& path);

class CheckpointFolder {
 public:
  // Makes the folder. It keeps the newest `keep` checkpoints, at least one, and best.h5. Throws
  // std::runtime_error that names the folder if it cannot be made.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // Removes all checkpoints. They are from an earlier run, which this run replaces.
  void clear() const;

  // Saves step-XXXXXXXX.h5 and, if `best` is set, the same checkpoint as best.h5. Then removes
  // checkpoints that are too old or of later steps, and partial files of killed processes. The
  // folder holds a whole checkpoint at every moment.
  std::filesystem::path save(const CheckpointState& state, bool best);

  // Saves only best.h5.
  void save_best(const CheckpointState& state) const { save_checkpoint(best(), state); }

  // Returns the newest checkpoint of a step up to `at_most` whose seal is valid, or nothing if
  // there are no checkpoints. Skips damaged checkpoints, with a warning on standard error if
  // `speaks` is set. If all are damaged, throws the error of the newest.
  std::optional<std::filesystem::path> latest(
      bool speaks = true, std::int64_t at_most = std::numeric_limits<std::int64_t>::max()) const;
  static std::int64_t step_in_name(const std::filesystem::path& checkpoint);

  // Returns the path of best.h5, which need not exist.
  std::filesystem::path best() const { return folder_ / "best.h5"; }
  const std::filesystem::path& path() const { return folder_; }

 private:
  std::vector<std::filesystem::path> newest_first() const;
  void make_best(const std::filesystem::path& checkpoint) const;
  void remove_old(std::int64_t current_step) const;

  std::filesystem::path folder_;
  std::size_t keep_;
};

}  // namespace convoy::app
