// PipeDream's profiles (github msr-fiddle/pipedream, profiler/*/profiles/*/graph.txt).
// A line is one of:
//   NODE -- TEXT -- forward_compute_time=MS, backward_compute_time=MS, activation_size=BYTES,
//           parameter_size=BYTES (all on one line)
//   a tab, then NODE -- NODE, which is an edge
// A node's time is the sum of both times, its output the activation, and its resident bytes are the
// parameters. A size may be a list in brackets, which stands for its sum.
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Reads a profile from its text. If the text has a defect, throws std::runtime_error that begins
// with `where` (the file's name) and the number of the line.
TaskGraph parse_pipedream_profile(std::string_view text, const std::string& where);

}  // namespace convoy::partition
