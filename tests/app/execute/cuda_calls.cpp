#include "tests/app/execute/cuda_calls.h"

#include <cupti.h>

#include <map>
#include <mutex>
#include <stdexcept>

namespace convoy::test {
namespace {

void check(CUptiResult result) {
  const char* reason = nullptr;
  if (result == CUPTI_SUCCESS) return;
  cuptiGetResultString(result, &reason);
  throw std::runtime_error(std::string("CUPTI: ") + (reason == nullptr ? "unknown error" : reason));
}

}  // namespace

struct CudaCalls::Counter {
  CUpti_SubscriberHandle subscriber = nullptr;
  mutable std::mutex mutex;
  std::map<std::string, int> by_name;

  static void CUPTIAPI count(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                             const CUpti_CallbackData* data) {
    if (data->callbackSite != CUPTI_API_ENTER) return;
    auto& counter = *static_cast<Counter*>(self);
    const std::scoped_lock lock(counter.mutex);
    ++counter.by_name[data->functionName];
  }
};

CudaCalls::CudaCalls() : counter_(std::make_unique<Counter>()) {
  check(cuptiSubscribe(&counter_->subscriber, reinterpret_cast<CUpti_CallbackFunc>(Counter::count),
                       counter_.get()));
  check(cuptiEnableDomain(1, counter_->subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
}

CudaCalls::~CudaCalls() { cuptiUnsubscribe(counter_->subscriber); }

int CudaCalls::named(const std::string& part) const {
  const std::scoped_lock lock(counter_->mutex);
  int sum = 0;
  for (const auto& [name, count] : counter_->by_name)
    if (name.find(part) != std::string::npos) sum += count;
  return sum;
}

std::string CudaCalls::text() const {
  const std::scoped_lock lock(counter_->mutex);
  std::string all;
  for (const auto& [name, count] : counter_->by_name) all += name + " x" + std::to_string(count) + " ";
  return all;
}

}  // namespace convoy::test
