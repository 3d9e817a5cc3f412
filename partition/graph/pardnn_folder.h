// The folder that ParDNN's programs read (github ParCoreLab/pardnn). Each file may have our name or
// the default name of the program:
//   graph.dot, or crn_src_sink_low.dot: the graph in the DOT language (dot.h)
//   durations.txt, or nodes_average_durations_fixed.txt: lines NAME::µs; a node's default is 1 µs
//   tensor_bytes.txt, or tensors_sz_32_low.txt: lines NAME::bytes of a node's tensor; default 0
//   memory.txt (optional): lines NAME::bytes, the memory of a node's output, if not its tensor's
//   var_nodes.txt (optional): names of variables, whose bytes stay on their device
// The artificial nodes src and snk are dropped. Lines about nodes that the graph does not have are
// ignored, because the files come from different steps of profiling.
#pragma once

#include <filesystem>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Reads such a folder. Throws std::runtime_error that names the file and, if a line has a defect,
// the line.
TaskGraph read_pardnn_folder(const std::filesystem::path& folder);

}  // namespace convoy::partition
