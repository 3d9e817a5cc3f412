#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

// Comma-separated values after RFC 4180: fields in quotes may hold commas, line ends and doubled
// quotes. Lines end with LF or CRLF; a byte order mark at the start is passed over.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text);
  // The next record that is not an empty line; false after the last. Throws std::runtime_error with
  // the line's number.
  bool next(std::vector<std::string>& fields);
  std::int64_t line() const { return record_line_; }  // where the last record began, from 1 on

 private:
  std::string field();
  std::string quoted_field();

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, record_line_ = 1;
};

// Returns the text as one field, in quotes if it needs them.
std::string csv_field(std::string_view text);

}  // namespace convoy::data
