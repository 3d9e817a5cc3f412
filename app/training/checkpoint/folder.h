// Manages the folder of a run's checkpoints. It holds the newest checkpoints, in files such as
// step-00001200.h5, and the one with the best accuracy, best.h5.
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
  // Makes the folder. Saving keeps the newest `keep` checkpoints, at least one, and best.h5. Throws
  // std::runtime_error that names the folder if it cannot be made.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // Removes all checkpoints of the earlier run that this run replaces.
  void clear() const;

  // Saves step-XXXXXXXX.h5 and, if `best` is set, the same checkpoint as best.h5. Then removes old
  // checkpoints and incomplete files of killed processes. Also removes checkpoints of later steps,
  // which are left if the run was resumed at an earlier step. The folder holds a complete
  // checkpoint at every moment.
  std::filesystem::path save(const CheckpointState& state, bool best);

  // Saves only best.h5.
  void save_best(const CheckpointState& state) const { save_checkpoint(best(), state); }

  // Returns the newest checkpoint whose step is at most `at_most` and whose checksum is valid.
  // Returns nothing if there are no checkpoints. Skips damaged checkpoints, with a warning on
  // standard error if `speaks` is set. If all are damaged, throws the error of the newest one.
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
