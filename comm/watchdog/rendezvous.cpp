#include "comm/watchdog/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "comm/watchdog/wait_registry.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void fail(const char* action) {
  throw std::runtime_error(fmt::format("watchdog: cannot {}: {}", action, std::strerror(errno)));
}

UniqueFd make_socket() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail("make a socket");
  return fd;
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail("get random bits");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// Returns the IPv4 addresses of the network interfaces that are up, with the loopback at the end.
std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail("list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, &::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    if ((item->ifa_flags & IFF_UP) == 0 || (item->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr)
      addresses.emplace_back(text.data());
  }
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

bool wait_for(int fd, short events, milliseconds timeout) {
  pollfd item{fd, events, 0};
  return ::poll(&item, 1, static_cast<int>(std::max<milliseconds::rep>(timeout.count(), 0))) == 1;
}

milliseconds until(Clock::time_point deadline) {
  return std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
}

// Returns the next frame (message) of a connection. If none comes before the deadline, returns a
// frame of kind `failure`.
Frame await_frame(FrameSocket& socket, Clock::time_point deadline) {
  std::vector<Frame> frames;
  while (socket.open() && frames.empty() && wait_for(socket.fd(), POLLIN, until(deadline)))
    socket.receive_one(frames);
  return frames.empty() ? Frame{FrameKind::failure, {}} : frames.front();
}

// Tries to connect to the hub (rank 0) at one of its addresses. Returns an empty text on success,
// else the reason of the failure.
std::string try_address(const std::string& address, const HubAddress& hub, const RankIdentity& self,
                        milliseconds timeout, FrameSocket& connected) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(hub.port);
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return "not an address";
  FrameSocket socket(make_socket());
  const auto deadline = Clock::now() + timeout;
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    if (errno != EINPROGRESS) return std::strerror(errno);
    if (!wait_for(socket.fd(), POLLOUT, timeout)) return "no answer";
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (error != 0) return std::strerror(error);
  }
  FrameWriter hello;
  hello.put(hub.token).put(self.rank).put(self.host).put(self.pid).put(self.device);
  socket.send(hello.frame(FrameKind::hello));
  if (await_frame(socket, deadline).kind != FrameKind::welcome) return "another program answers there";
  connected = std::move(socket);
  return {};
}

}  // namespace

std::string RankIdentity::to_string() const {
  return fmt::format("rank {} (host {}, {}{}pid {})", rank, host, device, device.empty() ? "" : ", ", pid);
}

std::string HubAddress::serialized() const {
  return fmt::format("{} {} {}", token, port, fmt::join(addresses, " "));
}

HubAddress HubAddress::parse(const std::string& text) {
  std::istringstream stream(text);
  HubAddress hub;
  stream >> hub.token >> hub.port;
  for (std::string address; stream >> address;) hub.addresses.push_back(address);
  if (hub.port == 0 || hub.addresses.empty())
    throw std::runtime_error(fmt::format("watchdog: '{}' is not an address of rank 0", text));
  return hub;
}

HubListener::HubListener(bool this_host_only) : listening_(make_socket()) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(this_host_only ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t length = sizeof any;
  auto* address = reinterpret_cast<sockaddr*>(&any);
  if (::bind(listening_.get(), address, length) != 0 || ::listen(listening_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listening_.get(), address, &length) != 0)
    fail("listen for the other ranks");
  address_ = {random_token(), this_host_only ? std::vector<std::string>{"127.0.0.1"} : own_addresses(),
              ntohs(any.sin_port)};
}

void HubListener::greet(FrameSocket socket, milliseconds timeout, std::vector<HubPeer>& peers) const {
  const Frame frame = await_frame(socket, Clock::now() + timeout);
  if (frame.kind != FrameKind::hello) return;
  FrameReader reader(frame);
  try {
    if (reader.get_text() != address_.token) return;
    RankIdentity who{.rank = reader.get<int>(), .host = reader.get_text(), .pid = 0};
    who.pid = reader.get<int>();
    who.device = reader.get_text();
    if (who.rank < 1 || who.rank > static_cast<int>(peers.size())) return;
    socket.send({FrameKind::welcome, {}});
    peers[static_cast<std::size_t>(who.rank) - 1] = {std::move(who), std::move(socket)};
    // Ignore a message that cannot be read, because no rank of this job has sent it.
  } catch (const std::runtime_error&) {
  }
}

std::vector<HubPeer> HubListener::accept(int ranks, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::vector<HubPeer> peers(static_cast<std::size_t>(ranks - 1));
  for (int rank = 1; rank < ranks; ++rank) peers[static_cast<std::size_t>(rank) - 1].who.rank = rank;
  const auto missing = [&] {
    return std::any_of(peers.begin(), peers.end(), [](const HubPeer& peer) { return !peer.socket.open(); });
  };
  while (missing() && wait_for(listening_.get(), POLLIN, until(deadline))) {
    UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    // A connection that sends nothing delays the ranks by at most a second.
    if (fd.get() >= 0) greet(FrameSocket(std::move(fd)), milliseconds(1000), peers);
  }
  return peers;
}

FrameSocket connect_to_hub(const HubAddress& hub, const RankIdentity& self, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::string reasons;
  for (const std::string& address : hub.addresses) {
    // Try each address for half of the time that is left, so that there is time for the next
    // address.
    const milliseconds share = std::max(until(deadline) / 2, milliseconds(500));
    FrameSocket connected;
    const std::string reason = try_address(address, hub, self, share, connected);
    if (reason.empty()) return connected;
    reasons += fmt::format("{}{}:{}: {}", reasons.empty() ? "" : ", ", address, hub.port, reason);
  }
  throw std::runtime_error(fmt::format("watchdog: rank {} cannot reach rank 0 ({})", self.rank, reasons));
}

}  // namespace convoy::comm
