#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

// Reads comma-separated values (RFC 4180): fields in quotes may hold commas, line ends and doubled
// quotes. Lines end with LF or CRLF; a byte order mark at the start is ignored.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text);
  // Reads the next record and skips empty lines. Returns false after the last record. Throws
  // std::runtime_error whose text begins with the number of the line.
  bool next(std::vector<std::string>& fields);
  // Returns the number of bytes up to the end of the last record, with its line end.
  std::size_t position() const { return at_; }
  // Returns the number of the line on which the last record began. Lines count from 1.
  std::int64_t line() const { return record_line_; }

 private:
  std::string field();
  std::string quoted_field();

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, record_line_ = 1;
};

// Returns `text` as one CSV field, with quotes if `text` contains commas, quotes or line ends.
std::string csv_field(std::string_view text);

}  // namespace convoy::data
