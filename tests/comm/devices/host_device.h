#pragma once

#include <cstdlib>
#include <cstring>

#include "tests/comm/devices/device.h"

namespace convoy::test {

class HostDevice : public Device {
 public:
  std::string name() const override { return "Host"; }
  std::string missing(const comm::Communicator&) override { return {}; }
  std::unique_ptr<comm::Collectives> collectives(const comm::Communicator& ranks) override {
    return comm::make_mpi_collectives(ranks);
  }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return {std::malloc(bytes), std::free}; }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override { copy_in(to, from, bytes); }
  comm::Stream stream() override { return {}; }
  std::function<void()> as_step(const std::function<void(comm::Stream)>& work) override {
    return [work] { work({}); };
  }
};

}  // namespace convoy::test
