// A service that predicts the classes of images. Clients send images over a socket, or images are
// put into a folder. The service needs no MPI, so it can run in a thread of a process with other
// jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/execute/device_gate.h"
#include "app/execute/session.h"
#include "app/sharing/service/folder_watcher.h"
#include "app/sharing/service/request_queue.h"
#include "app/training/checkpoint/checkpoint.h"
#include "app/training/train_options.h"
#include "comm/single_rank.h"
#include "data/loader/request_loader.h"

namespace convoy::app {

struct ServiceOptions {
  // The fields up to `precision` mean the same as the flags of `convoy predict`.
  std::string checkpoint;
  bool ema = false;
  kernels::Backend backend = kernels::Backend::cpu;
  Precision precision = Precision::fp32;
  std::int64_t batch = 8;    // images in a step; a step with fewer images takes as long
  std::int64_t threads = 0;  // threads that compute and decode; 0: one per core of the calling thread
  std::size_t top = 5;       // classes of an answer, unless the request says how many
  // The tuning file (StepOptions::tuning_file). `convoy predict` uses none, so with a tuning file
  // the last bits of a result may differ from those of `convoy predict`.
  std::string tuning_file;

  // The path of the socket and the watched folder. At least one of the two must not be empty.
  std::filesystem::path socket, watch;
  double latency_goal_ms = 0;  // in milliseconds; latencies above it are counted; 0: no goal
  // The number of multiprocessors that trainings leave to the services that set this field. All
  // these services set the same number and share the same multiprocessors. 0: this service uses
  // the multiprocessors of the trainings.
  std::int64_t multiprocessors = 0;
  // The gate to the device; null if no other session of this process uses the device.
  DeviceGate* gate = nullptr;
  // Called with a line about each image of the folder that cannot be read, from any thread. If it
  // is null, the line goes to the log.
  std::function<void(const std::string&)> warn;
  // The folder of the job, which must exist. The service writes service.json there, and appends the
  // results of the watched folder to predictions.csv.
  std::filesystem::path out;
};

class PredictionService {
 public:
  // A function that makes the session for the network. It may change a copy of the options.
  using MakeSession = std::function<std::unique_ptr<Session>(
      const Network& network, const StepOptions& options, const RankGroups& rank)>;
  static std::unique_ptr<Session> make_session(const Network& network, const StepOptions& options,
                                               const RankGroups& rank);

  // Loads the checkpoint, makes the session and runs a first step, so that the first request does
  // not wait for this. With --backend cuda the calling thread must have chosen its device before.
  // Throws std::runtime_error, or UsageError that names an option.
  explicit PredictionService(ServiceOptions options, const MakeSession& make = make_session);
  ~PredictionService();

  // Opens the socket, watches the folder, and predicts on the calling thread until `stop` returns
  // true. Then answers the requests that are being predicted and refuses those that wait. The
  // probabilities have the same bits as those of `convoy predict` with the same batch and threads.
  // Throws if the service cannot go on because the device fails, a table cannot be written, or the
  // watched folder is gone. Call it once.
  void run(const std::function<bool()>& stop);

  // May be called by any thread.
  const RequestQueue& queue() const { return queue_; }
  std::string describe() const;  // for example "resnet18 after step 300"

 private:
  struct Outlets;

  void load();
  void make_loader();
  void warm_up();
  void serve_once();
  void finish();
  void decode_next(std::chrono::milliseconds wait);
  void compute(data::BatchLease batch, std::span<const Request> requests);
  static std::span<const std::uint8_t> read(const Request& request, std::vector<std::uint8_t>& scratch);
  void write_report(const FolderWatcher* watcher) const;

  ServiceOptions options_;
  int threads_ = 1;
  comm::SingleRank rank_;
  CheckpointState state_;
  TrainOptions run_;  // options taken from the training that made the checkpoint
  std::vector<std::string> classes_;
  StepOptions step_;
  data::ImageShape image_;  // the shape of the network's input images
  std::unique_ptr<Session> session_;
  // The requests of the batch that the loader fills. The loader's threads read them, so the loader
  // is declared after them and destroyed first.
  std::vector<Request> decoding_;
  std::unique_ptr<data::RequestLoader> loader_;
  RequestQueue queue_;
  Request::Clock::time_point last_taken_{};  // when a batch was last taken from the queue
  std::chrono::steady_clock::time_point began_;
};

}  // namespace convoy::app
