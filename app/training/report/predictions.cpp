#include "app/training/report/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
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
  if (form_ == Form::csv) header_ = header(top);
}

PredictionTable::PredictionTable(Appended, const std::string& out, std::string key,
                                 const std::vector<std::string>& classes, std::size_t top)
    : out_(out), form_(Form::csv), key_(std::move(key)) {
  for (const std::string& name : classes) classes_.push_back(quoted(name, form_));
  const bool has_header = read_earlier(header(top));
  stream_.reset(std::fopen(out.c_str(), "ab"));
  if (!stream_) throw std::runtime_error(fmt::format("{}: cannot open: {}", out_, std::strerror(errno)));
  if (!has_header) write(header(top));
  flush();
}

std::string PredictionTable::header(std::size_t top) const {
  std::string header = key_;
  for (std::size_t k = 1; k <= top; ++k) header += fmt::format(",class_{0},probability_{0}", k);
  return header + "\n";
}

// Reads the complete lines of the file, if there is one, and cuts off an incomplete last line.
// Returns whether the file has a complete header.
bool PredictionTable::read_earlier(const std::string& header) {
  std::ifstream file(out_, std::ios::binary);
  if (!file) return false;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!text.starts_with(header) && !header.starts_with(text))
    throw std::runtime_error(fmt::format("{}: found the header '{}', expected '{}'", out_,
                                         text.substr(0, std::min(text.find('\n'), header.size())),
                                         header.substr(0, header.size() - 1)));
  std::size_t complete = 0;
  data::CsvReader reader(text);
  try {
    for (std::vector<std::string> fields; reader.next(fields) && text[reader.position() - 1] == '\n';) {
      if (complete > 0) earlier_.push_back(std::move(fields.front()));
      complete = reader.position();
    }
  } catch (const std::runtime_error& error) {
    // The reader throws if a quote is still open at the end of the file. Such a line is only
    // incomplete.
    if (reader.position() < text.size()) throw std::runtime_error(fmt::format("{}: {}", out_, error.what()));
  }
  if (complete < text.size()) std::filesystem::resize_file(out_, complete);
  return complete > 0;
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

void PredictionTable::write(std::string text) {
  text.insert(0, std::exchange(header_, {}));
  if (std::fwrite(text.data(), 1, text.size(), stream_ ? stream_.get() : stdout) != text.size())
    throw std::runtime_error(fmt::format("{}: cannot write: {}", out_, std::strerror(errno)));
}

void PredictionTable::flush() {
  if (std::fflush(stream_ ? stream_.get() : stdout) != 0)
    throw std::runtime_error(fmt::format("{}: cannot write: {}", out_, std::strerror(errno)));
}

void PredictionTable::finish() {
  write({});
  flush();
  if (!file_) return;
  stream_.reset();
  file_->commit();
}

}  // namespace convoy::app
