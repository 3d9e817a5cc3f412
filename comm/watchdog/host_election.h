// One process of a host speaks for all that have the same thing to say.
#pragma once

#include <string_view>

#include "comm/watchdog/wire.h"

namespace convoy::comm {

// True in the first process of this host that asks for this key, and as long as that process lives.
class HostElection {
 public:
  explicit HostElection(std::string_view key);
  bool won() const { return won_; }

 private:
  UniqueFd socket_;
  bool won_ = false;
};

}  // namespace convoy::comm
