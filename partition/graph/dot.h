// The directed graphs of the DOT language (graphviz.org/doc/info/lang.html), as far as a list of
// edges goes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace convoy::partition {

// Names are views into the text, or into storage that lives until read_dot returns where they have
// escapes.
struct DotVisitor {
  std::function<void(std::int64_t line, std::string_view name)> node;  // each time that a statement names one
  std::function<void(std::int64_t line, std::string_view from, std::string_view to)> edge;
};

// Statements may share lines; `a -> b -> c` are two edges; attributes and comments are skipped;
// names without quotes may hold anything but blanks, quotes and the characters ; , = [ ] { }, and
// an arrow ends them. Throws std::runtime_error of one line, `where:LINE: …`, for anything else:
// undirected edges, subgraphs, ports, text before or after the one graph.
void read_dot(std::string_view text, const std::string& where, const DotVisitor& visitor);

}  // namespace convoy::partition
