// Reads task graphs from files. Every reader is strict: the first defect throws a
// std::runtime_error of one line, `FILE:LINE: node …: field …`. A reader fills in only the defaults
// that the header of its format names.
#pragma once

#include <filesystem>

#include "partition/graph/task_graph.h"
#include "partition/graph/task_graph_json.h"

namespace convoy::partition {

// Recognises the format and reads the graph:
//   - a folder is ParDNN's (pardnn_folder.h);
//   - a file with " -- " in its first line that does not begin with { is PipeDream's (pipedream.h);
//   - a file with "TMPCs" in its first 64 KiB is Piper's (piper.h);
//   - any other file is JSON, ours or Microsoft's by the fields that it has (task_graph_json.h).
TaskGraph read_task_graph(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace convoy::partition
