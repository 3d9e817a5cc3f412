// Finds the most probable classes of images and writes a table of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/atomic_file.h"

namespace convoy::app {

struct RankedClass {
  std::int32_t number = 0;
  float probability = 0;
};

// Writes the most probable classes to `top`, the most probable first, until `top` is full. If
// classes are equally probable, the lower number comes first. NaN is less probable than any number.
void rank_classes(std::span<const float> probabilities, std::span<RankedClass> top);

// A table with one line per image. The form `csv` is CSV (RFC 4180) with a header and lines that
// end with LF; a line has the image and then the name and the probability of each class. In the
// form `json` a line is an object {KEY: …, "classes": [{"class", "probability"}, …]}. A probability
// is the shortest decimal number that is read back as the same float; NaN is null in JSON.
class PredictionTable {
 public:
  enum class Form : std::uint8_t { csv, json };
  struct Appended {};  // tag that selects the constructor below, which appends
  // Writes to standard output if `out` is "-", else to a file that appears when finish() is called.
  // `key` is the name of the column that names the image, such as "path". Throws std::runtime_error
  // that names the file if it cannot be opened.
  PredictionTable(const std::string& out, Form form, std::string key, const std::vector<std::string>& classes,
                  std::size_t top);

  // Appends to a CSV file, which may have lines of an earlier run. An incomplete last line, as a
  // crash leaves it, is cut off. New lines are in the file after flush(). Throws std::runtime_error
  // that names the file if it cannot be opened or if its header is another one.
  PredictionTable(Appended, const std::string& out, std::string key, const std::vector<std::string>& classes,
                  std::size_t top);
  // Returns the first field (the image) of every line that the file had when it was opened.
  const std::vector<std::string>& earlier() const { return earlier_; }

  // add() adds a line. It throws std::runtime_error that names the file if it cannot be written.
  void add(const std::string& image, std::span<const RankedClass> top);
  void add(std::int64_t image, std::span<const RankedClass> top);
  void flush();
  void finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string header(std::size_t top) const;
  bool read_earlier(const std::string& header);
  void add_quoted(const std::string& image, std::span<const RankedClass> top);
  void write(std::string text);

  const std::string out_;
  const Form form_;
  const std::string key_;
  std::vector<std::string> classes_;  // the names, quoted for CSV or JSON
  std::vector<std::string> earlier_;
  // The header, which is written together with the first line or by finish(). So standard output
  // stays empty if an error comes before it.
  std::string header_;
  std::optional<data::AtomicFile> file_;
  std::unique_ptr<std::FILE, Close> stream_;  // null if standard output is used
};

}  // namespace convoy::app
