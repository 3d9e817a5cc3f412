// Connects the watchdogs with rank 0. Rank 0 listens, and the caller sends the address of rank 0 to
// the other ranks (watchdog_socket.h does so by MPI). The other ranks connect and send the job's
// token, by which rank 0 tells them from strangers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/watchdog/wire.h"

namespace convoy::comm {

struct RankIdentity {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::string device = {};        // for example "cuda:1"; empty for a rank without one
  std::string to_string() const;  // for example "rank 2 (host node7, cuda:1, pid 4711)"
};

struct HubAddress {
  std::string token;                   // 128 random bits in hexadecimal
  std::vector<std::string> addresses;  // numeric IPv4 addresses of the hub
  std::uint16_t port = 0;

  std::string serialized() const;
  static HubAddress parse(const std::string& text);  // throws std::runtime_error for other text
};

struct HubPeer {
  RankIdentity who;
  FrameSocket socket;
};

// All functions throw std::runtime_error with the system's reason.
class HubListener {
 public:
  // Listens on the loopback only if all ranks are on this host.
  explicit HubListener(bool this_host_only);
  const HubAddress& address() const { return address_; }
  // Returns the connections; element r is the connection of rank r + 1. The connection of a rank
  // that did not come in time is not open.
  std::vector<HubPeer> accept(int ranks, std::chrono::milliseconds timeout);

 private:
  void greet(FrameSocket socket, std::chrono::milliseconds timeout, std::vector<HubPeer>& peers) const;

  UniqueFd listening_;
  HubAddress address_;
};

FrameSocket connect_to_hub(const HubAddress& hub, const RankIdentity& self,
                           std::chrono::milliseconds timeout);

}  // namespace convoy::comm
