// Reads a machine from a file.
#pragma once

#include <string>
#include <string_view>

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Reads a machine from JSON: either a matrix of links or a cluster. A matrix is
//   {"devices": [{"count": 4, "speed": 1, "memory_bytes": 80000000000, "name": "fast"}, …],
//   "latency_us": N | [[…]…], "gbytes_per_second": N | [[…]…]}
// Defaults: `count` is 1, `speed` is 1, memory is unlimited. `name` is the kind of device, for
// graphs with times by kind. Row F, column T of a matrix is the link from device F to device T. The
// diagonal is ignored.
//
// A cluster is a file like those in jobs/topologies, of which only the links are used:
//   {"devices_per_node", "within_node": {"latency_us", "gbytes_per_second"}, "between_nodes": {…}}
// `devices` is the wanted number of devices. For a matrix it must be the number of devices in the
// file, or 0. If it exceeds a cluster's devices_per_node, it must be a multiple of
// devices_per_node. Throws a std::runtime_error of one line that names `where` and the field.
Machine parse_topology(std::string_view text, const std::string& where, DeviceIndex devices);

}  // namespace convoy::partition
