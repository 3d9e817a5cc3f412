// The folder of a run's checkpoints: step-00001200.h5 ..., the last few of them, and best.h5.
#pragma once

#include <filesystem>
#include <optional>

#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

class CheckpointFolder {
 public:
  // Keeps the newest `keep` (at least one) beside best.h5. Makes the folder; throws std::runtime_error naming it
  // when that fails.
  CheckpointFolder(std::filesystem::path folder, int keep);

  // Removes all checkpoints: those of a run that another one replaces.
  void clear() const;

  // Saves step-XXXXXXXX.h5, makes it best.h5 too where `best` says so, and only then removes what is too old:
  // at every moment the folder holds a whole checkpoint. Left-overs of killed processes go too, and steps later
  // than this one.
  std::filesystem::path save(const CheckpointState& state, bool best);

  // The newest checkpoint whose seal holds. One that is damaged is passed over, if `speaks` with a warning on standard
  // error; if all are damaged, throws what is wrong with the newest. Nothing if there are none.
  std::optional<std::filesystem::path> latest(bool speaks = true) const;

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
