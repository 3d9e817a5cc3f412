// Reads task graphs in JSON, in Convoy's format or Microsoft's. The fields of a file tell its
// format.
//
// Convoy's format: {"nodes": [{node}, …], "edges": [{edge}, …]}. Unknown fields are errors.
//   id                node: a whole number, unique in the file
//   name              node: text; optional
//   time_us           node: time in µs, stored in whole nanoseconds; or an object with a time in µs
//                     for each kind of device
//   resident_bytes    node: bytes that stay on its device
//   output_bytes      node: bytes of its output
//   parameter_bytes   node: bytes that a pipeline's replicas exchange; default: resident_bytes
//   pin               node: number of the device on which it must run; optional
//   colocate          node: number of a group of nodes that must share one device; optional
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
//   cost              edge: time of the transfer in ms; the machine model adds only its latency
//   size              edge: bytes that it moves; optional
//   maxSizePerFPGA    file: TaskGraph::device_memory(); optional
//   maxFPGAs          file: TaskGraph::device_count(); optional
#pragma once

#include <string>
#include <string_view>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct ReadOptions {
  // Whether Microsoft's colour classes become colocation groups. A class ties the forward node of a
  // layer to its backward node, which pipelines need. Published latencies were computed without
  // them.
  bool color_classes = false;
};

// Reads a graph in either format from its text. `where` is the name of the file. If the text is
// wrong, throws a std::runtime_error that begins with `where` and the number of the line.
TaskGraph parse_task_graph_json(std::string_view text, const std::string& where,
                                const ReadOptions& options = {});

// Returns the graph in Convoy's format, with one node or edge per line. Throws std::runtime_error
// if the edges have transfer times, because the format cannot hold them.
std::string task_graph_json(const TaskGraph& graph);

}  // namespace convoy::partition
