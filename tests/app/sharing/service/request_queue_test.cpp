#include "app/sharing/service/request_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <thread>

namespace convoy::app {
namespace {

using namespace std::chrono_literals;
using Clock = Request::Clock;

class RequestQueueOf : public testing::Test {
 protected:
  // Returns a request whose reply is noted under its path.
  Request request(const std::string& path, Request::Origin origin = Request::Origin::client,
                  std::int64_t client = 1) {
    Request request;
    request.path = path;
    request.origin = origin;
    request.client = client;
    request.top = 2;
    request.reply = [this, path](const Answer& answer) {
      std::string text = path + ":" + answer.error;
      for (const RankedClass& one : answer.classes) text += " " + std::to_string(one.number);
      replies_.push_back(text);
      ms_ = answer.ms;
    };
    return request;
  }
  std::vector<std::string> paths(const std::vector<Request>& batch) {
    std::vector<std::string> list;
    for (const Request& request : batch) list.push_back(request.path);
    return list;
  }
  std::vector<std::string> next(std::size_t capacity) { return paths(queue_.next_batch(capacity, 0ms)); }

  RequestQueue queue_{5ms};
  std::vector<std::string> replies_;
  double ms_ = 0;
};

using Names = std::vector<std::string>;

TEST_F(RequestQueueOf, ABatchHasWhatWaits) {
  EXPECT_EQ(next(3), Names());
  for (const char* name : {"a", "b", "c", "d"}) queue_.push(request(name));
  EXPECT_EQ(queue_.waiting(), 4u);
  EXPECT_EQ(next(3), (Names{"a", "b", "c"}));
  EXPECT_EQ(next(3), (Names{"d"}));
  EXPECT_EQ(queue_.counts().batches, 2);
  EXPECT_EQ(queue_.counts().rows, 4);
}

TEST_F(RequestQueueOf, ClientsComeFirstAndTheFolderFillsTheRest) {
  for (const char* name : {"f1", "f2", "f3"}) queue_.push(request(name, Request::Origin::folder));
  for (const char* name : {"c1", "c2"}) queue_.push(request(name));
  EXPECT_EQ(next(3), (Names{"c1", "c2", "f1"}));
  EXPECT_EQ(next(9), (Names{"f2", "f3"}));
}

TEST_F(RequestQueueOf, WaitingEndsWithTheFirstRequest) {
  const auto begin = Clock::now();
  EXPECT_TRUE(queue_.next_batch(8, 20ms).empty());
  EXPECT_GE(Clock::now() - begin, 20ms);
  std::thread later([this] {
    std::this_thread::sleep_for(20ms);
    queue_.push(request("a"));
  });
  EXPECT_EQ(paths(queue_.next_batch(8, 30s)), (Names{"a"}));
  EXPECT_LT(Clock::now() - begin, 20s);
  later.join();
}

// The last argument is how long a request may wait. The queue must return a batch when it is full,
// or when its oldest request has waited that long.
TEST_F(RequestQueueOf, APatientBatchWaitsUntilItIsFull) {
  queue_.push(request("a"));
  EXPECT_TRUE(queue_.next_batch(2, 5ms, 30s).empty());
  queue_.push(request("b"));
  EXPECT_EQ(paths(queue_.next_batch(2, 0ms, 30s)), (Names{"a", "b"}));
  queue_.push(request("c"));
  EXPECT_TRUE(queue_.next_batch(2, 0ms, 40ms).empty());
  EXPECT_EQ(paths(queue_.next_batch(2, 30s, 40ms)), (Names{"c"}));
}

TEST_F(RequestQueueOf, AnswersAreRankedAndTimed) {
  queue_.push(request("a"));
  queue_.push(request("f", Request::Origin::folder));
  queue_.push(request("b"));
  const std::vector<Request> batch = queue_.next_batch(8, 0ms);
  std::this_thread::sleep_for(6ms);
  const std::array<float, 3> probabilities{0.2f, 0.5f, 0.3f};
  queue_.answer(batch[0], probabilities);
  EXPECT_GE(ms_, 6);
  EXPECT_LT(ms_, 6000);
  queue_.refuse(batch[1], "damaged");
  queue_.answer(batch[2], probabilities);
  queue_.count_refused();
  EXPECT_EQ(replies_, (Names{"a: 1 2", "b:damaged", "f: 1 2"}));
  const RequestQueue::Counts counts = queue_.counts();
  EXPECT_EQ(counts.predicted, 1);
  EXPECT_EQ(counts.refused, 2);
  EXPECT_EQ(counts.latencies.count(), 1);  // images of a folder and errors count no latency
  EXPECT_EQ(counts.latencies.over_goal(), 1);
}

TEST_F(RequestQueueOf, AClientThatHasGoneIsForgotten) {
  queue_.push(request("a", Request::Origin::client, 1));
  queue_.push(request("b", Request::Origin::client, 2));
  queue_.push(request("c", Request::Origin::client, 1));
  queue_.drop(1);
  EXPECT_EQ(next(8), (Names{"b"}));
  EXPECT_TRUE(replies_.empty());
}

TEST_F(RequestQueueOf, AClosedQueueRefusesClients) {
  queue_.push(request("a"));
  queue_.push(request("f", Request::Origin::folder));
  queue_.close("the end");
  queue_.push(request("b"));
  queue_.push(request("g", Request::Origin::folder));
  EXPECT_EQ(replies_, (Names{"a:the end", "b:the end"}));
  EXPECT_EQ(queue_.waiting(), 0u);
}

TEST_F(RequestQueueOf, AFailureReachesTheThreadThatPredicts) {
  std::thread later(
      [this] { queue_.fail(std::make_exception_ptr(std::runtime_error("the folder is gone"))); });
  EXPECT_THROW(queue_.next_batch(8, 30s), std::runtime_error);
  later.join();
}

TEST_F(RequestQueueOf, ManyThreadsLoseNothing) {
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < kEach; ++i) {
        Request one = request("x", i % 2 == 0 ? Request::Origin::client : Request::Origin::folder, t);
        one.reply = [](const Answer&) {};
        queue_.push(std::move(one));
      }
    });
  std::size_t taken = 0;
  while (taken < kThreads * kEach) {
    const std::vector<Request> batch = queue_.next_batch(7, 10s);
    ASSERT_FALSE(batch.empty());
    ASSERT_LE(batch.size(), 7u);
    for (const Request& one : batch) queue_.answer(one, std::array<float, 1>{1.0f});
    taken += batch.size();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(queue_.counts().predicted, kThreads * kEach / 2);
}

}  // namespace
}  // namespace convoy::app
