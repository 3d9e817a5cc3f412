#include "app/commands/bench/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/bench/backward_sample.h"
#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/median.h"
#include "app/training/rank_setup.h"
#include "comm/benchmark/measure.h"
#include "comm/nccl/nccl_collectives.h"
#include "comm/placement/environment.h"

namespace convoy::app {
namespace {

using comm::CollectivesMeter;
using comm::Movement;
using Way = CollectivesMeter::Way;

constexpr int kSamples = 7;

struct Options {
  kernels::Backend backend = kernels::Backend::cpu;
  std::vector<std::string> operations{"all-reduce",   "gradients", "broadcast",
                                      "send-receive", "buckets",   "overlap"};
  std::int64_t from = 8, to = std::int64_t{256} << 20, total = std::int64_t{100} << 20;
  int factor = 2;
  double milliseconds = 20;
  bool json = false;
};

struct Spread {
  double median = 0, least = 0, most = 0;  // measured times in microseconds
};

Spread spread_of(const std::vector<double>& samples) {
  const auto [least, most] = std::ranges::minmax(samples);
  return {median(samples), least, most};
}

struct Row {
  std::string operation;
  std::int64_t bytes;
  // The times of Convoy's collective (`own`) and of the call of MPI or NCCL (`plain`). A median of
  // 0 means not measured.
  Spread own, plain;
  // The bytes that cross the links per byte of the operands, from bus_factor().
  double factor;
  // Returns the bus bandwidth in GB/s.
  double bus(const Spread& time) const { return factor * static_cast<double>(bytes) / time.median * 1e-3; }
};

// The overlap of an all-reduce with computation at the same time.
struct OverlapRow {
  std::int64_t bytes;
  // Mean microseconds of one operation while nothing is communicated.
  double operation;
  // Median microseconds of the all-reduce alone, of the computation alone, and of both at the same
  // time.
  double communication, computation, together;
  double overlap() const { return std::clamp(1 - (together - computation) / communication, 0.0, 1.0); }
};

class CollectivesBenchmark {
 public:
  CollectivesBenchmark(const Options& options, const comm::MpiEnvironment& environment)
      : options_(options), ranks_(environment.world()), device_(environment.device().to_string()) {
    run_on_all_ranks(ranks_, [&] {
      make_meter(std::max({options.to, options.total, comm::kNcclBucketSizes.bytes}));
    });
    run_on_all_ranks(ranks_, [&] { meter_->connect(); });
  }

  void run() {
    if (ranks_.size() < 2)
      throw std::runtime_error(
          "bench collectives: found one rank, expected two or more: start it with mpirun");
    if (is_root() && !options_.json)
      fmt::print("{} ranks, {}, {}\n{:>13} {:>12} {:>11} {:>8} {:>9} {:>11} {:>9} {:>9}\n", ranks_.size(),
                 device_, meter_->library(), "operation", "bytes", "us", "+-%", "bus GB/s", "library us",
                 "bus GB/s", "x library");
    for (const Movement movement :
         {Movement::all_reduce, Movement::gradients, Movement::broadcast, Movement::send_receive})
      if (wanted(name_of(movement)))
        for (std::int64_t bytes = options_.from; bytes <= options_.to; bytes *= options_.factor)
          print(measured(movement, bytes));
    if (wanted("buckets"))
      for (std::int64_t bucket = std::int64_t{1} << 20; bucket <= options_.total; bucket *= 2)
        print(in_buckets(bucket));
    if (wanted("overlap") && options_.backend == kernels::Backend::cuda)
      // Measure a bucket of gradients that NCCL sums with thread blocks, and a larger one. On one
      // host, copy engines move the larger one, so that it occupies no multiprocessors.
      for (const std::int64_t bytes : {comm::kLeastCopiedBytes / 2, comm::kLeastCopiedBytes})
        for (const std::int64_t images : {8, 32, 256}) print(next_to_computation(bytes, images));
  }

 private:
  void make_meter(std::int64_t most) {
    meter_ = options_.backend == kernels::Backend::cuda ? comm::make_nccl_meter(ranks_, most)
                                                        : comm::make_mpi_meter(ranks_, most);
  }
  bool is_root() const { return ranks_.rank() == 0; }
  bool wanted(const std::string& operation) const {
    return std::find(options_.operations.begin(), options_.operations.end(), operation) !=
           options_.operations.end();
  }

  // Returns how many calls that take `microseconds` each fit into the time --milliseconds, but at
  // least 3 and at most 200. Every rank must take part in each call, so all ranks get the lowest
  // count of any rank.
  int times_for(double microseconds) const {
    const double times = options_.milliseconds * 1e3 / microseconds;
    return ranks_.all_reduce(static_cast<std::int32_t>(std::clamp(times, 3.0, 200.0)), comm::ReduceOp::min,
                             "bench");
  }

  Row measured(Movement movement, std::int64_t bytes) {
    for (const Way way : {Way::own, Way::library})
      if (!meter_->correct(movement, bytes, way))
        throw std::runtime_error(fmt::format("bench collectives: {} of {} bytes is wrong ({})",
                                             name_of(movement), bytes,
                                             way == Way::own ? "Convoy" : meter_->library()));
    const int times = times_for(meter_->microseconds(movement, bytes, Way::library, 3));
    std::vector<double> own, library;
    // Measure Convoy's and the library's calls alternately, so that other load affects both alike.
    for (int sample = 0; sample < kSamples; ++sample) {
      own.push_back(meter_->microseconds(movement, bytes, Way::own, times));
      library.push_back(meter_->microseconds(movement, bytes, Way::library, times));
    }
    return {name_of(movement), bytes, spread_of(own), spread_of(library),
            bus_factor(movement, ranks_.size())};
  }

  Row in_buckets(std::int64_t bucket) {
    const int times = times_for(meter_->bucketed_microseconds(options_.total, bucket, 1));
    std::vector<double> own;
    for (int sample = 0; sample < kSamples; ++sample)
      own.push_back(meter_->bucketed_microseconds(options_.total, bucket, times));
    return {fmt::format("by {} MiB", bucket >> 20),
            options_.total,
            spread_of(own),
            {},
            bus_factor(Movement::all_reduce, ranks_.size())};
  }

  // Times the all-reduce of a gradient bucket during a computation that takes longer than the
  // all-reduce.
  OverlapRow next_to_computation(std::int64_t bytes, std::int64_t images) {
    const BackwardSample sample(images);
    int repeats = 1;
    const auto computation = [&](kernels::Stream stream) {
      for (int repeat = 0; repeat < repeats; ++repeat) sample.launch(stream);
    };
    const auto once = meter_->side_by_side(bytes, computation, 3);
    repeats =
        ranks_.all_reduce(static_cast<std::int32_t>(std::ceil(2 * once.communication / once.computation)) + 1,
                          comm::ReduceOp::max, "bench");
    const int times = times_for(repeats * once.computation);
    std::vector<double> communication, alone, together;
    for (int i = 0; i < kSamples; ++i) {
      const auto all = meter_->side_by_side(bytes, computation, times);
      communication.push_back(all.communication);
      alone.push_back(all.computation);
      together.push_back(all.together);
    }
    const double median = spread_of(alone).median;
    return {bytes, median / (repeats * sample.operations()), spread_of(communication).median, median,
            spread_of(together).median};
  }

  void print(const OverlapRow& row) const {
    if (!is_root()) return;
    if (options_.json)
      fmt::print("{}\n", nlohmann::json({{"operation", "overlap"},
                                         {"backend", options_.backend},
                                         {"device", device_},
                                         {"ranks", ranks_.size()},
                                         {"bytes", row.bytes},
                                         {"operation_microseconds", row.operation},
                                         {"communication_microseconds", row.communication},
                                         {"computation_microseconds", row.computation},
                                         {"microseconds", row.together},
                                         {"overlap", row.overlap()}})
                             .dump());
    else
      fmt::print("{:>13} {:>12} {:>11.2f}  {:.2f} us next to operations of {:.1f} us: {:.1f} % hidden\n",
                 "overlap", row.bytes, row.together, row.communication, row.operation, 100 * row.overlap());
    std::fflush(stdout);
  }

  void print(const Row& row) const {
    if (!is_root()) return;
    const bool both = row.plain.median > 0;
    if (options_.json) {
      nlohmann::json object{{"operation", row.operation},
                            {"backend", options_.backend},
                            {"device", device_},
                            {"ranks", ranks_.size()},
                            {"library", meter_->library()},
                            {"bytes", row.bytes},
                            {"microseconds", row.own.median},
                            {"microseconds_least", row.own.least},
                            {"microseconds_most", row.own.most},
                            {"bus_gbytes_per_second", row.bus(row.own)}};
      if (both) {
        object["library_microseconds"] = row.plain.median;
        object["library_bus_gbytes_per_second"] = row.bus(row.plain);
        object["of_library"] = row.plain.median / row.own.median;
      }
      fmt::print("{}\n", object.dump());
    } else {
      fmt::print("{:>13} {:>12} {:>11.2f} {:>8.1f} {:>9.2f}", row.operation, row.bytes, row.own.median,
                 50 * (row.own.most - row.own.least) / row.own.median, row.bus(row.own));
      if (both)
        fmt::print(" {:>11.2f} {:>9.2f} {:>9.3f}", row.plain.median, row.bus(row.plain),
                   row.plain.median / row.own.median);
      fmt::print("\n");
    }
    std::fflush(stdout);
  }

  const Options options_;
  const comm::Communicator& ranks_;
  std::string device_;
  std::unique_ptr<CollectivesMeter> meter_;
};

}  // namespace

void add_bench_collectives(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = bench.add_subcommand(
      "collectives", "Collectives of all ranks: time and bus bandwidth by size, next to MPI's or NCCL's own");
  add_choice(*verb, "--backend", options->backend, "cpu: host memory over MPI; cuda: device memory over NCCL",
             {"cpu", "cuda"});
  verb->add_option("--operations", options->operations,
                   "several with commas; gradients: an all-reduce in memory that the ranks share, if they "
                   "can; buckets: "
                   "gradients cut up; overlap: of gradients with computation, cuda alone; default: all")
      ->delimiter(',')
      ->check(one_of({"all-reduce", "gradients", "broadcast", "send-receive", "buckets", "overlap"}));
  verb->add_option("--from", options->from, "bytes of the smallest message, a multiple of 4")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb->add_option("--factor", options->factor, "from one size to the next")
      ->check(whole_number(2, 1024))
      ->capture_default_str();
  verb->add_option("--to", options->to, "bytes of the largest message")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb->add_option("--total", options->total, "bytes that buckets cuts up")
      ->transform(size_in_bytes())
      ->type_name("SIZE")
      ->capture_default_str();
  verb->add_option("--milliseconds", options->milliseconds, "length of each of the seven samples of a time")
      ->check(number_in("[0.1, 10000]"))
      ->type_name("MS")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options, verb] {
    const auto is_wanted = [&](std::string_view operation) {
      return verb->count("--operations") > 0 && std::ranges::count(options->operations, operation) > 0;
    };
    if (options->backend == kernels::Backend::cpu && is_wanted("overlap"))
      throw UsageError("--operations overlap: found --backend cpu, expected cuda");
    if (options->total < 1 << 20 && is_wanted("buckets"))
      throw UsageError(fmt::format("--total: found {}, expected a bucket of 1 MiB or more", options->total));
    if (options->from % 4 != 0 || options->from > options->to)
      throw UsageError(fmt::format("--from: found {}, expected a multiple of 4 up to {} (--to)",
                                   options->from, options->to));
    const comm::MpiEnvironment environment(std::chrono::minutes(1), device_of(options->backend));
    CollectivesBenchmark(*options, environment).run();
  });
}

}  // namespace convoy::app
