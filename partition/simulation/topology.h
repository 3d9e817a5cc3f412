// A machine from a file.
#pragma once

#include <string>
#include <string_view>

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Either a matrix,
//   {"devices": [{"count": 4, "speed": 1, "memory_bytes": 80000000000, "name": "fast"}, …],
//    "latency_us": N | [[…]…], "gbytes_per_second": N | [[…]…]}
// where `count` is 1, `speed` 1 and memory unlimited if they are not given, `name` is the kind that
// graphs may have times for, and row F, column T of a matrix is the link from device F to device T
// (the diagonal is not looked
// at); or a cluster as in jobs/topologies,
// {"devices_per_node", "within_node": {"latency_us", "gbytes_per_second"}, "between_nodes": {…}},
// of which only the links are used. `devices` (0: as many as the file has) must be what a matrix
// has, and a multiple of a cluster's devices a node. Throws std::runtime_error of one line that
// names `where` and the field.
Machine parse_topology(std::string_view text, const std::string& where, DeviceIndex devices);

}  // namespace convoy::partition
