// Splits a stream of bytes into records of equal size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace convoy::data {

class Records {
 public:
  // A function that receives one or several complete records.
  using Take = std::function<void(std::span<const std::uint8_t>)>;
  Records(std::size_t record, Take take) : record_(record), take_(std::move(take)) {}

  void add(std::span<const std::uint8_t> bytes) {
    bytes_ += bytes.size();
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    const std::size_t whole = buffer_.size() / record_ * record_;
    if (whole == 0) return;
    take_(std::span(buffer_).first(whole));
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(whole));
  }
  std::size_t bytes() const { return bytes_; }         // bytes received so far
  std::size_t rest() const { return buffer_.size(); }  // bytes of an incomplete last record

 private:
  std::size_t record_, bytes_ = 0;
  Take take_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace convoy::data
