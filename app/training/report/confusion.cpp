#include "app/training/report/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/training/report/predictions.h"
#include "data/atomic_file.h"
#include "data/convert/csv.h"

namespace convoy::app {

ConfusionMatrix::ConfusionMatrix(std::vector<std::string> classes)
    : classes_(std::move(classes)), counts_(classes_.size() * classes_.size()) {}

void ConfusionMatrix::add(std::span<const std::int32_t> labels, std::span<const float> probabilities) {
  const std::size_t classes = classes_.size();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    RankedClass best;
    rank_classes(probabilities.subspan(row * classes, classes), {&best, 1});
    if (std::isnan(best.probability)) continue;
    ++counts_[static_cast<std::size_t>(labels[row]) * classes + static_cast<std::size_t>(best.number)];
  }
}

void ConfusionMatrix::sum(const comm::Communicator& ranks) {
  ranks.reduce(std::span(counts_), comm::ReduceOp::sum, 0, "confusion matrix");
}

void ConfusionMatrix::write(const std::filesystem::path& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  data::write_file_atomically(folder / "confusion.csv", confusion_csv());
  data::write_file_atomically(folder / "classes.csv", classes_csv());
}

std::string ConfusionMatrix::confusion_csv() const {
  std::string text = "class";
  for (const std::string& name : classes_) text += "," + data::csv_field(name);
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    text += "\n" + data::csv_field(classes_[label]);
    for (std::size_t predicted = 0; predicted < classes_.size(); ++predicted)
      text += fmt::format(",{}", count(label, predicted));
  }
  return text + "\n";
}

std::string ConfusionMatrix::classes_csv() const {
  std::string text = "class,images,correct,accuracy,most_confused_with,confused_images\n";
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    std::vector<std::int64_t> row(classes_.size());
    for (std::size_t predicted = 0; predicted < row.size(); ++predicted)
      row[predicted] = count(label, predicted);
    const std::int64_t images = std::reduce(row.begin(), row.end()), correct = std::exchange(row[label], 0);
    const auto worst = std::ranges::max_element(row);
    const std::string accuracy =
        images == 0 ? "" : fmt::format("{}", static_cast<double>(correct) / static_cast<double>(images));
    const std::string confused =
        *worst == 0 ? "" : data::csv_field(classes_[static_cast<std::size_t>(worst - row.begin())]);
    text += fmt::format("{},{},{},{},{},{}\n", data::csv_field(classes_[label]), images, correct, accuracy,
                        confused, *worst);
  }
  return text;
}

}  // namespace convoy::app
