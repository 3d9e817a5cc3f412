#include "comm/watchdog/watchdog_socket.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <stdexcept>

namespace convoy::comm {
namespace {

constexpr std::chrono::seconds kConnect{20};

// Collects the problems of all ranks and returns them on every rank. Returns an empty text if no
// rank has a problem.
std::string shared_problems(const Communicator& world, const std::string& problem) {
  std::string problems;
  for (const std::string& text : world.gather(problem, 0, "watchdog's connections"))
    if (!text.empty()) problems += (problems.empty() ? "" : "; ") + text;
  return world.broadcast(problems, 0, "watchdog's connections");
}

std::unique_ptr<Hub> gather_at_hub(HubListener& listener, WatchdogSocket& channel, int ranks,
                                   std::chrono::milliseconds timeout) {
  std::vector<HubPeer> peers = listener.accept(ranks, kConnect);
  for (const HubPeer& peer : peers)
    if (!peer.socket.open())
      throw std::runtime_error(fmt::format("watchdog: rank {} did not connect", peer.who.rank));
  auto [own, hubs] = connected_pair();
  channel.link = std::move(own);
  peers.insert(peers.begin(), HubPeer{channel.self, std::move(hubs)});
  return std::make_unique<Hub>(std::move(peers), timeout);
}

}  // namespace

WatchdogSocket open_watchdog_socket(const Communicator& world, std::chrono::milliseconds timeout,
                                    const std::string& device) {
  WatchdogSocket channel;
  channel.self = {world.rank(), world.host_name(), ::getpid(), device};
  const bool is_hub = world.rank() == 0;
  const std::string hub_rank = world.broadcast(
      fmt::format("{} {} {}", channel.self.pid, channel.self.host, device), 0, "watchdog's connections");
  std::istringstream words(hub_rank);
  words >> channel.hub_rank.pid >> channel.hub_rank.host >> std::ws;
  std::getline(words, channel.hub_rank.device);
  std::optional<HubListener> listener;
  std::string address, problem;
  try {
    if (is_hub) address = listener.emplace(world.local_size() == world.size()).address().serialized();
  } catch (const std::runtime_error& error) {
    problem = error.what();
  }
  address = world.broadcast(address, 0, "watchdog's connections");
  try {
    if (!address.empty()) {
      const HubAddress hub = HubAddress::parse(address);
      channel.token = hub.token;
      if (is_hub)
        channel.hub = gather_at_hub(*listener, channel, world.size(), timeout);
      else
        channel.link = connect_to_hub(hub, channel.self, kConnect);
    }
  } catch (const std::runtime_error& error) {
    problem = error.what();
  }
  const std::string problems = shared_problems(world, problem);
  if (problems.empty()) return channel;
  if (is_hub) print_lines({fmt::format("warning: a rank that stalls will not be named: {}", problems)});
  channel.hub.reset();
  channel.link.close();
  return channel;
}

}  // namespace convoy::comm
