// Reads task graphs from JSON in Convoy's and Microsoft's format. They are read in one pass without
// a document in memory, because the text of a graph with a million nodes has 200 MB.
#include "partition/graph/task_graph_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "partition/graph/brief.h"
#include "partition/graph/counting_iterator.h"
#include "partition/graph/json_fields.h"

namespace convoy::partition {
namespace {

class Reader {
 public:
  using Json = nlohmann::json;
  Reader(std::string_view text, const std::string& where, const ReadOptions& options)
      : text_(text), reached_(text.data()), builder_(where), color_classes_(options.color_classes) {
    builder_.set_line_of([text](std::int64_t position) {
      return 1 + std::count(text.begin(), text.begin() + std::min<std::int64_t>(position, std::ssize(text)),
                            '\n');
    });
  }

  TaskGraph read() {
    Json::sax_parse(CountingIterator(text_.data(), &reached_),
                    CountingIterator(text_.data() + text_.size(), &reached_), this);
    for (const char* field : {"nodes", "edges"})
      if (!fields_.contains(field)) fail(fmt::format("field {} is missing", field));
    if (format_ != Format::kMicrosoft && unknown_at_ != kNone)
      builder_.fail(unknown_at_, fmt::format("unknown field {}", brief(unknown_of_file_)));
    return builder_.build();
  }

  // nlohmann::json's parser calls the following functions for each value (SAX interface).
  bool null() { return value({}, "null"); }
  bool boolean(bool given) {
    // Only the field supportedOnFpga of Microsoft's format may be true or false.
    if (field_ != kSupportedOnFpga || depth_ != 3) return value({}, given ? "true" : "false");
    return value({true, false, given, given ? 1.0 : 0.0}, given ? "true" : "false");
  }
  bool number_integer(std::int64_t given) {
    return value({true, false, given, static_cast<double>(given)}, "");
  }
  bool number_unsigned(std::uint64_t given) {
    const bool fits = given <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return value({fits, false, fits ? static_cast<std::int64_t>(given) : 0, static_cast<double>(given)}, "");
  }
  bool number_float(double given, const std::string&) {
    const bool integral = std::abs(given) < 9e18 && given == std::floor(given);
    return value({integral, false, integral ? static_cast<std::int64_t>(given) : 0, given}, "");
  }
  bool string(std::string& given) {
    if (depth_ == 3 && field_ == kName && section_ == Section::kNodes) {
      name_ = std::move(given);
      return value({false, true, 0, 0}, "text");
    }
    return value({}, "text");
  }
  bool binary(Json::binary_t&) { return value({}, "binary data"); }
  bool start_object(std::size_t) { return open('{'); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open('['); }
  bool end_array() { return close(); }
  bool key(std::string& given);
  bool parse_error(std::size_t, const std::string& token, const Json::exception& error) {
    constexpr int kOutOfRange = 406;  // nlohmann::json's error for a number above the range of double
    if (error.id == kOutOfRange) fail(fmt::format("{} is {}, too large", brief(key_), brief(token)));
    std::string what = error.what();
    const std::size_t detail = what.find(": ", what.find("column"));
    what = detail == std::string::npos ? what : what.substr(detail + 2);
    fail(fmt::format("not JSON: {}", brief(what)));
  }

 private:
  bool open(char bracket);
  bool close();
  bool value(const Value& given, const char* text);
  bool device_limit(const Value& given, const char* text);
  void begin_record();
  void end_record();
  void end_our_node();
  void end_our_edge();
  void end_microsoft_node();
  void end_microsoft_edge();
  void decide(Format format);
  std::string record() const;
  std::int64_t position() const { return reached_ - text_.data() - 1; }
  [[noreturn]] void fail(const std::string& what) {
    builder_.fail(std::max<std::int64_t>(position(), 0), what);
  }
  bool has(Field field) const { return present_ >> field & 1u; }
  double real(Field field);
  std::int64_t integer(Field field);
  std::int64_t integer_or(Field field, std::int64_t otherwise) {
    return has(field) ? integer(field) : otherwise;
  }
  std::int32_t small_or(Field field, std::int32_t otherwise);
  Nanoseconds time(Field field, double nanoseconds_per_unit);
  Nanoseconds nanoseconds(double given, double nanoseconds_per_unit, const std::string& what);
  bool kind_time(const Value& given, const char* text);
  Bytes whole_bytes(Field field);  // rounds up, because Microsoft's files contain fractions of a byte

  std::string_view text_;
  const char* reached_;
  TaskGraphBuilder builder_;
  const bool color_classes_;
  // `depth_` is the number of objects and arrays around the current position. `skipping_` is the
  // depth at which an ignored value began, or 0 outside ignored values.
  int depth_ = 0, skipping_ = 0;
  Section section_ = Section::kRoot;
  Format format_ = Format::kUndecided;
  std::unordered_set<std::string> fields_;  // the fields of the file so far, such as "nodes"
  Field field_ = kUnknown;
  std::string key_, name_, unknown_;
  // The first unknown field next to "nodes" and "edges", and its position.
  std::string unknown_of_file_;
  std::int64_t unknown_at_ = kNone;
  bool in_times_ = false;  // whether the parser is inside an object with times by kind of device
  std::vector<std::pair<std::string, Nanoseconds>> times_;
  std::uint32_t present_ = 0;
  std::array<Value, kFieldCount> values_;
};

std::string Reader::record() const {
  const auto number = [&](Field field) {
    return has(field) ? fmt::format("{}", values_[field].integer) : "?";
  };
  if (section_ == Section::kNodes) return "node " + number(kId);
  return fmt::format("edge {} -> {}", number(has(kFrom) ? kFrom : kSourceId),
                     number(has(kTo) ? kTo : kDestId));
}

double Reader::real(Field field) {
  if (!has(field)) fail(fmt::format("{}: {} is missing", record(), kFieldNames[field]));
  return values_[field].real;
}

std::int64_t Reader::integer(Field field) {
  const double given = real(field);
  if (!values_[field].integral)
    fail(fmt::format("{}: {} is {}, expected an integer", record(), kFieldNames[field], given));
  return values_[field].integer;
}

std::int32_t Reader::small_or(Field field, std::int32_t otherwise) {
  const std::int64_t given = integer_or(field, otherwise);
  if (has(field) && (given < 0 || given > std::numeric_limits<std::int32_t>::max()))
    fail(fmt::format("{}: {} is {}, expected 0 to 2^31-1", record(), kFieldNames[field], given));
  return static_cast<std::int32_t>(given);
}

Nanoseconds Reader::time(Field field, double nanoseconds_per_unit) {
  return nanoseconds(real(field), nanoseconds_per_unit, std::string(kFieldNames[field]));
}

Nanoseconds Reader::nanoseconds(double given, double nanoseconds_per_unit, const std::string& what) {
  const double nanoseconds = given * nanoseconds_per_unit;
  if (!(nanoseconds >= 0 && nanoseconds < 9e15))
    fail(fmt::format("{}: {} is {}, expected 0 or more and below 104 days", record(), what, given));
  return std::llround(nanoseconds);
}

bool Reader::kind_time(const Value& given, const char* text) {
  const std::string what = fmt::format("time_us of kind {}", brief(key_));
  if (*text != '\0') fail(fmt::format("{}: {} is {}, expected a number", record(), what, text));
  times_.emplace_back(key_, nanoseconds(given.real, 1e3, what));
  return true;
}

Bytes Reader::whole_bytes(Field field) {
  const double given = real(field);
  if (!(given >= 0 && given < 9e15))
    fail(fmt::format("{}: {} is {}, expected 0 or more and below 9e15", record(), kFieldNames[field], given));
  return static_cast<Bytes>(std::ceil(given));
}

void Reader::decide(Format format) {
  if (format_ != Format::kUndecided && format_ != format)
    fail(fmt::format("{}: field {} is of another format than the rest of the file", record(), brief(key_)));
  format_ = format;
}

bool Reader::key(std::string& given) {
  key_ = given;
  if (skipping_ > 0) return true;
  if (in_times_) return true;
  if (depth_ == 1) {
    section_ = given == "nodes" ? Section::kNodes : given == "edges" ? Section::kEdges : Section::kOther;
    if (section_ == Section::kOther && unknown_at_ == kNone)
      unknown_of_file_ = given, unknown_at_ = std::max<std::int64_t>(position(), 0);
    if (!fields_.insert(given).second) fail(fmt::format("field {} is given twice", brief(given)));
    return true;
  }
  field_ = field_of(given);
  if (field_ == kUnknown) {
    if (unknown_.empty()) unknown_ = given;
    return true;
  }
  if (has(field_)) fail(fmt::format("{}: {} is given twice", record(), given));
  if (field_ != kId && field_ != kName) decide(field_ <= kBytes ? Format::kOurs : Format::kMicrosoft);
  return true;
}

bool Reader::open(char bracket) {
  ++depth_;
  if (skipping_ > 0) return true;
  if (depth_ == 1) {
    if (bracket != '{') fail("expected an object with nodes and edges");
    section_ = Section::kRoot;
  } else if (depth_ == 2) {
    if (section_ == Section::kOther)
      skipping_ = depth_;
    else if (bracket != '[')
      fail(fmt::format("field {} is an object, expected an array", brief(key_)));
  } else if (depth_ == 3) {
    if (bracket != '{') fail("expected an object for each node and edge, found an array");
    begin_record();
  } else if (field_ == kTimeUs && bracket == '{' && !in_times_) {
    in_times_ = true;
    present_ |= 1u << field_;
    values_[field_] = {};
  } else {
    if (field_ != kUnknown)
      fail(fmt::format("{}: {} is nested, expected a plain value", record(), brief(key_)));
    skipping_ = depth_;
  }
  return true;
}

bool Reader::close() {
  if (skipping_ == depth_) {
    skipping_ = 0;
  } else if (in_times_) {
    in_times_ = false;
    if (times_.empty()) fail(fmt::format("{}: time_us is empty, expected a time for each kind", record()));
  } else if (skipping_ == 0 && depth_ == 3)
    end_record();
  --depth_;
  return true;
}

bool Reader::value(const Value& given, const char* text) {
  if (skipping_ > 0) return true;
  if (depth_ == 0) fail("expected an object with nodes and edges");
  if (depth_ == 1 && section_ != Section::kOther) fail(fmt::format("field {} is not an array", brief(key_)));
  if (depth_ == 1) return device_limit(given, text);
  if (depth_ == 2) fail("expected an object for each node and edge");
  if (in_times_) return kind_time(given, text);
  if (field_ == kUnknown) return true;
  const bool number = given.integral || given.real != 0 || *text == '\0';
  if (field_ == kName ? !given.text : !number)
    fail(fmt::format("{}: {} is {}, expected {}", record(), brief(key_), *text == '\0' ? "a number" : text,
                     field_ == kName ? "text" : "a number"));
  present_ |= 1u << field_;
  values_[field_] = given;
  return true;
}

// Microsoft's format stores limits of the machine as fields next to "nodes".
bool Reader::device_limit(const Value& given, const char* text) {
  const bool bytes = key_ == "maxSizePerFPGA", devices = key_ == "maxFPGAs";
  if (!bytes && !devices) return true;
  constexpr double kMostBytes = 9e15, kMostDevices = 4096;
  if (given.text || *text != '\0' || !(given.real > 0 && given.real <= (bytes ? kMostBytes : kMostDevices)) ||
      (devices && !given.integral))
    fail(fmt::format("{} is {}, expected a number above 0 and up to {}", key_,
                     *text != '\0' ? text : fmt::format("{}", given.real),
                     bytes ? kMostBytes : kMostDevices));
  if (bytes)
    builder_.set_device_memory(static_cast<Bytes>(given.real));
  else
    builder_.set_device_count(static_cast<std::int32_t>(given.integer));
  return true;
}

void Reader::begin_record() {
  present_ = 0;
  unknown_.clear(), name_.clear(), times_.clear();
}

void Reader::end_record() {
  if (format_ == Format::kUndecided)
    fail(fmt::format("{}: neither our fields (time_us, from) nor Microsoft's", record()));
  if (format_ == Format::kOurs && !unknown_.empty())
    fail(fmt::format("{}: unknown field {}", record(), brief(unknown_)));
  for (std::size_t field = 0; field < kFieldCount; ++field)
    if (has(static_cast<Field>(field)) && !belongs(static_cast<Field>(field), section_, format_))
      fail(fmt::format("{}: unknown field {}", record(), kFieldNames[field]));
  if (section_ == Section::kNodes)
    format_ == Format::kOurs ? end_our_node() : end_microsoft_node();
  else
    format_ == Format::kOurs ? end_our_edge() : end_microsoft_edge();
}

void Reader::end_our_node() {
  TaskNode node;
  node.id = integer(kId);
  node.name = std::move(name_);
  if (times_.empty())
    node.time = time(kTimeUs, 1e3);
  else
    node.times = std::move(times_);
  node.resident_bytes = integer(kResidentBytes);
  node.output_bytes = integer(kOutputBytes);
  if (has(kParameterBytes)) {
    node.parameter_bytes = integer(kParameterBytes);
    if (node.parameter_bytes < 0)
      fail(fmt::format("{}: parameter_bytes is {}, expected 0 or more", record(), node.parameter_bytes));
  }
  node.pin = small_or(kPin, kNone);
  node.colocate = small_or(kColocate, kNone);
  builder_.add_node(node, position());
}

void Reader::end_our_edge() {
  const std::int64_t bytes = integer_or(kBytes, TaskGraphBuilder::kOutputBytes);
  if (has(kBytes) && bytes < 0) fail(fmt::format("{}: bytes is {}, expected 0 or more", record(), bytes));
  const std::int64_t from = integer(kFrom), to = integer(kTo);
  builder_.add_edge(from, to, bytes, position());
}

void Reader::end_microsoft_node() {
  TaskNode node;
  node.id = integer(kId);
  node.name = std::move(name_);
  node.time = time(kFpgaLatency, 1e6);
  node.resident_bytes = whole_bytes(kSize);
  node.colocate = color_classes_ ? small_or(kColorClass, kNone) : kNone;
  if (has(kSupportedOnFpga) && values_[kSupportedOnFpga].real == 0)
    fail(fmt::format("{}: supportedOnFpga is false, and there are only accelerators to place it on",
                     record()));
  builder_.add_node(node, position());
}

void Reader::end_microsoft_edge() {
  const Nanoseconds cost = time(kCost, 1e6);
  const std::int64_t from = integer(kSourceId), to = integer(kDestId);
  builder_.add_timed_edge(from, to, cost, position());
}

}  // namespace

TaskGraph parse_task_graph_json(std::string_view text, const std::string& where, const ReadOptions& options) {
  return Reader(text, where, options).read();
}

}  // namespace convoy::partition
