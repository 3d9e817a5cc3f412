#include "partition/graph/pipedream.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "partition/graph/brief.h"

namespace convoy::partition {
namespace {

constexpr std::string_view kSeparator = " -- ";

class PipeDreamReader {
 public:
  PipeDreamReader(std::string_view text, const std::string& where)
      : text_(text), where_(where), builder_(where) {
    builder_.set_line_of([](std::int64_t line) { return line; });
  }

  TaskGraph read() {
    std::vector<std::pair<std::int64_t, std::string_view>> edges;
    for (line_ = 1; !text_.empty(); ++line_) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view content = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (content.ends_with('\r')) content.remove_suffix(1);
      if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
      if (content[0] == '\t')
        edges.emplace_back(line_, content.substr(1));
      else
        node(content);
    }
    for (const auto& [line, content] : edges) {
      line_ = line;
      const std::size_t middle = content.find(kSeparator);
      if (middle == std::string_view::npos)
        fail(fmt::format("expected NODE -- NODE, found \"{}\"", brief(content)));
      builder_.add_edge(id(content.substr(0, middle)), id(content.substr(middle + kSeparator.size())),
                        TaskGraphBuilder::kOutputBytes, line);
    }
    return builder_.build();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { builder_.fail(line_, what); }

  std::int64_t id(std::string_view name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end()) fail(fmt::format("no node has the name {}", brief(name)));
    return found->second;
  }

  void node(std::string_view content) {
    const std::size_t name_end = content.find(kSeparator);
    const std::size_t values = content.find(" -- forward_compute_time=");
    if (name_end == std::string_view::npos || values == std::string_view::npos)
      fail(fmt::format("expected NODE -- TEXT -- forward_compute_time=…, found \"{}\"", brief(content)));
    TaskNode task;
    task.id = static_cast<std::int64_t>(ids_.size());
    if (!ids_.emplace(content.substr(0, name_end), task.id).second)
      fail(fmt::format("node {} is given twice", brief(content.substr(0, name_end))));
    if (values > name_end)
      task.name = content.substr(name_end + kSeparator.size(), values - name_end - kSeparator.size());
    const std::string_view fields = content.substr(values);
    const double ms = value(fields, "forward_compute_time=") + value(fields, "backward_compute_time=");
    task.time = std::llround(ms * 1e6);
    task.output_bytes = static_cast<Bytes>(std::ceil(value(fields, "activation_size=")));
    task.resident_bytes = static_cast<Bytes>(std::ceil(value(fields, "parameter_size=")));
    builder_.add_node(task, line_);
  }

  // Returns the number in a field. If the field is a list in brackets, returns the sum of the list.
  double value(std::string_view content, std::string_view field) const {
    const std::size_t found = content.find(field);
    if (found == std::string_view::npos) fail(fmt::format("{} is missing", field));
    if (content.find(field, found + field.size()) != std::string_view::npos)
      fail(fmt::format("{} is given twice", field));
    std::string_view rest = content.substr(found + field.size());
    const bool list = rest.starts_with('[');
    if (list) rest.remove_prefix(1);
    double sum = 0;
    for (;;) {
      double one = 0;
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), one);
      constexpr double kMost = 9e12;
      if (error != std::errc() || !(one >= 0 && one <= kMost))
        fail(fmt::format("{} is \"{}\", expected a number from 0 to 9e12", field,
                         brief(rest.substr(0, rest.find(',')))));
      sum += one;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (!list || rest.starts_with(']')) return sum;
      if (!rest.starts_with(';') && !rest.starts_with(','))
        fail(fmt::format("{} is a list without end", field));
      rest.remove_prefix(1);
    }
  }

  std::string_view text_;
  const std::string where_;
  TaskGraphBuilder builder_;
  std::unordered_map<std::string_view, std::int64_t> ids_;
  std::int64_t line_ = 1;
};

}  // namespace

TaskGraph parse_pipedream_profile(std::string_view text, const std::string& where) {
  return PipeDreamReader(text, where).read();
}

}  // namespace convoy::partition
