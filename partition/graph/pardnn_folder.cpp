#include "partition/graph/pardnn_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "partition/graph/brief.h"
#include "partition/graph/dot.h"
#include "partition/graph/read_text.h"

namespace convoy::partition {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2)
                                                                       : text;
}

[[noreturn]] void fail(const std::filesystem::path& path, std::int64_t line, const std::string& what) {
  throw std::runtime_error(fmt::format("{}:{}: {}", path.string(), line, what));
}

template <typename Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    if (!content.empty()) visit(line, content);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

using Values = std::unordered_map<std::string_view, std::int64_t>;
// Reads lines `name::value` and rounds fractions up. Throws if a name occurs twice, or if a value
// is not a number of at least 0.
Values read_values(const std::filesystem::path& path, std::string_view text, const char* field) {
  Values values;
  for_each_line(text, [&](std::int64_t line, std::string_view content) {
    const std::size_t colons = content.rfind("::");
    if (colons == std::string_view::npos)
      fail(path, line, fmt::format("expected NAME::{}, found \"{}\"", field, brief(content)));
    const std::string_view name = unquoted(content.substr(0, colons)),
                           number = trimmed(content.substr(colons + 2));
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    constexpr double kMost = 1e15;
    if (error != std::errc() || end != number.data() + number.size() || !(value >= 0 && value <= kMost))
      fail(path, line,
           fmt::format("node \"{}\": {} is \"{}\", expected a number from 0 to 1e15", brief(name), field,
                       brief(number)));
    if (!values.emplace(name, static_cast<std::int64_t>(std::ceil(value))).second)
      fail(path, line, fmt::format("node \"{}\": {} is given twice", brief(name), field));
  });
  return values;
}

std::int64_t value_or(const Values& values, std::string_view name, std::int64_t otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

bool is_terminal(std::string_view name) { return name == "src" || name == "snk"; }

// Returns the path of the first of these files that exists. The names are Convoy's name and the
// default name of ParDNN's program. Throws std::runtime_error if neither exists.
std::filesystem::path file_of(const std::filesystem::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::filesystem::exists(folder / name)) return folder / name;
  throw std::runtime_error(
      fmt::format("{}: has neither {} nor {}", folder.string(), *names.begin(), *(names.end() - 1)));
}

// A file of the folder. Its text is empty if the file is missing.
struct OptionalFile {
  std::filesystem::path path;
  std::string text;
  explicit OptionalFile(std::filesystem::path file) : path(std::move(file)) {
    if (std::filesystem::exists(path)) text = read_text(path);
  }
};

std::unordered_set<std::string_view> read_names(std::string_view text) {
  std::unordered_set<std::string_view> names;
  for_each_line(text, [&](std::int64_t, std::string_view content) { names.insert(unquoted(content)); });
  return names;
}

}  // namespace

TaskGraph read_pardnn_folder(const std::filesystem::path& folder) {
  const auto dot = file_of(folder, {"graph.dot", "crn_src_sink_low.dot"}),
             durations_file = file_of(folder, {"durations.txt", "nodes_average_durations_fixed.txt"}),
             bytes_file = file_of(folder, {"tensor_bytes.txt", "tensors_sz_32_low.txt"});
  const std::string dot_text = read_text(dot), duration_text = read_text(durations_file),
                    bytes_text = read_text(bytes_file);
  const Values durations = read_values(durations_file, duration_text, "duration");
  const Values bytes = read_values(bytes_file, bytes_text, "bytes");
  const OptionalFile memory_file(folder / "memory.txt"), variables_file(folder / "var_nodes.txt");
  const Values memory = read_values(memory_file.path, memory_file.text, "memory");
  const auto variables = read_names(variables_file.text);

  TaskGraphBuilder builder(dot.string());
  builder.set_line_of([](std::int64_t line) { return line; });
  std::unordered_map<std::string, NodeIndex> number;
  const auto node_of = [&](std::string_view name, std::int64_t line) -> std::int64_t {
    const auto [entry, fresh] = number.emplace(name, static_cast<NodeIndex>(number.size()));
    if (!fresh) return entry->second;
    TaskNode node;
    node.id = entry->second;
    node.name = name;
    node.time = 1000 * value_or(durations, name, 1);
    node.output_bytes = value_or(memory, name, value_or(bytes, name, 0));
    if (variables.contains(name)) node.resident_bytes = std::exchange(node.output_bytes, 0);
    builder.add_node(node, line);
    return node.id;
  };
  DotVisitor visitor;
  visitor.node = [&](std::int64_t line, std::string_view name) {
    if (!is_terminal(name)) node_of(name, line);
  };
  visitor.edge = [&](std::int64_t line, std::string_view from, std::string_view to) {
    if (is_terminal(from) || is_terminal(to)) return;
    builder.add_edge(node_of(from, line), node_of(to, line), value_or(bytes, from, 0), line);
  };
  read_dot(dot_text, dot.string(), visitor);
  return builder.build();
}

}  // namespace convoy::partition
