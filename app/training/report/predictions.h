// Finds the most probable classes of images and writes them as a table.
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

// Fills `top` with the most probable classes, at most as many as there are. If classes are equally
// probable, the lower number comes first. NaN is less probable than any number.
void rank_classes(std::span<const float> probabilities, std::span<RankedClass> top);

// A table with one line per image. In CSV (RFC 4180, lines end with LF, with a header) a line has
// the image and then the name and the probability of each class. In JSON a line is an object
// {"path": …, "classes": [{"class", "probability"}, …]}. A probability is the shortest decimal
// number that is read back as the same float; NaN is null in JSON.
class PredictionTable {
 public:
  enum class Form : std::uint8_t { csv, json };
  struct Appended {};  // selects the constructor that appends
  // Writes to standard output if `out` is "-"; else to a file, which appears when finish() is
  // called. `key` is the name of the column with the images, such as "path". Throws
  // std::runtime_error that names the file if it cannot be opened.
  PredictionTable(const std::string& out, Form form, std::string key, const std::vector<std::string>& classes,
                  std::size_t top);

  // Appends to a CSV file, which may have lines of an earlier run. If its last line is incomplete,
  // as after a crash, cuts that line off. Lines appear with flush(). Throws std::runtime_error that
  // names the file if it cannot be opened or is no such table of the same header.
  PredictionTable(Appended, const std::string& out, std::string key, const std::vector<std::string>& classes,
                  std::size_t top);
  // Returns the image of every line that the file had when it was opened to append.
  const std::vector<std::string>& earlier() const { return earlier_; }

  // Add a line. Throw std::runtime_error that names the file if it cannot be written.
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
  std::vector<std::string> classes_;  // the names, quoted as CSV or JSON needs
  std::vector<std::string> earlier_;
  // The header, until it is written before the first line. So an error that comes earlier leaves
  // standard output empty.
  std::string header_;
  std::optional<data::AtomicFile> file_;
  std::unique_ptr<std::FILE, Close> stream_;  // null if standard output is used
};

}  // namespace convoy::app
