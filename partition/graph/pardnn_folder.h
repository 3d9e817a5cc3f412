// Reads the input folders of ParDNN's programs (github ParCoreLab/pardnn). Some files have two
// accepted names: the second one is the default of ParDNN's program.
//   graph.dot, or crn_src_sink_low.dot: the graph in the DOT language (dot.h)
//   durations.txt, or nodes_average_durations_fixed.txt: lines NAME::µs; a node's default is 1 µs
//   tensor_bytes.txt, or tensors_sz_32_low.txt: lines NAME::bytes, the size of a node's output
//       tensor for transfers; default 0
//   memory.txt (optional): lines NAME::bytes, the memory of a node's output, if that differs from
//       its tensor's size
//   var_nodes.txt (optional): names of variables, whose bytes stay on their device
// The artificial nodes src and snk are dropped. Lines about nodes that are not in the graph are
// ignored, because the files come from different steps of profiling.
#pragma once

#include <filesystem>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Throws a std::runtime_error that names the file. If a line is wrong, it names the line, too.
TaskGraph read_pardnn_folder(const std::filesystem::path& folder);

}  // namespace convoy::partition
