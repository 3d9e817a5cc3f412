// How often a network takes one class for another.
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

  // Counts the rows that have a label; probabilities [rows, classes]. Throws std::runtime_error if
  // those of such a row are not numbers.
  void add(std::span<const std::int32_t> labels, std::span<const float> probabilities);
  // Adds the counts of all ranks at rank 0. Collective.
  void sum(const comm::Communicator& ranks);

  std::int64_t count(std::size_t label, std::size_t predicted) const {
    return counts_[label * classes_.size() + predicted];
  }
  // Writes to `folder`, which is made if need be:
  //   confusion.csv  a row for each class, a column for each class that the network named instead
  //   classes.csv    class, images, correct, accuracy (empty without images), most_confused_with
  //                  (the first class with the most errors; empty without one), confused_images
  // Throws std::runtime_error that names the file.
  void write(const std::filesystem::path& folder) const;

 private:
  std::string confusion_csv() const;
  std::string classes_csv() const;

  std::vector<std::string> classes_;
  std::vector<std::int64_t> counts_;  // [classes, classes]: label, predicted
};

}  // namespace convoy::app
