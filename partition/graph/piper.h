// Reads Piper's inputs (github msr-fiddle/piper, inputs/*.json). These fields are used:
//   nodes[].id, name
//   nodes[].TMPCs["1"][0]      the first way to run the node without tensor parallelism:
//     .timePerSample           its time in s, because Piper adds it to bytes / bandwidth
//     .parameterSize           TaskNode::parameter_bytes
//     .memoryUsageB            TaskNode::resident_bytes
//     .memoryUsageA            TaskNode::output_bytes
//   edges[].sourceId, destId
//   edges[].communicationCost  bytes of the edge
//   maxDevices                 TaskGraph::device_count()
//   maxMemoryPerDevice         TaskGraph::device_memory(), in bytes
//   bandwidth                  bytes per second of a link, for TaskGraph::bytes_per_ns()
//   mbsInBatch                 TaskGraph::micro_batches()
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Reads an input from its text. `where` is the name of the file. If the text is wrong, throws a
// std::runtime_error that begins with `where`.
TaskGraph parse_piper_input(std::string_view text, const std::string& where);

}  // namespace convoy::partition
