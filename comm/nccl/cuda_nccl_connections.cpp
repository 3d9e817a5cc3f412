#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_connections.h"

namespace convoy::comm {
namespace {

std::vector<Connections*>& open_connections() {
  static std::vector<Connections*> open;
  return open;
}

}  // namespace

Connections::Connections(const Communicator& communicator)
    : ranks(communicator.duplicate(communicator.name() + " devices")), pairs(ranks) {
  open_connections().push_back(this);
}

Connections::~Connections() {
  if (std::uncaught_exceptions() > 0) abort_all();
  std::erase(open_connections(), this);
}

NcclChannel& Connections::copies(int sender, int receiver) {
  const auto found = copies_.find({sender, receiver});
  if (found != copies_.end()) return found->second;
  const auto number = static_cast<std::uint64_t>(sender * ranks.size() + receiver);
  const std::vector<int>& world = ranks.world_ranks();
  return copies_
      .try_emplace({sender, receiver}, NcclComm(), ranks.shared_context(),
                   derived_key(ranks.key(), (std::uint64_t{2} << 32) + number),
                   std::vector{world[sender], world[receiver]})
      .first->second;
}

void Connections::abort_all() noexcept {
  std::vector<std::thread> aborts;
  for (Connections* connections : open_connections()) {
    if (std::exchange(connections->aborted_, true)) continue;
    for (NcclChannel* channel : {connections->buckets.get(), connections->whole.get()})
      if (channel != nullptr) aborts.emplace_back([channel] { channel->abort(); });
    for (auto& [ends, channel] : connections->copies_) channel.abort();
    for (NcclChannel* channel : connections->pairs.all_connected())
      aborts.emplace_back([channel] { channel->abort(); });
    for (const auto& window : connections->windows)
      aborts.emplace_back([held = window.lock()] {
        if (held != nullptr) held->release_device();
      });
  }
  for (std::thread& abort : aborts) abort.join();
}

}  // namespace convoy::comm
