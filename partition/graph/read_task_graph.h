// Reads task graphs from files of several formats. The first error in a file throws a
// std::runtime_error of one line, `FILE:LINE: node …: field …`. Missing values are errors unless
// the header of the format's reader names a default.
#pragma once

#include <filesystem>

#include "partition/graph/task_graph.h"
#include "partition/graph/task_graph_json.h"

namespace convoy::partition {

// Recognises the format and reads the graph:
//   - a folder is in ParDNN's format (pardnn_folder.h);
//   - a file with " -- " in its first line that does not begin with { is PipeDream's (pipedream.h);
//   - a file with "TMPCs" in its first 64 KiB is Piper's (piper.h);
//   - any other file is JSON in Convoy's or Microsoft's format, which its fields tell
//     (task_graph_json.h).
TaskGraph read_task_graph(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace convoy::partition
