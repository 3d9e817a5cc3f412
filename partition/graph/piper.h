// Piper's inputs (github msr-fiddle/piper, inputs/*.json). The fields that are read:
//   nodes[].id, name
//   nodes[].TMPCs["1"][0]      the first way to run the node without tensor parallelism:
//     .timePerSample           its time in s, because Piper adds it to bytes / bandwidth
//     .parameterSize           parameter_bytes
//     .memoryUsageB            resident_bytes
//     .memoryUsageA            output_bytes
//   edges[].sourceId, destId
//   edges[].communicationCost  bytes of the edge
//   maxDevices                 device_count()
//   maxMemoryPerDevice         device_memory(), in bytes
//   bandwidth                  bytes per second of a link, for bytes_per_ns()
//   mbsInBatch                 micro_batches()
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

// Reads an input from its text. If the text has a defect, throws std::runtime_error that begins
// with `where` (the file's name).
TaskGraph parse_piper_input(std::string_view text, const std::string& where);

}  // namespace convoy::partition
