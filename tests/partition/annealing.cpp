// Improves a placement by simulated annealing, to judge the partitioner by. Each move gives a
// random node a random device, and the simulator's list scheduling orders the nodes. The
// temperature falls from 1 % to 0.001 % of the makespan. The start is the best of HEFT, m-ETF and
// one device. Prints the makespan in µs.
// Usage: partition_annealing GRAPH DEVICES SECONDS [--contention]
// SECONDS is processor time. Links have 25 µs and 130 GB/s.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include "partition/graph/read_task_graph.h"
#include "partition/placement/baselines.h"
#include "partition/random.h"
#include "partition/simulation/simulator.h"

namespace convoy::partition {
namespace {

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Annealing {
 public:
  explicit Annealing(const CostModel& cost) : cost_(cost) {
    const Units units(cost.graph(), cost.device_count());
    for (const Placement& start :
         {place_by_heft(cost, units), place_by_etf(cost, units), place_on_one_device(cost, units)}) {
      const Nanoseconds makespan = judge(start.device_of);
      if (makespan >= shortest_) continue;
      shortest_ = makespan;
      device_of_ = start.device_of;
    }
  }

  Nanoseconds run(double seconds) {
    constexpr double kFirst = 1e-2, kLast = 1e-5;
    const double begin = processor_seconds();
    Nanoseconds now = shortest_;
    for (double used = 0; used < 1; used = (processor_seconds() - begin) / seconds) {
      const double temperature = kFirst * std::pow(kLast / kFirst, used) * static_cast<double>(now);
      DeviceIndex& device = device_of_[random_.below(cost_.graph().node_count())];
      const DeviceIndex before = device;
      device = static_cast<DeviceIndex>(random_.below(cost_.device_count() - 1));
      if (device >= before) ++device;
      const Nanoseconds next = judge(device_of_);
      if (next <= now || random_.unit() < std::exp(static_cast<double>(now - next) / temperature))
        now = next;
      else
        device = before;
      shortest_ = std::min(shortest_, now);
    }
    return shortest_;
  }

 private:
  Nanoseconds judge(const std::vector<DeviceIndex>& device_of) const {
    return simulate(cost_, {cost_.device_count(), device_of, {}}, Detail::kTimes).makespan;
  }

  const CostModel& cost_;
  Random random_{1};
  std::vector<DeviceIndex> device_of_;
  Nanoseconds shortest_ = std::numeric_limits<Nanoseconds>::max();
};

}  // namespace
}  // namespace convoy::partition

int main(int count, char** words) try {
  using namespace convoy::partition;
  if (count < 4 || std::atoi(words[2]) < 2 || !(std::atof(words[3]) > 0)) {
    fmt::print(stderr, "partition_annealing: expected GRAPH, 2 DEVICES or more, SECONDS above 0\n");
    return 2;
  }
  const TaskGraph graph = read_task_graph(words[1], {});
  Machine machine = Machine::uniform(std::atoi(words[2]), {25'000, 130});
  machine.set_contention(count > 4 && std::strcmp(words[4], "--contention") == 0);
  const CostModel cost(graph, machine);
  fmt::print("{:.1f}\n", static_cast<double>(Annealing(cost).run(std::atof(words[3]))) / 1e3);
} catch (const std::exception& error) {
  fmt::print(stderr, "partition_annealing: {}\n", error.what());
  return 1;
}
