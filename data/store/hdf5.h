// HDF5 through owners and checks. Only code that itself links HDF5 includes this header.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

namespace convoy::data::hdf5 {

// Hold one around every use of HDF5: it lets one thread at a time in (the library need not be built
// thread-safe), silences HDF5's own printing of its error stack and keeps HDF5 from cleaning up at
// exit, where it loops on files that it failed to close. May be nested.
class Session {
 public:
  Session();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Returns HDF5's words on the last failure in this thread, innermost first, in one line.
std::string last_error();

// Owns an HDF5 identifier; the destructor closes it and cannot fail.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { reset(); }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  bool reset() noexcept;  // closes now; false when HDF5 could not (data of a written file may be lost)

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// Wraps a call that gives an identifier; throws std::runtime_error "<what>: <last_error()>" when it
// failed. `what` names file and object.
Handle own(hid_t id, Handle::Close close, const std::string& what);
// The same for calls that give a status.
void check(herr_t status, const std::string& what);

}  // namespace convoy::data::hdf5
