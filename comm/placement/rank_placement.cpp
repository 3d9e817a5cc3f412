#include "comm/placement/rank_placement.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace convoy::comm {
namespace {

// Owns a cpu_set_t that is large enough for any machine.
class CpuSet {
 public:
  CpuSet() : set_(CPU_ALLOC(kMost), [](cpu_set_t* set) { CPU_FREE(set); }) {
    if (!set_) throw std::bad_alloc();
    CPU_ZERO_S(bytes(), set_.get());
  }
  static std::size_t bytes() { return CPU_ALLOC_SIZE(kMost); }
  cpu_set_t* get() const { return set_.get(); }
  bool has(int core) const { return CPU_ISSET_S(core, bytes(), set_.get()); }
  void add(int core) { CPU_SET_S(core, bytes(), set_.get()); }
  static constexpr int kMost = 8192;

 private:
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
};

int number_in(const std::string& path) {
  std::ifstream file(path);
  int number = 0;
  return file >> number ? number : 0;
}

// Sorts logical processors so that neighbours come together: by package, then core, then number.
std::vector<int> neighbours_together(std::vector<int> cores) {
  const auto place = [](int core) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", core);
    return std::tuple(number_in(folder + "physical_package_id"), number_in(folder + "core_id"), core);
  };
  std::vector<std::tuple<int, int, int>> places;
  for (const int core : cores) places.push_back(place(core));
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), cores.begin(), [](const auto& p) { return std::get<2>(p); });
  return cores;
}

std::string as_text(std::span<const int> numbers) { return fmt::format("{}", fmt::join(numbers, " ")); }

std::vector<int> as_numbers(const std::string& text) {
  std::istringstream stream(text);
  std::vector<int> numbers;
  for (int number; stream >> number;) numbers.push_back(number);
  return numbers;
}

// Returns the cores of all members, on every member. Collective.
std::vector<std::vector<int>> all_cores(const Communicator& communicator, std::span<const int> mine) {
  std::string lines;
  for (const std::string& text : communicator.gather(as_text(mine), 0, "cores")) lines += text + "\n";
  std::istringstream stream(communicator.broadcast(lines, 0, "cores"));
  std::vector<std::vector<int>> all;
  for (std::string line; std::getline(stream, line);) all.push_back(as_numbers(line));
  return all;
}

}  // namespace

std::vector<int> allowed_cores() {
  const CpuSet set;
  if (::sched_getaffinity(0, CpuSet::bytes(), set.get()) != 0)
    throw std::runtime_error(fmt::format("cannot read the core binding: {}", std::strerror(errno)));
  std::vector<int> cores;
  for (int core = 0; core < CpuSet::kMost; ++core)
    if (set.has(core)) cores.push_back(core);
  return cores;
}

std::string format_cores(std::span<const int> cores) {
  std::vector<int> sorted(cores.begin(), cores.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

std::vector<int> share_of_cores(const std::vector<std::vector<int>>& allowed, int local_rank) {
  const std::vector<int>& mine = allowed.at(local_rank);
  std::size_t sharers = 0, index = 0;
  for (std::size_t rank = 0; rank < allowed.size(); ++rank) {
    if (allowed[rank] != mine) continue;
    if (static_cast<int>(rank) < local_rank) ++index;
    ++sharers;
  }
  if (mine.empty()) return mine;
  if (mine.size() < sharers) return {mine[index % mine.size()]};
  const auto bound = [&](std::size_t i) {
    return mine.begin() + static_cast<std::ptrdiff_t>(mine.size() * i / sharers);
  };
  return {bound(index), bound(index + 1)};
}

std::vector<int> prefer_near(const std::vector<int>& allowed, std::span<const int> near) {
  std::vector<int> preferred;
  std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(preferred),
               [near](int core) { return std::find(near.begin(), near.end(), core) != near.end(); });
  return preferred.empty() ? allowed : preferred;
}

std::vector<int> pin_to_cores(const Communicator& world, std::span<const int> near) {
  const Communicator host = world.split_by_host("host");
  const std::vector<int> allowed = prefer_near(neighbours_together(allowed_cores()), near);
  std::vector<int> cores = share_of_cores(all_cores(host, allowed), host.rank());
  CpuSet set;
  for (const int core : cores) set.add(core);
  if (::sched_setaffinity(0, CpuSet::bytes(), set.get()) != 0)
    throw std::runtime_error(fmt::format("rank {} (host {}): cannot bind to cores {}: {}", world.rank(),
                                         world.host_name(), format_cores(cores), std::strerror(errno)));
  return cores;
}

std::vector<RankPlacement> gather_placement(const Communicator& world, std::string_view device) {
  const std::string mine = fmt::format("{} {} {}\n{}\n{}", world.local_rank(), ::getpid(), world.host_name(),
                                       as_text(allowed_cores()), device);
  std::vector<RankPlacement> placements;
  for (const std::string& text : world.gather(mine, 0, "placement")) {
    std::istringstream stream(text);
    RankPlacement& placement = placements.emplace_back();
    placement.rank = static_cast<int>(placements.size()) - 1;
    stream >> placement.local_rank >> placement.pid >> placement.host;
    std::string cores;
    std::getline(stream, cores);  // skips the rest of the first line
    std::getline(stream, cores);
    placement.cores = as_numbers(cores);
    std::getline(stream, placement.device);
  }
  return placements;
}

}  // namespace convoy::comm
