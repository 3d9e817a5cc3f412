#include "data/store/hdf5.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace convoy::data::hdf5 {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t keep_first(unsigned, const H5E_error2_t* error, void* text) {
  auto& first = *static_cast<std::string*>(text);
  if (first.empty() && error->desc != nullptr) first = error->desc;
  return 0;
}

// Returns only the operating system's error message from HDF5's error text. The rest of HDF5's text
// (time, addresses, sizes) does not help the user.
std::string system_reason(const std::string& text) {
  constexpr std::string_view kBefore = "error message = '";
  const auto found = text.find(kBefore);
  if (found == std::string::npos) return text;
  const auto begin = found + kBefore.size();
  return text.substr(begin, text.find('\'', begin) - begin);
}

}  // namespace

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  [[maybe_unused]] static const herr_t once = H5dont_atexit();
  // Do this in every LibraryLock, because a thread-safe HDF5 keeps this setting per thread.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string last_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "HDF5 gives no reason" : system_reason(text);
}

Handle::Handle(Handle&& other) noexcept
    : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, H5I_INVALID_HID);
    close_ = other.close_;
  }
  return *this;
}

bool Handle::reset() noexcept {
  if (id_ < 0) return true;
  LibraryLock lock;
  return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0;
}

Handle own(hid_t id, Handle::Close close, const std::string& what) {
  if (id < 0) throw std::runtime_error(what + ": " + last_error());
  return Handle(id, close);
}

void check(herr_t status, const std::string& what) {
  if (status < 0) throw std::runtime_error(what + ": " + last_error());
}

}  // namespace convoy::data::hdf5
