#include "comm/placement/local_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace convoy::comm {
namespace {

constexpr int kMostCores = 1 << 16;  // far above the core numbers of Linux

int core_number(std::string_view text, std::string_view whole) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size() || number < 0 || number >= kMostCores)
    throw std::runtime_error(fmt::format("'{}' is not a list of cores such as 0-3,8", whole));
  return number;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  return std::string(text);
}

}  // namespace

std::string LocalDevice::short_name() const { return index < 0 ? "" : fmt::format("cuda:{}", index); }

std::string LocalDevice::to_string() const {
  return index < 0 ? "cpu" : fmt::format("cuda:{} {}", index, name);
}

int choose_device(std::optional<int> local_rank, int visible) {
  if (visible < 1) throw std::runtime_error("--backend cuda: this process sees no CUDA device, expected one");
  if (visible == 1) return 0;
  const int choice = local_rank.value_or(0);
  if (choice < 0 || choice >= visible)
    throw std::runtime_error(fmt::format(
        "--backend cuda: found local rank {} on a host with {} GPUs, expected one rank per GPU: start at "
        "most {} ranks on each such host",
        choice, visible, visible));
  return choice;
}

std::string shared_device_problem(const std::vector<RankDevice>& uses) {
  for (std::size_t second = 1; second < uses.size(); ++second)
    for (std::size_t first = 0; first < second; ++first) {
      const auto& [host, device] = uses[first];
      if (device.index < 0 || host != uses[second].host || device.uuid != uses[second].device.uuid) continue;
      return fmt::format(
          "ranks {} and {} are on one GPU of host {}, {} ({}, PCI {}), expected one rank per GPU", first,
          second, host, device.to_string(), device.uuid, device.pci);
    }
  return {};
}

void refuse_shared_devices(const Communicator& ranks, const LocalDevice& mine) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}", ranks.host_name(), mine.index, mine.uuid, mine.pci, mine.name);
  std::vector<RankDevice> uses;
  for (const std::string& use : ranks.gather(text, 0, "devices of the ranks")) {
    std::istringstream lines(use);
    RankDevice& next = uses.emplace_back();
    std::string index;
    std::getline(lines, next.host);
    std::getline(lines, index);
    next.device.index = std::stoi(index);
    std::getline(lines, next.device.uuid);
    std::getline(lines, next.device.pci);
    std::getline(lines, next.device.name);
  }
  const std::string problem = ranks.broadcast(shared_device_problem(uses), 0, "devices of the ranks");
  if (!problem.empty()) throw std::runtime_error(problem);
}

std::vector<int> parse_core_list(std::string_view text) {
  const std::string list = trimmed(text);
  std::vector<int> cores;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = std::string_view(list).substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    const int first = core_number(item.substr(0, dash), list);
    const int last = dash == std::string_view::npos ? first : core_number(item.substr(dash + 1), list);
    if (last < first || end + 1 == list.size())
      throw std::runtime_error(fmt::format("'{}' is not a list of cores such as 0-3,8", list));
    for (int core = first; core <= last; ++core) cores.push_back(core);
    begin = end + 1;
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::vector<int> cores_near(const std::string& pci, const std::string& sysfs) {
  // CUDA writes the address with upper-case hexadecimal digits, the Linux kernel with lower-case
  // ones.
  std::string address = pci;
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file(fmt::format("{}/bus/pci/devices/{}/local_cpulist", sysfs, address));
  std::string list;
  if (!std::getline(file, list)) return {};
  try {
    return parse_core_list(list);
    // The cores are only a hint, so go on without them.
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace convoy::comm
