// Jobs that share one device, and the device. Such a job is called a client: it brings its data,
// runs kernels, and takes its results away. docs/sharing_simulation.md has the rules with examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partition/graph/task_graph.h"
#include "partition/simulation/machine.h"

namespace convoy::partition::sharing {

using ClientIndex = std::int32_t;  // 0 … count-1, in the order of the job file

struct Client {
  std::string name;
  Nanoseconds arrival = 0;                // time at which the client arrives
  Nanoseconds copy_in = 0;                // time to copy all data of the client to the device
  std::vector<Nanoseconds> kernels = {};  // times of the client's kernels in order; at least one
  // idle[i] is the gap between the end of kernels[i] and the earliest start of kernels[i + 1].
  std::vector<Nanoseconds> idle = {};
  Nanoseconds copy_back = 0;  // time to copy the client's data back to the host; 0: nothing to copy
  Bytes bytes = 0;            // device memory of the client
};

// How much of the memory of a client in a gap between kernels may be evicted for other clients:
// none, only all of it, or as much as they need.
enum class EvictionPolicy { kOff, kWhole, kPartial };

struct SharedDeviceSpec {
  // The number of compute engines. Each runs one kernel at a time at full speed.
  std::int32_t compute_engines = 1;
  Bytes memory = kUnlimited;
  EvictionPolicy eviction = EvictionPolicy::kPartial;
};

inline constexpr std::int32_t kMostComputeEngines = 256;

// Clients and their device. The constructor checks them and computes sums for policies and bounds.
class Workload {
 public:
  // Throws a std::runtime_error of one line that begins with `where` in these cases: a client is
  // larger than the memory, has no kernels, or does not have one gap between each two kernels; or
  // all times add up to 104 days or more.
  Workload(std::vector<Client> clients, SharedDeviceSpec device, const std::string& where);

  ClientIndex count() const { return static_cast<ClientIndex>(clients_.size()); }
  const Client& client(ClientIndex client) const { return clients_[client]; }
  const SharedDeviceSpec& device() const { return device_; }
  // Returns the total time of the client's kernels.
  Nanoseconds busy(ClientIndex client) const { return busy_[client]; }
  // Returns the total time of the client's gaps.
  Nanoseconds idle(ClientIndex client) const { return idle_[client]; }
  // Returns whether the client needs more than half of the memory. Two such clients are never on
  // the device at the same time.
  bool large(ClientIndex client) const { return clients_[client].bytes > device_.memory / 2; }

 private:
  std::vector<Client> clients_;
  SharedDeviceSpec device_;
  std::vector<Nanoseconds> busy_, idle_;  // for each client, total time of its kernels and of its gaps
};

struct ClientFile {
  std::vector<Client> clients;
  Bytes memory = kUnlimited;
};

// Reads clients from JSON. The format is
//   {"clients": [{"name", "copy_us", "kernels": [us, …], "idle_us": [us, …]?, "copy_back_us"?,
//   "bytes"?, "arrival_us"?}, …], "memory_bytes"?}
// Fields with ? are optional. Times may be fractions and are stored in whole nanoseconds. Throws a
// std::runtime_error of one line that begins with `where` and says what is wrong: text that is not
// JSON, an unknown, missing or repeated field, a value of a wrong type or range, or a name that is
// empty or used twice.
ClientFile parse_clients(std::string_view text, const std::string& where);

}  // namespace convoy::partition::sharing
