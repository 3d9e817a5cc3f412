// The folder that ParDNN's programs read: graph.dot, durations.txt, tensor_bytes.txt; and the choice of
// reader.
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "partition/graph/read_task_graph.h"

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

// `name::value` lines; a name given twice, or a value that is not a whole number of 0 or more, is an error.
std::unordered_map<std::string_view, std::int64_t> read_values(const std::filesystem::path& path,
                                                               std::string_view text, const char* field) {
  std::unordered_map<std::string_view, std::int64_t> values;
  for_each_line(text, [&](std::int64_t line, std::string_view content) {
    const std::size_t colons = content.rfind("::");
    if (colons == std::string_view::npos)
      fail(path, line, fmt::format("expected NAME::{}, found \"{}\"", field, content.substr(0, 60)));
    const std::string_view name = unquoted(content.substr(0, colons)),
                           number = trimmed(content.substr(colons + 2));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 0 ||
        value > (std::int64_t{1} << 50))
      fail(path, line,
           fmt::format("node \"{}\": {} is \"{}\", expected a whole number, 0 or more", name, field, number));
    if (!values.emplace(name, value).second)
      fail(path, line, fmt::format("node \"{}\": {} is given twice", name, field));
  });
  return values;
}

bool is_terminal(std::string_view name) { return name == "src" || name == "snk"; }

// Calls visit(line, from, to) for each edge of the dot file.
template <typename Visit>
void read_edges(const std::filesystem::path& path, std::string_view text, const Visit& visit) {
  bool opened = false, closed = false;
  for_each_line(text, [&](std::int64_t line, std::string_view content) {
    if (closed) fail(path, line, "text after the closing brace");
    if (!opened) {
      if (!content.starts_with("digraph") || !content.ends_with('{'))
        fail(path, line, "expected \"digraph {\"");
      opened = true;
      return;
    }
    if (content == "}") {
      closed = true;
      return;
    }
    if (content.ends_with(';')) content = trimmed(content.substr(0, content.size() - 1));
    const std::size_t arrow = content.find("->");
    const std::string_view from = unquoted(content.substr(0, arrow));
    const std::string_view to =
        arrow == std::string_view::npos ? std::string_view() : unquoted(content.substr(arrow + 2));
    if (from.empty() || to.empty())
      fail(path, line, fmt::format("expected \"a\"->\"b\", found {}", content.substr(0, 60)));
    visit(line, from, to);
  });
  if (!closed) throw std::runtime_error(fmt::format("{}: ends before the closing brace", path.string()));
}

}  // namespace

// In pieces: a pipe has no size.
std::string read_text(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw std::runtime_error(fmt::format("{}: is a folder, expected a file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be opened", path.string()));
  constexpr std::size_t kPiece = 1 << 20;
  std::string text;
  if (std::filesystem::is_regular_file(path, none))
    text.reserve(static_cast<std::size_t>(std::filesystem::file_size(path)) + kPiece);
  while (file) {
    const std::size_t begin = text.size();
    text.resize(begin + kPiece);
    file.read(text.data() + begin, kPiece);
    text.resize(begin + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
  return text;
}

TaskGraph read_pardnn_folder(const std::filesystem::path& folder) {
  const auto dot = folder / "graph.dot", durations_file = folder / "durations.txt",
             bytes_file = folder / "tensor_bytes.txt";
  const std::string dot_text = read_text(dot), duration_text = read_text(durations_file),
                    bytes_text = read_text(bytes_file);
  const auto durations = read_values(durations_file, duration_text, "duration");
  const auto bytes = read_values(bytes_file, bytes_text, "bytes");

  TaskGraphBuilder builder(dot.string());
  builder.set_line_of([](std::int64_t line) { return line; });
  std::unordered_map<std::string_view, NodeIndex> number;
  const auto node_of = [&](std::string_view name, std::int64_t line) -> std::int64_t {
    const auto [entry, fresh] = number.emplace(name, static_cast<NodeIndex>(number.size()));
    if (!fresh) return entry->second;
    const auto duration = durations.find(name), size = bytes.find(name);
    TaskNode node;
    node.id = entry->second;
    node.name = name;
    node.time = 1000 * (duration == durations.end() ? 1 : duration->second);
    node.output_bytes = size == bytes.end() ? 0 : size->second;
    builder.add_node(node, line);
    return node.id;
  };
  read_edges(dot, dot_text, [&](std::int64_t line, std::string_view from, std::string_view to) {
    const std::int64_t producer = is_terminal(from) ? kNone : node_of(from, line);
    const std::int64_t consumer = is_terminal(to) ? kNone : node_of(to, line);
    if (producer != kNone && consumer != kNone)
      builder.add_edge(producer, consumer, TaskGraphBuilder::kOutputBytes, line);
  });
  return builder.build();
}

TaskGraph read_task_graph(const std::filesystem::path& path, const ReadOptions& options) {
  if (std::filesystem::is_directory(path)) return read_pardnn_folder(path);
  return parse_task_graph_json(read_text(path), path.string(), options);
}

}  // namespace convoy::partition
