// Reads the nodes and edges of directed graphs in the DOT language
// (graphviz.org/doc/info/lang.html), and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace convoy::partition {

// Receives the nodes and edges of a file. A name is a view of the file's text. If the name contains
// escapes, it is a view of memory that is valid until read_dot() returns.
struct DotVisitor {
  // Called for each name in a statement, including both ends of an edge.
  std::function<void(std::int64_t line, std::string_view name)> node;
  std::function<void(std::int64_t line, std::string_view from, std::string_view to)> edge;
};

// Calls the visitor in the order of the text. Several statements may be on one line, and `a -> b ->
// c` is two edges. Attributes, ports (`a:p1`) and comments are skipped. A name without quotes may
// contain anything except blanks, quotes, arrows and the characters : ; , = [ ] { }.
//
// Throws a std::runtime_error of one line, `where:LINE: …`, for undirected edges, subgraphs, and
// text before or after the graph.
void read_dot(std::string_view text, const std::string& where, const DotVisitor& visitor);

}  // namespace convoy::partition
