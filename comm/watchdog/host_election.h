// Elects one of the processes of a host. If all of them have to print the same message, only the
// elected process prints it.
#pragma once

#include <string_view>

#include "comm/watchdog/wire.h"

namespace convoy::comm {

// won() is true in the first process of this host that makes an election with this key. After that
// process has ended, another one can win.
class HostElection {
 public:
  explicit HostElection(std::string_view key);
  bool won() const { return won_; }

 private:
  UniqueFd socket_;
  bool won_ = false;
};

}  // namespace convoy::comm
