#include "app/training/report/predictions.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/json_text.h"
#include "data/convert/csv.h"

namespace convoy::app {
namespace {

std::string quoted(const std::string& text, PredictionTable::Form form) {
  return form == PredictionTable::Form::csv ? data::csv_field(text) : json_text(nlohmann::json(text));
}

}  // namespace

void rank_classes(std::span<const float> probabilities, std::span<RankedClass> top) {
  const auto before = [](const RankedClass& a, const RankedClass& b) {
    if (std::isnan(a.probability) || std::isnan(b.probability))
      return std::isnan(a.probability) == std::isnan(b.probability) ? a.number < b.number
                                                                    : std::isnan(b.probability);
    return a.probability != b.probability ? a.probability > b.probability : a.number < b.number;
  };
  std::size_t filled = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const RankedClass candidate{static_cast<std::int32_t>(i), probabilities[i]};
    if (filled == top.size() && !before(candidate, top.back())) continue;
    if (filled < top.size()) ++filled;
    std::size_t place = filled - 1;
    for (; place > 0 && before(candidate, top[place - 1]); --place) top[place] = top[place - 1];
    top[place] = candidate;
  }
}

PredictionTable::PredictionTable(const std::string& out, Form form, std::string key,
                                 const std::vector<std::string>& classes, std::size_t top)
    : out_(out == "-" ? "standard output" : out), form_(form), key_(std::move(key)) {
  for (const std::string& name : classes) classes_.push_back(quoted(name, form));
  if (out != "-") {
    file_.emplace(out);
    stream_.reset(std::fopen(file_->path().c_str(), "wb"));
    if (!stream_) throw std::runtime_error(fmt::format("{}: cannot open: {}", out_, std::strerror(errno)));
  }
  if (form_ == Form::json) return;
  std::string header = key_;
  for (std::size_t k = 1; k <= top; ++k) header += fmt::format(",class_{0},probability_{0}", k);
  write(header + "\n");
}

void PredictionTable::add(const std::string& image, std::span<const RankedClass> top) {
  add_quoted(quoted(image, form_), top);
}

void PredictionTable::add(std::int64_t image, std::span<const RankedClass> top) {
  add_quoted(fmt::format("{}", image), top);
}

void PredictionTable::add_quoted(const std::string& image, std::span<const RankedClass> top) {
  const bool csv = form_ == Form::csv;
  std::string line = csv ? image : fmt::format("{{\"{}\": {}, \"classes\": [", key_, image);
  for (std::size_t k = 0; k < top.size(); ++k) {
    const std::string& name = classes_[static_cast<std::size_t>(top[k].number)];
    const float p = top[k].probability;
    if (csv)
      fmt::format_to(std::back_inserter(line), ",{},{}", name, p);
    else
      fmt::format_to(std::back_inserter(line), "{}{{\"class\": {}, \"probability\": {}}}", k == 0 ? "" : ", ",
                     name, std::isnan(p) ? "null" : fmt::format("{}", p));
  }
  write(line + (csv ? "\n" : "]}\n"));
}

void PredictionTable::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream_ ? stream_.get() : stdout) != text.size())
    throw std::runtime_error(fmt::format("{}: cannot write: {}", out_, std::strerror(errno)));
}

void PredictionTable::finish() {
  if (std::fflush(stream_ ? stream_.get() : stdout) != 0)
    throw std::runtime_error(fmt::format("{}: cannot write: {}", out_, std::strerror(errno)));
  if (!file_) return;
  stream_.reset();
  file_->commit();
}

}  // namespace convoy::app
