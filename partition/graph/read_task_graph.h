// Task graphs from files. All readers are strict: the first defect ends the reading with a
// std::runtime_error of one line, `FILE:LINE: node …: field …`. Nothing is guessed except what each
// format documents below.
#pragma once

#include <filesystem>
#include <string>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

struct ReadOptions {
  // Microsoft's colour classes tie a layer's forward to its backward node, a constraint of their
  // pipelined setting. The published latency figures do without it, and so does this by default.
  bool color_classes = false;
};

// A folder is read as ParDNN's; a file that begins with a brace as JSON, ours or Microsoft's by the
// fields it uses; any other that has " -- " in its first line as PipeDream's.
//
// Ours: {"nodes": [{"id", "time_us", "resident_bytes", "output_bytes", "name"?, "pin"?,
// "colocate"?}],
//        "edges": [{"from", "to", "bytes"?}]}. Times may be fractions of a microsecond and are kept
//        to the
//   nanosecond; an edge without bytes carries its producer's output. Unknown fields are errors.
//
// Microsoft's (the README of msr-fiddle/dnn-partitioning): times in milliseconds; `fpgaLatency` is
// the node's time,
//   `size` its resident bytes, `colorClass` its colocation group (see ReadOptions), an edge's
//   `cost` the time
//   of a transfer (a machine adds only its latency) and its optional `size` the bytes moved;
//   `maxSizePerFPGA` and `maxFPGAs`
//   become device_memory() and device_count(). Other fields are ignored, as the README allows.
//
// ParDNN's (github ParCoreLab/pardnn): a DOT file (dot.h), durations (name::µs, 1 µs for a node not
// listed) and tensor sizes
//   (name::bytes, 0 when not listed), as graph.dot, durations.txt and tensor_bytes.txt or under the
//   program's own names,
//   crn_src_sink_low.dot, nodes_average_durations_fixed.txt and tensors_sz_32_low.txt. memory.txt
//   (name::bytes), if there,
//   says what a node's output takes in memory, and var_nodes.txt names variables, whose bytes stay
//   on their device. The
//   artificial terminals src and snk are dropped; entries for nodes that the graph lacks are
//   ignored, as the files come from
//   different profiling steps.
// PipeDream's profiles (github msr-fiddle/pipedream, graph.txt): `node1 -- TEXT --
// forward_compute_time=MS,
//   backward_compute_time=MS, activation_size=BYTES, parameter_size=BYTES` and, after a tab, `node1
//   -- node2`. A node's time is
//   both times together, its resident bytes are its parameters; a size may be a list in brackets,
//   of which the sum is taken.
// Piper's inputs (github msr-fiddle/piper, inputs/*.json), known by "TMPCs" in the first 64 KiB: of
//   each node the first entry of TMPCs["1"], so without tensor parallelism. timePerSample is in
//   seconds, as Piper adds it to bytes / bandwidth; parameterSize is exchanged, memoryUsageB is
//   resident, memoryUsageA is the output, and an edge's communicationCost is its bytes. maxDevices,
//   maxMemoryPerDevice, bandwidth and mbsInBatch describe the machine and the batch.
TaskGraph read_task_graph(const std::filesystem::path& path, const ReadOptions& options = {});

TaskGraph read_pardnn_folder(const std::filesystem::path& folder);
TaskGraph parse_piper_input(std::string_view text, const std::string& where);
TaskGraph parse_pipedream_profile(std::string_view text, const std::string& where);
TaskGraph parse_task_graph_json(std::string_view text, const std::string& where,
                                const ReadOptions& options = {});

// The text of a file or a pipe; throws std::runtime_error naming it.
std::string read_text(const std::filesystem::path& path);

// Our JSON, one node or edge a line.
std::string task_graph_json(const TaskGraph& graph);

}  // namespace convoy::partition
