// Counts how often a network predicts each class for images of each class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace convoy::app {

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::vector<std::string> classes);

  // Counts the predictions for the images that have a label. A negative label means that the image
  // has none. `probabilities` is [images, classes]. Images whose probabilities are NaN are not
  // counted; the loss, which is then NaN, must be checked on all ranks.
  void add(std::span<const std::int32_t> labels, std::span<const float> probabilities);
  // Adds the counts of all ranks on rank 0. Collective.
  void sum(const comm::Communicator& ranks);

  std::int64_t count(std::size_t label, std::size_t predicted) const {
    return counts_[label * classes_.size() + predicted];
  }
  // Writes two files to `folder`, which is made if it does not exist:
  //   confusion.csv  one row per class and one column per predicted class
  //   classes.csv    class, images, correct, accuracy (empty without images), most_confused_with
  //                  (the class most often predicted instead; the first of several; empty without
  //                  errors), confused_images
  // Throws std::runtime_error that names the file.
  void write(const std::filesystem::path& folder) const;

 private:
  std::string confusion_csv() const;
  std::string classes_csv() const;

  std::vector<std::string> classes_;
  std::vector<std::int64_t> counts_;  // [classes, classes]: by label and predicted class
};

}  // namespace convoy::app
