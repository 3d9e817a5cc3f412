// Wraps HDF5 in owners and checks. Only code that itself links HDF5 includes this header.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

namespace convoy::data::hdf5 {

// Locks HDF5 for one thread, because the library may be built without thread-safety. Hold a Session
// around every use of HDF5; Sessions may be nested. A Session also turns off HDF5's printing of
// errors and its clean-up at exit, which loops on files that it failed to close.
class Session {
 public:
  Session();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Returns HDF5's innermost reason for the last failure in this thread, in one line.
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
  // Closes the identifier now. Returns false if HDF5 could not close it; data of a written file may
  // then be lost.
  bool reset() noexcept;

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// Takes the identifier that a call of HDF5 returned. Throws std::runtime_error "<what>:
// <last_error()>" if the call failed. `what` names file and object.
Handle own(hid_t id, Handle::Close close, const std::string& what);
// Does the same as own() for a call that returns a status.
void check(herr_t status, const std::string& what);

}  // namespace convoy::data::hdf5
