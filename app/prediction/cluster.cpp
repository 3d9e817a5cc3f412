#include "app/prediction/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "partition/graph/parse_json.h"
#include "partition/graph/read_text.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  Reader(const Json& object, std::string file, std::string prefix = "")
      : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {}

  Reader part(const char* key) const {
    if (!object_.contains(key) || !object_[key].is_object())
      throw std::runtime_error(fmt::format("{}: {}{}: expected an object", file_, prefix_, key));
    return {object_[key], file_, prefix_ + key + "."};
  }
  double number(const char* key, double least, double most = 1e18) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_number() || !(found->get<double>() >= least) ||
        found->get<double>() > most)
      throw std::runtime_error(fmt::format("{}: {}{}: found {}, expected a number from {} to {}", file_,
                                           prefix_, key, found == object_.end() ? "nothing" : shown(*found),
                                           least, most));
    return found->get<double>();
  }
  ClusterLink link() const { return {number("latency_us", 0), number("gbytes_per_second", 1e-6)}; }
  int whole(const char* key, int least, int most) const {
    const double value = number(key, least, most);
    if (value != std::floor(value))
      throw std::runtime_error(fmt::format("{}: {}{}: found {}, expected a whole number from {} to {}", file_,
                                           prefix_, key, value, least, most));
    return static_cast<int>(value);
  }
  std::string text(const char* key, const std::string& otherwise) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return otherwise;
    if (!found->is_string())
      throw std::runtime_error(
          fmt::format("{}: {}{}: found {}, expected a string", file_, prefix_, key, shown(*found)));
    return found->get<std::string>();
  }
  const Json& object() const { return object_; }

 private:
  // Returns the value, or only its type if it is an object or an array, which may be too deep to
  // print.
  static std::string shown(const Json& value) {
    return value.is_structured() ? value.is_object() ? "an object" : "an array" : value.dump();
  }

  const Json& object_;
  std::string file_, prefix_;
};

// Returns the number of successive messages in an all-reduce of `members` participants over a
// binary tree, up and down the tree. A ring would need 2 (members - 1), which is never less.
double steps(int members) { return 2 * std::ceil(std::log2(members)); }

// Returns the bytes that each of `members` participants sends in an all-reduce of `bytes` bytes.
double sent(double bytes, int members) { return 2.0 * (members - 1) / members * bytes; }

double link_us(const ClusterLink& link, double bytes) { return bytes / link.gbytes_per_second * 1e-3; }

// Interpolates between the measured sizes. Above the largest size it continues the line through the
// last two sizes.
double interpolate(const std::map<double, Mean>& points, double at) {
  const auto first = points.begin();
  if (points.size() == 1) return first->second * std::max(1.0, at / first->first);
  if (at <= first->first) return first->second;  // below the smallest size only latency counts
  auto upper = points.lower_bound(at);
  if (upper == points.end()) --upper;
  const auto& [x1, y1] = *upper;
  const auto& [x0, y0] = *std::prev(upper);
  return y0 + (y1 - y0) * (at - x0) / (x1 - x0);
}

// A measured all-reduce, for fitting one kind of link. It took `us` microseconds, and `link_us` of
// them were spent on links of this kind. It sent `steps` messages in succession over these links,
// and each participant sent `bytes` bytes over them.
struct Sample {
  double us, link_us, steps, bytes;
};

// Fits link_us = α steps + β bytes by least squares of the relative error. The latency of the link
// becomes α, and its bandwidth becomes 1 / β. Does not change the link if the samples do not
// determine both.
void fit_link(const std::vector<Sample>& samples, ClusterLink& link) {
  double aa = 0, ab = 0, bb = 0, at = 0, bt = 0;
  for (const Sample& sample : samples) {
    const double a = sample.steps / sample.us, b = sample.bytes / sample.us, t = sample.link_us / sample.us;
    aa += a * a, ab += a * b, bb += b * b, at += a * t, bt += b * t;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant <= 1e-12 * aa * bb) return;
  const double alpha = (at * bb - bt * ab) / determinant, beta = (bt * aa - at * ab) / determinant;
  if (beta > 0) link = {std::max(alpha, 0.0), 1e-3 / beta};
}

}  // namespace

Cluster Cluster::read(const std::string& file) { return parse(partition::read_text(file), file); }

Cluster Cluster::parse(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", file, what));
  };
  const Json json = partition::parse_json(text, fail, partition::Comments::kIgnored);
  if (!json.is_object()) throw std::runtime_error(fmt::format("{}: not a JSON object", file));
  const Reader reader(json, file);
  Cluster cluster;
  cluster.name_ = reader.text("name", file);
  cluster.devices_per_node_ = reader.whole("devices_per_node", 1, 1 << 16);
  const std::string backend = reader.text("backend", "cuda");
  if (backend != "cuda" && backend != "cpu")
    throw std::runtime_error(
        fmt::format("{}: backend: found \"{}\", expected \"cuda\" or \"cpu\"", file, backend));
  cluster.device_.backend = *find_choice<kernels::Backend>(backend);
  cluster.call_us_ = reader.number("call_us", 0);
  cluster.overlap_ = reader.number("overlap", 0, 1);
  if (cluster.devices_per_node_ > 1) cluster.within_ = reader.part("within_node").link();
  const Reader between = reader.part("between_nodes");
  cluster.between_ = between.link();
  if (between.object().contains("ports")) cluster.ports_ = between.whole("ports", 1, 1 << 16);
  const Reader device = reader.part("device");
  const Reader gflops = device.part("gflops");
  for (const auto& [name, unused] : gflops.object().items()) {
    const auto precision = find_choice<Precision>(name);
    if (!precision)
      throw std::runtime_error(fmt::format("{}: device.gflops: found '{:.40}', expected {}", file, name,
                                           fmt::join(names_of<Precision>(), ", ")));
    cluster.device_.gflops[*precision] = gflops.number(name.c_str(), 1e-6);
  }
  cluster.device_.gbytes_per_second = device.number("gbytes_per_second", 1e-6);
  cluster.device_.launch_us = device.number("launch_us", 0);
  return cluster;
}

void Cluster::use_measurements(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(fmt::format("{}: cannot be opened", file));
  bool found = false;
  for (std::string line; std::getline(stream, line);) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    const Reader reader(row, file);
    const std::string operation = reader.text("operation", "");
    if (operation != "all-reduce" && operation != "gradients" && operation != "overlap") continue;
    const int ranks = reader.whole("ranks", 2, 1 << 20);
    if (operation == "overlap") {
      const double operation_us = reader.number("operation_microseconds", 1e-9);
      overlaps_[ranks][reader.number("bytes", 1)][operation_us].add(reader.number("overlap", 0, 1));
      continue;
    }
    const double bytes = reader.number("bytes", 1), us = reader.number("microseconds", 1e-9);
    if (operation == "all-reduce") {
      add_measurement(ranks, bytes, us);
      found = true;
    } else {
      gradients_[ranks][bytes].add(us);
    }
  }
  if (!found)
    throw std::runtime_error(fmt::format(
        "{}: no line with \"operation\": \"all-reduce\", \"ranks\", \"bytes\", \"microseconds\"", file));
  fit();
}

// Fits both kinds of link. The link within a node comes first, because its time is subtracted from
// all-reduces that span nodes.
void Cluster::fit() {
  std::vector<Sample> within, between;
  for (const auto& [ranks, points] : measured_)
    for (const auto& [bytes, us] : points)
      if (ranks <= devices_per_node_) within.push_back({us, us - call_us_, steps(ranks), sent(bytes, ranks)});
  fit_link(within, within_);
  for (const auto& [ranks, points] : measured_)
    for (const auto& [bytes, us] : points)
      if (const int nodes = this->nodes(ranks); nodes > 1)
        between.push_back({us, us - call_us_ - within_us(bytes, ranks), steps(nodes),
                           sent(bytes, nodes) / share_of_ports(ranks)});
  fit_link(between, between_);
}

std::vector<int> Cluster::measured_ranks() const {
  std::vector<int> ranks;
  for (const auto& [count, unused] : measured_) ranks.push_back(count);
  return ranks;
}

double Cluster::all_reduce_us(double bytes, int ranks) const {
  if (ranks <= 1) return 0;
  const auto found = measured_.find(ranks);
  return found != measured_.end() ? interpolate(found->second, bytes) : modelled_us(bytes, ranks);
}

double Cluster::gradients_us(double bytes, int ranks) const {
  const auto nearest = nearest_within_a_node(gradients_, ranks);
  if (ranks <= 1 || nodes(ranks) > 1 || nearest == gradients_.end()) return all_reduce_us(bytes, ranks);
  const double us = interpolate(nearest->second, bytes);
  return nearest->first == ranks ? us
                                 : us * all_reduce_us(bytes, ranks) / all_reduce_us(bytes, nearest->first);
}

double Cluster::overlap(double operation_us, double bytes, int ranks) const {
  if (overlaps_.empty()) return overlap_;
  auto nearest = nodes(ranks) > 1 ? overlaps_.lower_bound(ranks) : nearest_within_a_node(overlaps_, ranks);
  if (nearest == overlaps_.end()) nearest = std::prev(overlaps_.end());
  const auto& by_size = nearest->second;
  auto size = by_size.begin();
  if (nodes(ranks) == 1 && !gradients_.empty())
    while (std::next(size) != by_size.end() && std::next(size)->first <= bytes) ++size;
  const Points& points = size->second;
  return interpolate(points, std::clamp(operation_us, points.begin()->first, points.rbegin()->first));
}

// Models a reduce-scatter within each node, an all-reduce of the chunks between nodes, and an
// all-gather within each node. Each device sends 2 (n - 1) / n of the bytes within its node of n
// devices. Each of m nodes sends 2 (m - 1) / m of the bytes to other nodes (Thakur et al., 2005).
double Cluster::modelled_us(double bytes, int ranks) const {
  const int nodes = this->nodes(ranks);
  double us = call_us_ + within_us(bytes, ranks);
  if (nodes > 1)
    us += steps(nodes) * between_.latency_us + link_us(between_, sent(bytes, nodes) / share_of_ports(ranks));
  return us;
}

double Cluster::share_of_ports(int ranks) const {
  const int last = ranks % devices_per_node_, emptiest = last > 0 ? last : devices_per_node_;
  return std::min(1.0, static_cast<double>(emptiest) / ports_);
}

double Cluster::within_us(double bytes, int ranks) const {
  const int local = std::min(ranks, devices_per_node_);
  return local > 1 ? steps(local) * within_.latency_us + link_us(within_, sent(bytes, local)) : 0;
}

}  // namespace convoy::app
