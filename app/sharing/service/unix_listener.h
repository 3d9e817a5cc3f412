// Listens on a Unix socket for clients of the same user.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "comm/watchdog/wire.h"

namespace convoy::app {

class UnixListener {
 public:
  // Makes the socket with mode 0600. Replaces a socket on which nobody listens any more, as a dead
  // process leaves it. Throws std::runtime_error in one line that names the path if a process
  // listens there, if something else has this name, or if the path is too long for a socket.
  explicit UnixListener(const std::filesystem::path& path);
  ~UnixListener();  // removes the socket, unless another one has its name meanwhile
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int fd() const { return fd_.get(); }
  struct Accepted {
    comm::UniqueFd fd;     // does not block; none (-1) if nobody waits any more, or without room
    bool no_room = false;  // whether a client waits for which the system has no descriptor or memory
    uid_t user = 0;        // of the client's process
  };
  Accepted accept() const;

 private:
  void bind(const std::filesystem::path& path);

  std::filesystem::path path_;
  comm::UniqueFd fd_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace convoy::app
