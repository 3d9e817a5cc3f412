// The peak of what is live on each device, for schedules that change a little from one look to the
// next.
#pragma once

#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

// Remembers the order of the events of the last look: most keep their place, and the rest is sorted
// by insertion.
class LiveBytes {
 public:
  // The caller numbers the tensors. An output and each of its copies have numbers of their own.
  LiveBytes(std::int32_t tensors, DeviceIndex devices);

  void begin() { ++look_; }  // a new look: nothing is live
  // The caller tells of each tensor once in a look at most. A tensor of no bytes is left out.
  void live(std::int32_t tensor, DeviceIndex device, Bytes bytes, Nanoseconds from, Nanoseconds until);
  // The most bytes that live() was told of at one time, and that time.
  struct Peak {
    Bytes bytes = 0;
    Nanoseconds when = 0;
  };
  Peak peak(DeviceIndex device);

 private:
  struct Event {
    std::int64_t when = 0;  // the time, and what comes first at that time
    Bytes change = 0;
    std::int32_t look = 0;
    DeviceIndex device = kNone;  // in whose row it is listed
  };
  struct Listed {
    std::int64_t when;
    Bytes change;
    std::int32_t event;
  };
  void add(std::int32_t event, DeviceIndex device, std::int64_t when, Bytes change);
  void sort(std::vector<Listed>& row) const;

  std::int32_t look_ = 0;
  std::vector<Event> event_;              // two a tensor
  std::vector<std::vector<Listed>> row_;  // by device
};

}  // namespace convoy::partition
