// Reads a machine from a file.
#pragma once

#include <string>
#include <string_view>

#include "partition/simulation/machine.h"

namespace convoy::partition {

// The file is either a matrix or a cluster. A matrix is
//   {"devices": [{"count": 4, "speed": 1, "memory_bytes": 80000000000, "name": "fast"}, …],
//   "latency_us": N | [[…]…], "gbytes_per_second": N | [[…]…]}
// Defaults: `count` is 1, `speed` is 1, memory is unlimited. `name` is the kind, for graphs with
// times by kind. Row F, column T of a matrix is the link from device F to device T; its diagonal is
// ignored.
// A cluster is a file like those in jobs/topologies,
//   {"devices_per_node", "within_node": {"latency_us", "gbytes_per_second"}, "between_nodes": {…}}
// Only the links of a cluster are used. `devices` is the wanted number of devices. For a matrix it
// must be the matrix's own number, or 0. If it exceeds a cluster's devices_per_node, it must be a
// multiple of devices_per_node. Throws std::runtime_error of one line that names `where` and the
// field.
Machine parse_topology(std::string_view text, const std::string& where, DeviceIndex devices);

}  // namespace convoy::partition
