#include "app/sharing/service/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace convoy::app {

void RequestQueue::push(Request request) {
  request.arrival = Request::Clock::now();
  std::unique_lock lock(mutex_);
  if (closed_.empty()) {
    queue_of(request.origin).push_back(std::move(request));
    lock.unlock();
    return arrived_.notify_one();
  }
  const std::string reason = closed_;
  lock.unlock();
  if (request.origin == Request::Origin::client) refuse(request, reason);
}

void RequestQueue::take(std::deque<Request>& from, std::size_t capacity, std::vector<Request>& to) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(capacity - to.size(), from.size()));
  std::move(from.begin(), from.begin() + count, std::back_inserter(to));
  from.erase(from.begin(), from.begin() + count);
}

std::vector<Request> RequestQueue::next_batch(std::size_t capacity, std::chrono::milliseconds wait,
                                              Request::Clock::duration patience) {
  std::vector<Request> batch;
  std::unique_lock lock(mutex_);
  const Request::Clock::time_point until = Request::Clock::now() + wait;
  while (!failure_) {
    const std::size_t waiting = of_clients_.size() + of_folder_.size();
    // The time at which to stop waiting: `until`, or earlier if the oldest request has then waited
    // for `patience`.
    Request::Clock::time_point due = until;
    for (const std::deque<Request>* queue : {&of_clients_, &of_folder_})
      if (!queue->empty()) due = std::min(due, queue->front().arrival + patience);
    const Request::Clock::time_point now = Request::Clock::now();
    if (waiting >= capacity || (waiting > 0 && due <= now && due < until)) break;
    if (now >= until) return batch;
    arrived_.wait_until(lock, due);
  }
  if (failure_) std::rethrow_exception(failure_);
  take(of_clients_, capacity, batch);
  take(of_folder_, capacity, batch);
  if (!batch.empty()) ++counts_.batches;
  counts_.rows += std::ssize(batch);
  return batch;
}

void RequestQueue::finish(const Request& request, Answer answer) {
  const auto latency = Request::Clock::now() - request.arrival;
  answer.ms = std::chrono::duration<double, std::milli>(latency).count();
  if (request.origin == Request::Origin::client) {
    const std::lock_guard lock(mutex_);
    if (answer.error.empty()) {
      ++counts_.predicted;
      counts_.latencies.add(latency);
    } else {
      ++counts_.refused;
    }
  }
  request.reply(answer);
}

void RequestQueue::answer(const Request& request, std::span<const float> probabilities) {
  std::vector<RankedClass> classes(std::min(request.top, probabilities.size()));
  rank_classes(probabilities, classes);
  finish(request, {classes, {}, 0});
}

void RequestQueue::refuse(const Request& request, const std::string& error) {
  finish(request, {{}, error, 0});
}

void RequestQueue::count_refused() {
  const std::lock_guard lock(mutex_);
  ++counts_.refused;
}

void RequestQueue::drop(std::int64_t client) {
  const std::lock_guard lock(mutex_);
  std::erase_if(of_clients_, [&](const Request& request) { return request.client == client; });
}

void RequestQueue::close(const std::string& reason) {
  std::deque<Request> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = reason;
    of_folder_.clear();
    waiting.swap(of_clients_);
  }
  for (const Request& request : waiting) refuse(request, reason);
}

void RequestQueue::fail(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  arrived_.notify_one();
}

std::size_t RequestQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return of_clients_.size() + of_folder_.size();
}

RequestQueue::Counts RequestQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace convoy::app
