// Reads a data set from a CSV file. Its header names the columns "path" and "label" and optionally
// "split", in any order.
#include "data/convert/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/folder_source.h"

namespace convoy::data {

CsvReader::CsvReader(std::string_view text) : text_(text) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

std::string CsvReader::quoted_field() {
  std::string field;
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') {
      field += text_[at_];
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field += text_[at_++];
    } else {
      ++at_;
      const bool ends = at_ == text_.size() || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\r';
      if (ends) return field;
      throw std::runtime_error(
          fmt::format("line {}: found '{}' after a quoted field, expected a comma", line_, text_[at_]));
    }
  }
  throw std::runtime_error(fmt::format("line {}: a quote that is not closed", record_line_));
}

std::string CsvReader::field() {
  if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
  const std::size_t first = at_;
  at_ = std::min(text_.find_first_of(",\n", at_), text_.size());
  std::string_view field = text_.substr(first, at_ - first);
  if (field.ends_with('\r')) field.remove_suffix(1);
  return std::string(field);
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
  record_line_ = line_;
  fields.clear();
  if (at_ >= text_.size()) return false;
  for (;;) {
    fields.push_back(field());
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ >= text_.size()) return true;
    if (text_[at_++] == '\n') {
      ++line_;
      return true;
    }
  }
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += c;
    field += c;
  }
  return field + '"';
}

Catalogue csv(Conversion& conversion) {
  const std::filesystem::path file(conversion.name);
  conversion.source = open_folder(file.has_parent_path() ? file.parent_path() : ".");
  const auto fail = [&](std::int64_t line, const std::string& text) {
    throw std::runtime_error(fmt::format("{}: line {}: {}", conversion.name, line, text));
  };
  Bytes bytes;
  try {
    bytes = open_file(file)->read("");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", conversion.name, error.what()));
  }
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  CatalogueBuilder builder(conversion, CatalogueBuilder::Order::as_added);
  TestNames test_names;
  try {
    std::vector<std::string> header, fields;
    reader.next(header);
    const auto column = [&](const char* name) {
      if (std::ranges::count(header, name) > 1) fail(1, fmt::format("two columns {}, expected one", name));
      return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    const std::size_t path = column("path"), label = column("label"), split = column("split");
    if (path == header.size() || label == header.size())
      fail(1, "no such header, expected path,label or path,label,split");
    while (reader.next(fields)) {
      if (fields.size() != header.size())
        fail(reader.line(),
             fmt::format("{} fields, expected {} as in the header", fields.size(), header.size()));
      if (fields[path].empty() || fields[label].empty())
        fail(reader.line(), "no path or no label, expected both");
      if ((fields[path] + fields[label]).find('\0') != std::string::npos)
        fail(reader.line(), "a zero byte, expected text");
      const std::string& name = fields[label];
      if (std::isspace(static_cast<unsigned char>(name.front())) != 0 ||
          std::isspace(static_cast<unsigned char>(name.back())) != 0)
        fail(reader.line(), fmt::format("label '{}', expected one without blanks at its ends", name));
      const auto in = split == header.size() ? std::nullopt : test_names.split_of(fields[split]);
      if (split != header.size() && !in)
        fail(reader.line(),
             fmt::format("split '{}', expected train, test, val or validation", fields[split]));
      builder.add(fields[path], fields[label], in);
    }
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    if (text.starts_with(conversion.name)) throw;
    throw std::runtime_error(fmt::format("{}: {}", conversion.name, text));
  }
  test_names.require_one(conversion.name);
  if (conversion.test) add_test_source(conversion, builder);
  return builder.finish();
}

}  // namespace convoy::data
