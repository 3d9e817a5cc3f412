#include "data/loader/shared_leases.h"

#include <atomic>
#include <memory>
#include <utility>

namespace convoy::data {
namespace {

// Holds the lease of a batch until all users have ended theirs, and then deletes itself.
class SharedOwner final : public BatchLease::Owner {
 public:
  SharedOwner(BatchLease lease, int count) : lease_(std::move(lease)), left_(count) {}
  void give_back(int) noexcept override {
    if (--left_ == 0) std::unique_ptr<SharedOwner>(this).reset();
  }

 private:
  const BatchLease lease_;
  std::atomic<int> left_;
};

}  // namespace

std::vector<BatchLease> shared_leases(BatchLease lease, int count) {
  std::vector<BatchLease> leases;
  leases.reserve(static_cast<std::size_t>(count));
  if (count == 1) {
    leases.push_back(std::move(lease));
    return leases;
  }
  const Batch& batch = *lease;
  auto* const owner = std::make_unique<SharedOwner>(std::move(lease), count).release();
  for (int i = 0; i < count; ++i) leases.emplace_back(batch, *owner, i);
  return leases;
}

}  // namespace convoy::data
