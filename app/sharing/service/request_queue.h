// The queue of requests for predictions. A socket or a watched folder puts requests in, and the
// thread that predicts takes them out.
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
  std::string error;                     // one line; empty if there was no error
  double ms = 0;                         // milliseconds since the request arrived
};

struct Request {
  using Clock = std::chrono::steady_clock;
  // Whether the request comes from a client or from the watched folder. A client waits for the
  // answer, so requests of clients are taken first, and only their latencies count. Files of the
  // folder fill the rest of a batch.
  enum class Origin : std::uint8_t { client, folder };

  Origin origin = Origin::client;
  std::int64_t client = 0;          // the client's number, for RequestQueue::drop()
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
    Latencies latencies;                      // latencies of the predicted requests of clients
  };

  explicit RequestQueue(Latencies::Duration goal = Latencies::Duration(0)) {
    counts_.latencies = Latencies(goal);
  }

  void push(Request request);
  // Returns the oldest requests, at most `capacity`. Returns as soon as `capacity` requests wait,
  // or the oldest has waited for `patience`. If neither happens within `wait`, returns none. While
  // one batch is predicted, requests for the next one gather, so batches grow with the load. Throws
  // the exception that fail() got.
  std::vector<Request> next_batch(std::size_t capacity, std::chrono::milliseconds wait,
                                  Request::Clock::duration patience = {});

  // Both answer a request that next_batch() returned. answer() gives its most probable classes.
  // refuse() gives a line that says why there are none. Both call the request's `reply` before they
  // return, and throw what it throws.
  void answer(const Request& request, std::span<const float> probabilities);
  void refuse(const Request& request, const std::string& error);
  // Counts a request that was refused before it came into the queue.
  void count_refused();

  // Forgets the waiting requests of a client that has gone.
  void drop(std::int64_t client);
  // Refuses all requests of clients that wait or come later. The clients get `reason`. Forgets the
  // files of the folder.
  void close(const std::string& reason);
  // Makes next_batch(), which the predicting thread calls, throw this exception.
  void fail(std::exception_ptr failure);

  // Returns how many requests wait, those of clients and of the folder together.
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
  std::string closed_;  // why no more requests are accepted; empty if they are accepted
  std::exception_ptr failure_;
  Counts counts_;
};

}  // namespace convoy::app
