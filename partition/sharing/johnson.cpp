#include "partition/sharing/johnson.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace convoy::partition::sharing {

std::vector<ClientIndex> johnson_order(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& times) {
  std::vector<ClientIndex> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](ClientIndex client) {
    const auto [first, second] = times[client];
    return first < second ? std::tuple(0, first, client) : std::tuple(1, -second, client);
  };
  std::sort(order.begin(), order.end(), [&](ClientIndex a, ClientIndex b) { return key(a) < key(b); });
  return order;
}

}  // namespace convoy::partition::sharing
