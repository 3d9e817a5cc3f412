// Reads PipeDream's profiles (github msr-fiddle/pipedream, profiler/*/profiles/*/graph.txt). A line
// describes either a node or an edge:
//   NODE -- TEXT -- forward_compute_time=MS, backward_compute_time=MS, activation_size=BYTES,
//           parameter_size=BYTES (all on one line)
//   a tab, then NODE -- NODE, which is an edge
// The time of a node is the sum of both times, its output is the activation, and its resident bytes
// are the parameters. A size may be a list in brackets; the sum of the list is then used.
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Reads a profile from its text. `where` is the name of the file. If a line is wrong, throws a
// std::runtime_error that begins with `where` and the number of the line.
TaskGraph parse_pipedream_profile(std::string_view text, const std::string& where);

}  // namespace convoy::partition
