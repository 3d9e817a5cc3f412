#include "comm/watchdog/host_election.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

namespace convoy::comm {

// The first process that binds the name wins. In Linux's abstract socket namespace only one socket
// can have a name. The kernel removes the name when the process ends.
HostElection::HostElection(std::string_view key)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)), won_(true) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string_view prefix = "convoy-";
  char* to = std::copy(prefix.begin(), prefix.end(), name.sun_path + 1);
  const std::size_t length = std::min(key.size(), sizeof name.sun_path - 1 - prefix.size());
  to = std::copy_n(key.begin(), length, to);
  // If the socket cannot be made, every process wins: printing a message twice is better than not
  // at all.
  if (socket_.get() >= 0)
    won_ = ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name),
                  static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                         static_cast<std::size_t>(to - name.sun_path))) == 0;
}

}  // namespace convoy::comm
