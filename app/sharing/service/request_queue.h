// Requests for predictions, between those who make them (a socket, a watched folder) and the thread
// that predicts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "app/sharing/service/latencies.h"
#include "app/training/report/predictions.h"

namespace convoy::app {

struct Answer {
  std::span<const RankedClass> classes;  // the most probable first
  std::string error;                     // one line; empty if there was none
  double ms = 0;                         // since the arrival
};

struct Request {
  using Clock = std::chrono::steady_clock;
  // A client waits for the answer, so its requests come first and only their latencies count. Files
  // of a watched folder fill the rest of a batch.
  enum class Origin : std::uint8_t { client, folder };

  Origin origin = Origin::client;
  std::int64_t client = 0;          // for RequestQueue::drop()
  std::string path;                 // the image's file, unless `bytes` holds its content
  std::vector<std::uint8_t> bytes;  // a JPEG or PNG file
  std::size_t top = 1;              // how many classes the answer has, at most
  std::function<void(const Answer&)> reply;
  Clock::time_point arrival;  // set by push()
};

// All functions may be called by any thread.
class RequestQueue {
 public:
  struct Counts {
    std::int64_t predicted = 0, refused = 0;  // requests of clients
    std::int64_t batches = 0, rows = 0;       // batches that next_batch() returned, and their requests
    Latencies latencies;                      // of the predicted requests of clients
  };

  explicit RequestQueue(Latencies::Duration goal = Latencies::Duration(0)) {
    counts_.latencies = Latencies(goal);
  }

  void push(Request request);
  // Returns the oldest requests, at most `capacity`, as soon as there are so many or the oldest of
  // them has waited for `patience`. While a batch is predicted, the next one gathers, so batches
  // grow with the load. Returns none if that does not happen within `wait`. Throws what fail() got.
  std::vector<Request> next_batch(std::size_t capacity, std::chrono::milliseconds wait,
                                  Request::Clock::duration patience = {});

  // Answer a request that next_batch() returned: with its most probable classes, or with a line
  // that says why there are none. Return after its `reply`, and throw what that throws.
  void answer(const Request& request, std::span<const float> probabilities);
  void refuse(const Request& request, const std::string& error);
  // Counts a request that was refused before it came into the queue.
  void count_refused();

  // Forgets the waiting requests of a client that has gone.
  void drop(std::int64_t client);
  // Refuses all waiting requests of clients, and all that come later, for this reason. Forgets
  // files of the folder.
  void close(const std::string& reason);
  // Makes the thread that predicts throw this exception.
  void fail(std::exception_ptr failure);

  // Returns how many requests wait, of clients and of the folder.
  std::size_t waiting() const;
  Counts counts() const;

 private:
  std::deque<Request>& queue_of(Request::Origin origin) {
    return origin == Request::Origin::client ? of_clients_ : of_folder_;
  }
  void take(std::deque<Request>& from, std::size_t capacity, std::vector<Request>& to);
  void finish(const Request& request, Answer answer);

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Request> of_clients_, of_folder_;
  std::string closed_;  // why no more requests are accepted; empty while they are
  std::exception_ptr failure_;
  Counts counts_;
};

}  // namespace convoy::app
