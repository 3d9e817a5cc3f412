// The folder of a run's checkpoints: the last few of step-00001200.h5 and so on, and best.h5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Returns the best checkpoint for the folder of a run or of its checkpoints, else the path itself.
std::string checkpoint_file(const std::string& path);

class CheckpointFolder {
 public:
  // Keeps the newest `keep` (at least one) and best.h5. Makes the folder. Throws std::runtime_error
  // naming the folder if that fails.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // Removes all checkpoints, those of a run that this one replaces.
  void clear() const;

  // Saves step-XXXXXXXX.h5, also as best.h5 if it is `best`, and then removes checkpoints that are
  // too old or of later steps, and files that killed processes left. The folder holds a whole
  // checkpoint at every moment.
  std::filesystem::path save(const CheckpointState& state, bool best);

  // Saves best.h5 alone.
  void save_best(const CheckpointState& state) const { save_checkpoint(best(), state); }

  // Returns the newest checkpoint of at most this step whose seal holds, nothing if there are no
  // checkpoints. Passes over a damaged one, with a warning on standard error if it `speaks`. Throws
  // the error of the newest if all are damaged.
  std::optional<std::filesystem::path> latest(
      bool speaks = true, std::int64_t at_most = std::numeric_limits<std::int64_t>::max()) const;
  static std::int64_t step_in_name(const std::filesystem::path& checkpoint);

  std::filesystem::path best() const { return folder_ / "best.h5"; }  // need not exist
  const std::filesystem::path& path() const { return folder_; }

 private:
  std::vector<std::filesystem::path> newest_first() const;
  void make_best(const std::filesystem::path& checkpoint) const;
  void remove_old(std::int64_t current_step) const;

  std::filesystem::path folder_;
  std::size_t keep_;
};

}  // namespace convoy::app
