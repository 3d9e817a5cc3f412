// Owners and error checks for HDF5. Only code that itself links HDF5 may include this header.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

namespace convoy::data::hdf5 {

// Gives one thread exclusive access to HDF5, because the library may be built without
// thread-safety. Hold a LibraryLock during every use of HDF5; a thread may hold several at the same
// time. A LibraryLock also turns off HDF5's printing of errors, and its clean-up at exit, which
// loops if a file could not be closed.
class LibraryLock {
 public:
  LibraryLock();

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
  // Closes the identifier now. Returns false if HDF5 fails to close it; data written to a file may
  // then be lost.
  bool reset() noexcept;

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// Takes ownership of the identifier that an HDF5 call returned. If the call failed, throws
// std::runtime_error "<what>: <last_error()>". `what` names file and object.
Handle own(hid_t id, Handle::Close close, const std::string& what);
// Like own(), for an HDF5 call that returns a status.
void check(herr_t status, const std::string& what);

}  // namespace convoy::data::hdf5
