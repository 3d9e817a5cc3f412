#include "tests/comm/devices/host_device.h"

namespace convoy::test {

const std::vector<Device*>& devices() {
  static HostDevice host;
  static const std::vector<Device*> all{&host};
  return all;
}

}  // namespace convoy::test
