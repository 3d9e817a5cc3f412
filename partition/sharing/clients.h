// Jobs that share one device, and the device. Here a job is called a client: it brings its data,
// runs kernels, and takes its results away. docs/sharing_simulation.md has the rules with examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/simulation/machine.h"

namespace convoy::partition::sharing {

using ClientIndex = std::int32_t;  // 0 … count-1, in the order of the file

struct Client {
  std::string name;
  Nanoseconds arrival = 0;                // time at which the client comes
  Nanoseconds copy_in = 0;                // time to copy all data of the client to the device
  std::vector<Nanoseconds> kernels = {};  // times of the client's kernels in order; at least one
  // idle[i]: gap between the end of kernels[i] and the earliest start of kernels[i + 1]
  std::vector<Nanoseconds> idle = {};
  Nanoseconds copy_back = 0;  // time to copy all data of the client to the host; 0: nothing to keep
  Bytes bytes = 0;            // device memory of the client
};

// How much memory a client in a gap may lose to others: none, all of it, or as much as they need.
enum class Eviction { kOff, kWhole, kPartial };

struct Device {
  // Number of engines; each runs one kernel at a time at full speed.
  std::int32_t compute_engines = 1;
  Bytes memory = kUnlimited;
  Eviction eviction = Eviction::kPartial;
};

inline constexpr std::int32_t kMostComputeEngines = 256;

// Clients and their device. The constructor checks them and computes sums that policies and bounds
// need.
class Workload {
 public:
  // Throws std::runtime_error of one line that begins with `where`. It does so for a client that is
  // larger than the memory, has no kernels, or does not have one gap between each two kernels, and
  // if all times add up to 104 days or more.
  Workload(std::vector<Client> clients, Device device, const std::string& where);

  ClientIndex count() const { return static_cast<ClientIndex>(clients_.size()); }
  const Client& client(ClientIndex client) const { return clients_[client]; }
  const Device& device() const { return device_; }
  // Time of all kernels of the client.
  Nanoseconds busy(ClientIndex client) const { return busy_[client]; }
  // Time of all gaps of the client.
  Nanoseconds idle(ClientIndex client) const { return idle_[client]; }
  // Returns whether the client needs more than half of the memory. Two such clients are never on
  // the device together.
  bool large(ClientIndex client) const { return clients_[client].bytes > device_.memory / 2; }

 private:
  std::vector<Client> clients_;
  Device device_;
  std::vector<Nanoseconds> busy_, idle_;  // total time of the kernels and of the gaps, by client
};

struct ClientFile {
  std::vector<Client> clients;
  Bytes memory = kUnlimited;
};

// The format is
//   {"clients": [{"name", "copy_us", "kernels": [us, …], "idle_us": [us, …]?, "copy_back_us"?,
//   "bytes"?, "arrival_us"?}, …], "memory_bytes"?}
// Fields with ? are optional. Times may be fractions and are kept to the nanosecond. Throws
// std::runtime_error of one line that names `where`, the client and the field: for an unknown,
// missing or repeated field, a time that is negative or no number, and a name that is empty or
// given twice.
ClientFile parse_clients(std::string_view text, const std::string& where);

}  // namespace convoy::partition::sharing
