// Wakes a thread that waits in poll().
#pragma once

#include "comm/watchdog/wire.h"

namespace convoy::app {

class WakeEvent {
 public:
  WakeEvent();  // throws std::runtime_error if there are no file descriptors left
  void signal() const;
  void clear() const;                   // call it after poll(), before looking for work
  int fd() const { return fd_.get(); }  // readable from signal() until clear()

 private:
  comm::UniqueFd fd_;
};

}  // namespace convoy::app
