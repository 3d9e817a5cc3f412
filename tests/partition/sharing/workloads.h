// Makes clients (jobs) that share a device, for tests.
#pragma once

#include <string>
#include <vector>

#include "partition/random.h"
#include "partition/sharing/clients.h"

namespace convoy::partition::sharing::testing {

// A client with all times in µs, as in the job file of `convoy simulate --jobs`. workload_of()
// converts them to nanoseconds.
struct Given {
  double copy = 0;
  std::vector<double> kernels;
  std::vector<double> idle = {};
  double back = 0;
  Bytes bytes = 0;
  double arrival = 0;
};

inline Nanoseconds ns(double micros) { return static_cast<Nanoseconds>(micros * 1e3); }

inline Workload workload_of(const std::vector<Given>& given, SharedDeviceSpec device = {}) {
  std::vector<Client> clients;
  for (const Given& from : given) {
    Client client{.name = std::string(1, static_cast<char>('a' + clients.size()))};
    client.copy_in = ns(from.copy), client.copy_back = ns(from.back), client.arrival = ns(from.arrival);
    client.bytes = from.bytes;
    for (const double time : from.kernels) client.kernels.push_back(ns(time));
    for (const double time : from.idle) client.idle.push_back(ns(time));
    client.idle.resize(client.kernels.size() - 1, 0);
    clients.push_back(std::move(client));
  }
  return Workload(std::move(clients), device, "test");
}

struct Mix {
  ClientIndex clients = 8;
  // largest time of each kind in µs; 0: none
  std::int64_t copy = 100, kernel = 100, back = 0, idle = 0, arrival = 0;
  std::int64_t kernels = 1;  // most kernels of one client
};

// Chooses each time at random from 0 to the largest of its kind. A client has 1000 bytes per µs of
// its copy.
inline Workload random_workload(std::uint64_t seed, const Mix& mix, SharedDeviceSpec device = {}) {
  Random random(seed);
  const auto draw = [&](std::int64_t most) { return most == 0 ? 0 : 1000 * random.below(most + 1); };
  std::vector<Client> clients;
  for (ClientIndex index = 0; index < mix.clients; ++index) {
    Client client{.name = std::to_string(index)};
    client.arrival = draw(mix.arrival), client.copy_in = draw(mix.copy), client.copy_back = draw(mix.back);
    const std::int64_t kernels = 1 + random.below(mix.kernels);
    for (std::int64_t kernel = 0; kernel < kernels; ++kernel) {
      client.kernels.push_back(draw(mix.kernel));
      if (kernel > 0) client.idle.push_back(draw(mix.idle));
    }
    client.bytes = client.copy_in;
    clients.push_back(std::move(client));
  }
  return Workload(std::move(clients), device, "test");
}

}  // namespace convoy::partition::sharing::testing
