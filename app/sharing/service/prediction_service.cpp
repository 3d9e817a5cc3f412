#include "app/sharing/service/prediction_service.h"

#include <fmt/format.h>
#include <omp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "app/errors.h"
#include "app/execute/evaluate_batches.h"
#include "app/json_text.h"
#include "app/sharing/service/request_server.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/class_order.h"
#include "app/training/rank_setup.h"
#include "app/training/trained_network.h"
#include "comm/placement/rank_placement.h"
#include "data/atomic_file.h"
#include "data/convert/folder_source.h"

namespace convoy::app {
namespace {

// Two durations as fractions of the latency goal. kPatience is how long a request waits for others
// to fill its batch. kLate is how long a request may wait until trainings must stop, so that the
// service can catch up.
constexpr double kPatience = 0.25, kLate = 0.4;

using namespace std::chrono_literals;

Latencies::Duration nanoseconds(double ms) {
  return std::chrono::duration_cast<Latencies::Duration>(std::chrono::duration<double, std::milli>(ms));
}

nlohmann::ordered_json latencies_json(const Latencies& latencies) {
  const auto ms = [&](Latencies::Duration duration) -> nlohmann::ordered_json {
    if (latencies.count() == 0) return nullptr;
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  return {{"p50", ms(latencies.percentile(0.5))},
          {"p95", ms(latencies.percentile(0.95))},
          {"p99", ms(latencies.percentile(0.99))},
          {"max", ms(latencies.max())}};
}

constexpr const char* kEnded = "the service has ended";

// A source with a single batch, for evaluate_batches().
class OneBatch final : public data::BatchSource {
 public:
  explicit OneBatch(data::BatchLease batch) : batch_(std::move(batch)) {}
  data::BatchLease next() override { return std::move(batch_); }
  std::int64_t steps_per_epoch() const override { return 1; }
  double wait_ms() const override { return 0; }

 private:
  data::BatchLease batch_;
};

// Calls `action` every second in a thread of its own.
class EverySecond {
 public:
  explicit EverySecond(std::function<void()> action)
      : thread_([this, action = std::move(action)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, stop, 1s, [] { return false; }) && !stop.stop_requested()) action();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Session> PredictionService::make_session(const Network& network, const StepOptions& options,
                                                         const RankGroups& rank) {
  std::optional<CompiledSteps> steps;
  {
    const Admission admitted(options.gate, DeviceGate::Use::alone);
    steps = compile_steps(network, options, rank);
  }
  return std::make_unique<Session>(std::move(*steps), options, rank);
}

// The two sources of requests, which are the watched folder and the socket. The destructor refuses
// all waiting requests before it ends the two.
struct PredictionService::Outlets {
  RequestQueue& queue;
  std::optional<FolderWatcher> watcher;
  std::optional<RequestServer> server;

  explicit Outlets(RequestQueue& requests) : queue(requests) {}
  ~Outlets() { queue.close(kEnded); }
};

PredictionService::PredictionService(ServiceOptions options, const MakeSession& make)
    : options_(std::move(options)),
      threads_(options_.threads > 0 ? static_cast<int>(options_.threads)
                                    : static_cast<int>(comm::allowed_cores().size())),
      queue_(nanoseconds(options_.latency_goal_ms)),
      began_(std::chrono::steady_clock::now()) {
  if (!options_.warn) options_.warn = [](const std::string& message) { spdlog::warn("{}", message); };
  if (options_.socket.empty() && options_.watch.empty())
    throw UsageError("a prediction service has neither socket nor watch, expected at least one of them");
  check_precision(options_.backend, options_.precision);
  omp_set_num_threads(threads_);
  load();
  const RankGroups rank{&rank_, &rank_, nullptr};
  const Network network = make_trained_network(state_, options_.checkpoint, run_,
                                               {options_.batch, image_.channels, image_.height, image_.width},
                                               static_cast<int>(classes_.size()));
  session_ = make(network, step_, rank);
  SessionState(*session_).restore(state_, options_.checkpoint, state_.model, state_.classes,
                                  {image_.channels, image_.height, image_.width});
  make_loader();
  warm_up();
}

PredictionService::~PredictionService() = default;

void PredictionService::load() {
  state_ = load_trained(options_.checkpoint, options_.ema);
  take_over_options(state_, options_.checkpoint, run_);
  take_over_size(state_, run_);
  if (run_.size == 0)
    throw std::runtime_error(fmt::format("{}: was trained on images of {}x{}, expected square ones",
                                         options_.checkpoint, state_.input_shape[2], state_.input_shape[1]));
  classes_ = class_names(state_);
  data::StoreInfo info;
  info.format = data::ImageFormat::encoded;
  info.shape = {0, 0, encoded_channels(state_, options_.checkpoint)};
  info.mean = state_.mean;
  info.std = state_.std;
  image_ = test_augmentation(run_).output_shape(info.shape);
  step_.backend = options_.backend;
  step_.precision = options_.precision;
  step_.input = streamed_input(options_.backend, info, image_, options_.batch);
  step_.training = false;
  step_.keep_probabilities = true;
  step_.tuning_file = options_.tuning_file;
  step_.gate = options_.gate;
}

void PredictionService::make_loader() {
  const Dataset::Delivery delivery = delivery_for(step_.input, session_->memory());
  data::LoaderOptions loader;
  loader.global_batch = options_.batch;
  loader.augmentation = test_augmentation(run_);
  loader.mean = state_.mean;
  loader.std = state_.std;
  loader.threads = threads_;
  loader.output = delivery.output;
  loader.memory = delivery.memory;
  loader.buffers += delivery.held;
  loader_ = std::make_unique<data::RequestLoader>(static_cast<int>(image_.channels), loader);
}

void PredictionService::warm_up() {
  std::vector<std::string> errors;
  loader_->submit(0, nullptr);
  compute(loader_->next(errors), {});
}

void PredictionService::run(const std::function<bool()>& stop) {
  omp_set_num_threads(threads_);
  Outlets outlets(queue_);
  if (!options_.watch.empty()) {
    WatcherOptions watcher{.folder = options_.watch,
                           .table = options_.out / "predictions.csv",
                           .classes = classes_,
                           .top = options_.top,
                           .most_queued = 2 * static_cast<std::size_t>(options_.batch)};
    watcher.warn = options_.warn;
    outlets.watcher.emplace(std::move(watcher), queue_);
  }
  if (!options_.socket.empty())
    outlets.server.emplace(ServerOptions{.path = options_.socket, .classes = classes_, .top = options_.top},
                           queue_);
  const FolderWatcher* watcher = outlets.watcher ? &*outlets.watcher : nullptr;
  write_report(watcher);
  {
    const EverySecond reports([&] {
      try {
        write_report(watcher);
      } catch (const std::exception&) {
        queue_.fail(std::current_exception());
      }
    });
    while (!stop()) serve_once();
  }
  finish();
  write_report(watcher);
}

// Answers the requests whose images are being decoded, and refuses all that wait in the queue.
void PredictionService::finish() {
  queue_.close(kEnded);
  while (!decoding_.empty()) serve_once();
}

void PredictionService::serve_once() {
  if (decoding_.empty()) decode_next(50ms);
  if (decoding_.empty()) return;
  std::vector<std::string> errors;
  data::BatchLease batch = loader_->next(errors);
  const std::vector<Request> requests = std::exchange(decoding_, {});
  // Threads decode the next batch while this one is computed.
  decode_next(0ms);
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (!errors[i].empty())
      queue_.refuse(requests[i],
                    fmt::format("{}: {}", requests[i].path.empty() ? "bytes" : requests[i].path, errors[i]));
  const auto decoded = [](const std::string& error) { return error.empty(); };
  if (std::ranges::any_of(errors, decoded)) compute(std::move(batch), requests);
}

void PredictionService::decode_next(std::chrono::milliseconds wait) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const Request::Clock::time_point now = Request::Clock::now();
  const auto part_of_goal = [&](double part) {
    return std::chrono::duration_cast<Request::Clock::duration>(
        Milliseconds(options_.latency_goal_ms * part));
  };
  // A step takes as long for one image as for a full batch. If requests come fast, wait for a batch
  // to fill, as far as the goal allows.
  const bool busy = now - last_taken_ < part_of_goal(kPatience);
  decoding_ = queue_.next_batch(static_cast<std::size_t>(options_.batch), wait,
                                busy ? part_of_goal(kPatience) : Request::Clock::duration(0));
  if (!decoding_.empty()) last_taken_ = Request::Clock::now();
  if (options_.gate != nullptr) {
    // Announce a step only if the service is late, because trainings stop for an announced step.
    // Otherwise trainings may run between the service's steps.
    const bool late = options_.latency_goal_ms == 0 ||
                      (!decoding_.empty() && last_taken_ - decoding_.front().arrival > part_of_goal(kLate));
    options_.gate->expect_step(!decoding_.empty() && late);
  }
  if (decoding_.empty()) return;
  loader_->submit(std::ssize(decoding_), [this](std::int64_t image, std::vector<std::uint8_t>& scratch) {
    return read(decoding_[static_cast<std::size_t>(image)], scratch);
  });
}

std::span<const std::uint8_t> PredictionService::read(const Request& request,
                                                      std::vector<std::uint8_t>& scratch) {
  if (request.path.empty()) return request.bytes;
  // Refuse pipes, because opening a pipe would wait for a writer.
  std::error_code error;
  if (!std::filesystem::is_regular_file(request.path, error))
    throw std::runtime_error(error ? error.message() : "is no file");
  scratch = data::read_file(request.path);
  return scratch;
}

void PredictionService::compute(data::BatchLease batch, std::span<const Request> requests) {
  OneBatch source(std::move(batch));
  evaluate_batches(*session_, source, 0, [&](const EvaluatedBatch& evaluated) {
    for (std::size_t row = 0; row < requests.size(); ++row)
      if (evaluated.samples[row] >= 0)
        queue_.answer(requests[row], evaluated.probabilities.subspan(row * classes_.size(), classes_.size()));
  });
}

std::string PredictionService::describe() const { return describe_trained(state_, options_.ema); }

void PredictionService::write_report(const FolderWatcher* watcher) const {
  const RequestQueue::Counts counts = queue_.counts();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began_;
  nlohmann::ordered_json report{{"network", describe()},
                                {"seconds", seconds.count()},
                                {"batch", options_.batch},
                                {"steps", counts.batches},
                                {"images", counts.rows},
                                {"waiting", queue_.waiting()},
                                {"requests", {{"predicted", counts.predicted}, {"refused", counts.refused}}},
                                {"latency_ms", latencies_json(counts.latencies)}};
  if (options_.latency_goal_ms > 0) {
    report["latency_goal_ms"] = options_.latency_goal_ms;
    report["over_goal"] = counts.latencies.over_goal();
  }
  if (watcher != nullptr) {
    const FolderCounts folder = watcher->counts();
    report["folder"] = {{"predicted", folder.predicted},
                        {"damaged", folder.damaged},
                        {"left_out", folder.left_out},
                        {"waiting", folder.waiting}};
  }
  data::write_file_atomically(options_.out / "service.json", json_text(report, 2) + "\n");
}

}  // namespace convoy::app
