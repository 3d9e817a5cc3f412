#include "app/sharing/service/unix_listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace convoy::app {
namespace {

constexpr int kWaitingClients = 128;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), what));
}

[[noreturn]] void fail_in_system(const std::filesystem::path& path, const char* action) {
  fail(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

comm::UniqueFd make_socket(const std::filesystem::path& path) {
  comm::UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) fail_in_system(path, "make a socket");
  return made;
}

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.size() >= sizeof address.sun_path)
    fail(path, fmt::format("a path of {} bytes, expected at most {} of a socket's", name.size(),
                           sizeof address.sun_path - 1));
  name.copy(address.sun_path, name.size());
  return address;
}

// Throws unless `path` is a socket on which nobody listens.
void require_stale(const std::filesystem::path& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) fail_in_system(path, "look at it");
  if (!S_ISSOCK(status.st_mode)) fail(path, "is no socket, expected a name that is free");
  const comm::UniqueFd client = make_socket(path);
  const int connected = ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected == 0 || errno == EAGAIN) fail(path, "another process listens on this socket");
  if (errno != ECONNREFUSED) fail_in_system(path, "connect to find out whether it is in use");
}

}  // namespace

UnixListener::UnixListener(const std::filesystem::path& path) : path_(path), fd_(make_socket(path)) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const comm::UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) fail_in_system(path, "open its folder");
  // The lock keeps two processes from replacing the same old socket at the same time.
  if (::flock(lock.get(), LOCK_EX) != 0) fail_in_system(path, "lock its folder");
  bind(path);
  if (::listen(fd_.get(), kWaitingClients) != 0) fail_in_system(path, "listen");
}

void UnixListener::bind(const std::filesystem::path& path) {
  const sockaddr_un address = address_of(path);
  // Set the mode before bind(), which gives it to the socket's file. So at no time can another user
  // connect.
  if (::fchmod(fd_.get(), 0600) != 0) fail_in_system(path, "restrict its mode");
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(fd_.get(), name, sizeof address) != 0) {
    if (errno != EADDRINUSE) fail_in_system(path, "make the socket");
    require_stale(path, address);
    if (::unlink(path.c_str()) != 0) fail_in_system(path, "replace the old socket");
    if (::bind(fd_.get(), name, sizeof address) != 0) fail_in_system(path, "make the socket");
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_in_system(path, "look at it");
  device_ = status.st_dev, inode_ = status.st_ino;
  if ((status.st_mode & 0777) != 0600 && ::chmod(path.c_str(), 0600) != 0)
    fail_in_system(path, "restrict its mode");
}

UnixListener::~UnixListener() {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    ::unlink(path_.c_str());
}

UnixListener::Accepted UnixListener::accept() const {
  Accepted accepted;
  accepted.fd = comm::UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.fd.get() < 0) {
    accepted.no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return accepted;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(accepted.fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  accepted.user = peer.uid;
  return accepted;
}

}  // namespace convoy::app
