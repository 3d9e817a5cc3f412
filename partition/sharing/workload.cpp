#include <fmt/format.h>

#include <numeric>
#include <stdexcept>

#include "partition/graph/brief.h"
#include "partition/sharing/clients.h"

namespace convoy::partition::sharing {
namespace {

// Times and bounds are multiplied by the number of compute engines and must still fit into 64 bits.
constexpr double kMostTime = 9e15, kMostBytes = 9e18;

void check(const Client& client, const SharedDeviceSpec& device, const std::string& where) {
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("{}: client \"{}\": {}", where, brief(client.name), what));
  };
  if (client.kernels.empty()) fail("kernels is empty, expected at least one");
  if (client.idle.size() + 1 != client.kernels.size())
    fail(fmt::format("idle_us has {} entries, expected {}, one between two kernels", client.idle.size(),
                     client.kernels.size() - 1));
  if (client.bytes > device.memory)
    fail(fmt::format("bytes is {}, more than the memory of {}", client.bytes, device.memory));
}

}  // namespace

Workload::Workload(std::vector<Client> clients, SharedDeviceSpec device, const std::string& where)
    : clients_(std::move(clients)), device_(device) {
  double time = 0, bytes = 0;
  for (const Client& client : clients_) {
    check(client, device_, where);
    bytes += static_cast<double>(client.bytes);
    time += static_cast<double>(client.arrival + client.copy_in + client.copy_back);
    for (const Nanoseconds kernel : client.kernels) time += static_cast<double>(kernel);
    for (const Nanoseconds gap : client.idle) time += static_cast<double>(gap);
  }
  if (time >= kMostTime)
    throw std::runtime_error(
        fmt::format("{}: all times add up to {:.3g} µs, expected less than 104 days", where, time / 1e3));
  if (bytes >= kMostBytes)
    throw std::runtime_error(
        fmt::format("{}: all bytes add up to {:.3g}, expected less than 9e18", where, bytes));
  for (const Client& client : clients_) {
    busy_.push_back(std::accumulate(client.kernels.begin(), client.kernels.end(), Nanoseconds{0}));
    idle_.push_back(std::accumulate(client.idle.begin(), client.idle.end(), Nanoseconds{0}));
  }
}

}  // namespace convoy::partition::sharing
