// Task graphs in JSON: our format and Microsoft's. The fields of a file tell which one it is.
//
// Our format: {"nodes": [{node}, …], "edges": [{edge}, …]}. Unknown fields are errors.
//   id                node: a whole number, unique in the file
//   name              node: text; optional
//   time_us           node: µs, kept to the nanosecond; or an object of µs by kind of device
//   resident_bytes    node: bytes that stay on its device
//   output_bytes      node: bytes of its output
//   parameter_bytes   node: bytes that a pipeline's replicas exchange; default: resident_bytes
//   pin               node: the device it must be on; optional
//   colocate          node: number of its colocation group; optional
//   from, to          edge: ids of its nodes
//   bytes             edge: bytes that it moves; default: output_bytes of its producer
//
// Microsoft's format (the README of msr-fiddle/dnn-partitioning). Other fields are ignored.
//   id, name          node: as above
//   fpgaLatency       node: time in ms
//   size              node: resident bytes
//   colorClass        node: colocation group; see ReadOptions
//   supportedOnFpga   node: must not be false
//   sourceId, destId  edge: ids of its nodes
//   cost              edge: time of the transfer in ms, to which a machine adds only its latency
//   size              edge: bytes that it moves; optional
//   maxSizePerFPGA    file: device_memory(); optional
//   maxFPGAs          file: device_count(); optional
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct ReadOptions {
  // Whether Microsoft's colour classes become colocation groups. They tie a layer's forward node to
  // its backward node, as pipelines need. Published latency figures ignore them.
  bool color_classes = false;
};

// Reads a graph in either format from its text. If the text has a defect, throws std::runtime_error
// that begins with `where` (the file's name) and the number of the line.
TaskGraph parse_task_graph_json(std::string_view text, const std::string& where,
                                const ReadOptions& options = {});

// Returns the graph in our format, with one node or edge per line.
std::string task_graph_json(const TaskGraph& graph);

}  // namespace convoy::partition
