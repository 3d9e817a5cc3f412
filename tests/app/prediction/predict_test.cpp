#include "app/prediction/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

// Returns a cluster of nodes with 4 devices. Links have 10 GB/s and 2 us within a node, and 1 GB/s
// and 5 us between nodes. A call takes 3 us.
Cluster cluster(double overlap = 1) {
  return Cluster::parse(R"({"devices_per_node": 4, "call_us": 3, "overlap": )" + std::to_string(overlap) +
                            R"(, "within_node": {"latency_us": 2, "gbytes_per_second": 10},
                             "between_nodes": {"latency_us": 5, "gbytes_per_second": 1},
                             "device": {"gflops": {"fp32": 1000}, "gbytes_per_second": 100, "launch_us": 1}})",
                        "t.json");
}

StepProfile hand_made() {
  StepProfile profile;
  profile.model = "m", profile.batch = 8;
  profile.operations = {{"a", "forward", 4},
                        {"b", "backward", 3},
                        {"a", "backward", 3},
                        {"parameters", "optimizer_update", 2, false, true}};
  return profile;
}

TEST(ClusterModel, AllReduceByHand) {
  EXPECT_EQ(cluster().all_reduce_us(1e6, 1), 0);
  // The call takes 3 us. Two ranks take 2 steps of 2 us, and each sends the whole megabyte in 100
  // us.
  EXPECT_NEAR(cluster().all_reduce_us(1e6, 2), 3 + 2 * 2 + 100, 1e-9);
  // Four ranks take 4 steps of a tree, and each sends 1.5 MB.
  EXPECT_NEAR(cluster().all_reduce_us(1e6, 4), 3 + 4 * 2 + 150, 1e-9);
  // Two nodes with four ranks each take the same time within each node. Then they take 2 steps of 5
  // us, and each sends 1 MB over its link of 1 GB/s.
  EXPECT_NEAR(cluster().all_reduce_us(1e6, 8), 3 + 4 * 2 + 150 + 2 * 5 + 1000, 1e-9);
}

TEST(ClusterModel, FitFindsTheLinkThatMadeTheMeasurements) {
  Cluster measured = cluster(), truth = cluster();
  Cluster wrong = Cluster::parse(R"({"devices_per_node": 4, "call_us": 3, "overlap": 1,
      "within_node": {"latency_us": 50, "gbytes_per_second": 1}, "between_nodes": {"latency_us": 5, "gbytes_per_second": 1},
      "device": {"gflops": {}, "gbytes_per_second": 100, "launch_us": 1}})",
                                 "t.json");
  for (const int ranks : {2, 4})
    for (const double bytes : {1e3, 1e5, 1e7})
      wrong.add_measurement(ranks, bytes, truth.all_reduce_us(bytes, ranks));
  wrong.fit();
  EXPECT_NEAR(wrong.within().latency_us, 2, 1e-6);
  EXPECT_NEAR(wrong.within().gbytes_per_second, 10, 1e-6);
  EXPECT_NEAR(wrong.all_reduce_us(3e6, 3), truth.all_reduce_us(3e6, 3),
              1e-6);  // 3 ranks were not measured
  EXPECT_NEAR(wrong.all_reduce_us(3e6, 4), truth.all_reduce_us(3e6, 4),
              1e-6);  // this size was not measured
}

// The fit of the link within a node must not use messages between nodes. Nor can it use messages of
// a single size, from which latency and bandwidth cannot be told apart.
TEST(ClusterModel, FitOfTheLinkInANodeIgnoresOtherMeasurements) {
  Cluster measured = cluster();
  for (const double bytes : {1e3, 1e5, 1e7})
    for (const int ranks : {2, 4, 8})
      measured.add_measurement(ranks, bytes, cluster().all_reduce_us(bytes, ranks));
  measured.fit();
  EXPECT_NEAR(measured.within().latency_us, 2, 1e-6);
  EXPECT_NEAR(measured.within().gbytes_per_second, 10, 1e-6);
  EXPECT_NEAR(measured.all_reduce_us(3e6, 8), cluster().all_reduce_us(3e6, 8), 1e-6);
  Cluster one_size = cluster();
  for (const double us : {5000.0, 4000.0, 3100.0}) one_size.add_measurement(2, 1e6, us);
  one_size.fit();
  EXPECT_EQ(one_size.within().latency_us, 2);
  EXPECT_EQ(one_size.within().gbytes_per_second, 10);
}

TEST(ClusterModel, FitFindsTheLinkBetweenNodesToo) {
  const Cluster truth = cluster();
  Cluster wrong = Cluster::parse(R"({"devices_per_node": 4, "call_us": 3, "overlap": 1,
      "within_node": {"latency_us": 2, "gbytes_per_second": 10}, "between_nodes": {"latency_us": 90, "gbytes_per_second": 9},
      "device": {"gflops": {}, "gbytes_per_second": 100, "launch_us": 1}})",
                                 "t.json");
  for (const double bytes : {1e3, 1e5, 1e7}) wrong.add_measurement(8, bytes, truth.all_reduce_us(bytes, 8));
  wrong.fit();
  EXPECT_NEAR(wrong.all_reduce_us(3e6, 16), truth.all_reduce_us(3e6, 16), 1e-6);
  EXPECT_NEAR(wrong.all_reduce_us(3e6, 4), truth.all_reduce_us(3e6, 4), 1e-6);
  // Nodes with one device have no link within the node.
  const std::string hosts = R"({"devices_per_node": 1, "call_us": 10, "overlap": 0.5,
      "between_nodes": {"latency_us": 30, "gbytes_per_second": 1.12},
      "device": {"gflops": {}, "gbytes_per_second": 80, "launch_us": 1}})";
  Cluster slower = Cluster::parse(hosts, "t.json");
  for (const double bytes : {1e3, 1e5, 1e7})
    slower.add_measurement(2, bytes, 10 + 2 * 100 + bytes / 0.5 * 1e-3);
  slower.fit();
  EXPECT_NEAR(slower.all_reduce_us(1e6, 4), 10 + 4 * 100 + 1.5e6 / 0.5 * 1e-3, 1e-6);
}

// In an all-reduce over several nodes a node can use only the network ports of its devices that
// take part, so a partly filled node is slower.
TEST(ClusterModel, APartlyFilledNodeHasThePortsOfItsDevices) {
  const auto with_ports = [](const char* ports) {
    return Cluster::parse(std::string(R"({"devices_per_node": 4, "call_us": 3, "overlap": 1,
      "within_node": {"latency_us": 2, "gbytes_per_second": 10},
      "between_nodes": {"latency_us": 5, "gbytes_per_second": 1)") +
                              ports +
                              R"(}, "device": {"gflops": {}, "gbytes_per_second": 100, "launch_us": 1}})",
                          "t.json");
  };
  const double within = 3 + 4 * 2 + 150;
  const Cluster four = with_ports(R"(, "ports": 4)"), two = with_ports(R"(, "ports": 2)");
  EXPECT_NEAR(four.all_reduce_us(1e6, 8), within + 2 * 5 + 1000, 1e-9);
  EXPECT_NEAR(four.all_reduce_us(1e6, 7), within + 2 * 5 + 1000 * 4 / 3.0, 1e-9);
  EXPECT_NEAR(four.all_reduce_us(1e6, 5), within + 2 * 5 + 4000, 1e-9);
  EXPECT_NEAR(two.all_reduce_us(1e6, 7), within + 2 * 5 + 1000, 1e-9);
  EXPECT_NEAR(with_ports("").all_reduce_us(1e6, 5), within + 2 * 5 + 1000,
              1e-9);  // one port for the whole node
  Cluster fitted = with_ports(R"(, "ports": 4)");
  for (const double bytes : {1e3, 1e5, 1e7}) fitted.add_measurement(5, bytes, four.all_reduce_us(bytes, 5));
  fitted.fit();
  EXPECT_NEAR(fitted.all_reduce_us(1e6, 16), four.all_reduce_us(1e6, 16), 1e-6);
}

TEST(ClusterModel, MeasurementsComeInAnyOrder) {
  Cluster measured = cluster();
  for (const auto& [bytes, us] : {std::pair{3e6, 70.0}, {2e6, 50.0}, {1e6, 40.0}})
    measured.add_measurement(2, bytes, us);
  measured.fit();
  EXPECT_NEAR(measured.all_reduce_us(1.5e6, 2), 45, 1e-9);
}

// Several rows may have the same number of ranks and bytes, for example if a file is given twice.
// Their mean must count, and there must be no division by zero.
TEST(ClusterModel, RowsOfOneSizeAreTheirMean) {
  const auto file = std::filesystem::temp_directory_path() / ("twice-" + std::to_string(::getpid()));
  std::ofstream(file)
      << R"({"operation":"all-reduce","ranks":2,"bytes":1000,"microseconds":20.0})"
      << "\n"
      << R"({"operation":"all-reduce","ranks":2,"bytes":1000,"microseconds":40.0})"
      << "\n"
      << R"({"operation":"gradients","ranks":2,"bytes":1000,"microseconds":60.0})"
      << "\n"
      << R"({"operation":"overlap","ranks":2,"bytes":1000,"operation_microseconds":10,"overlap":0.2})"
      << "\n"
      << R"({"operation":"overlap","ranks":2,"bytes":1000,"operation_microseconds":10,"overlap":0.6})"
      << "\n";
  Cluster measured = cluster();
  for (int time = 0; time < 3; ++time) measured.use_measurements(file);
  EXPECT_NEAR(measured.all_reduce_us(1000, 2), 30, 1e-9);
  EXPECT_NEAR(measured.all_reduce_us(2000, 2), 60, 1e-9);
  EXPECT_NEAR(measured.gradients_us(1000, 2), 60, 1e-9);
  EXPECT_NEAR(measured.overlap(10, 1000, 2), 0.4, 1e-9);
  std::filesystem::remove(file);
}

// The time of the largest message is wrong by one per cent, which is a millisecond. The fit must
// not explain this by a latency, which is only microseconds.
TEST(ClusterModel, FitWeighsRelativeErrors) {
  Cluster measured = cluster();
  for (const double bytes : {1e3, 1e5, 1e7, 1e9})
    measured.add_measurement(2, bytes, cluster().all_reduce_us(bytes, 2) * (bytes == 1e9 ? 1.01 : 1));
  measured.fit();
  EXPECT_NEAR(measured.within().latency_us, 2, 0.05);
  EXPECT_NEAR(measured.within().gbytes_per_second, 10, 0.1);
}

TEST(ClusterModel, ReadsWhatBenchCollectivesPrints) {
  const auto file = std::filesystem::temp_directory_path() / ("collectives-" + std::to_string(::getpid()));
  std::ofstream(file) << R"({"operation":"all-reduce","ranks":2,"bytes":1000000,"microseconds":50.0})"
                      << "\n"
                      << R"({"operation":"all-reduce","ranks":2,"bytes":3000000,"microseconds":70.0})"
                      << "\n"
                      << R"({"operation":"broadcast","ranks":2,"bytes":2000000,"microseconds":1.0})"
                      << "\n";
  Cluster measured = cluster();
  measured.use_measurements(file);
  EXPECT_NEAR(measured.all_reduce_us(2e6, 2), 60, 1e-9);
  std::ofstream(file) << R"({"operation":"by 1 MiB","ranks":2,"bytes":1000000,"microseconds":50.0})"
                      << "\n";
  EXPECT_THROW(measured.use_measurements(file), std::runtime_error);
  std::filesystem::remove(file);
}

TEST(ClusterModel, MeasuredOverlapReplacesTheGivenOne) {
  const auto file = std::filesystem::temp_directory_path() / ("overlap-" + std::to_string(::getpid()));
  std::ofstream(file)
      << R"({"operation":"all-reduce","ranks":2,"bytes":1000000,"microseconds":50.0})"
      << "\n"
      << R"({"operation":"overlap","ranks":4,"bytes":1000,"operation_microseconds":5000,"overlap":0.4})"
      << "\n"
      << R"({"operation":"overlap","ranks":4,"bytes":1000,"operation_microseconds":2000,"overlap":0.8})"
      << "\n";
  Cluster measured = cluster(0.5);
  EXPECT_EQ(measured.overlap(2000, 1e6, 4), 0.5);
  measured.use_measurements(file);
  EXPECT_NEAR(measured.overlap(3500, 1e6, 4), 0.6, 1e-12);
  EXPECT_EQ(measured.overlap(1, 1e6, 2), 0.8);    // from measurements with 4 ranks
  EXPECT_EQ(measured.overlap(1e9, 1e6, 8), 0.4);  // from measurements with 4 ranks, too
  // The operations take 4, 3, 3 and 2 ms. Their mean, weighted by time, is 38/12 ms; the overlap is
  // interpolated there. The part of the bucket's 50 us that is not hidden delays the computation.
  const double hidden = 0.8 - 0.4 * (38e3 / 12 - 2000) / 3000;
  const StepPrediction step = predict_step(hand_made(), std::vector<TimedBucket>{{1e6, 0}}, measured, 2);
  EXPECT_NEAR(step.step_ms, 12 + (1 - hidden) * 0.050 + measured.all_reduce_us(40, 2) * 1e-3, 1e-9);
  std::ofstream(file)
      << R"({"operation":"overlap","ranks":4,"bytes":1000,"operation_microseconds":5000,"overlap":1.5})"
      << "\n";
  EXPECT_THROW(measured.use_measurements(file), std::runtime_error);
  std::filesystem::remove(file);
}

// Within a node, gradients may be summed by a faster transport than other tensors, so they are
// measured on their own. Between nodes these measurements must not count.
TEST(ClusterModel, GradientsHaveWaysOfTheirOwnWithinANode) {
  const auto file = std::filesystem::temp_directory_path() / ("gradients-" + std::to_string(::getpid()));
  std::ofstream(file)
      << R"({"operation":"all-reduce","ranks":2,"bytes":1000000,"microseconds":50.0})"
      << "\n"
      << R"({"operation":"gradients","ranks":2,"bytes":3000000,"microseconds":90.0})"
      << "\n"
      << R"({"operation":"gradients","ranks":2,"bytes":1000000,"microseconds":70.0})"
      << "\n"
      << R"({"operation":"overlap","ranks":2,"bytes":8000,"operation_microseconds":10,"overlap":0.4})"
      << "\n"
      << R"({"operation":"overlap","ranks":2,"bytes":32000,"operation_microseconds":10,"overlap":0.8})"
      << "\n";
  Cluster measured = cluster();
  measured.use_measurements(file);
  EXPECT_NEAR(measured.gradients_us(2e6, 2), 80, 1e-9);
  EXPECT_EQ(measured.all_reduce_us(1e6, 2), 50);
  EXPECT_NEAR(measured.gradients_us(1e6, 4), measured.all_reduce_us(1e6, 4) * 70 / 50, 1e-9);
  EXPECT_EQ(measured.gradients_us(1e6, 1), 0);
  EXPECT_EQ(measured.overlap(10, 7999, 2), 0.4);
  EXPECT_EQ(measured.overlap(10, 31999, 2), 0.4);
  EXPECT_EQ(measured.overlap(10, 32000, 2), 0.8);
  const int beyond = measured.devices_per_node() + 1;
  EXPECT_EQ(measured.overlap(10, 32000, beyond), 0.4);
  EXPECT_EQ(measured.gradients_us(1e6, beyond), measured.all_reduce_us(1e6, beyond));
  // Measurements with more ranks than a node has must not change the prediction for one node.
  std::ofstream(file) << R"({"operation":"all-reduce","ranks":)" << beyond
                      << R"(,"bytes":1000000,"microseconds":500.0})"
                      << "\n"
                      << R"({"operation":"gradients","ranks":)" << beyond
                      << R"(,"bytes":1000000,"microseconds":500.0})"
                      << "\n"
                      << R"({"operation":"overlap","ranks":)" << beyond
                      << R"(,"bytes":32000,"operation_microseconds":10,"overlap":0.1})"
                      << "\n";
  const double before = measured.gradients_us(1e6, beyond - 1);
  measured.use_measurements(file);
  EXPECT_EQ(measured.gradients_us(1e6, beyond - 1), before);
  EXPECT_EQ(measured.overlap(10, 32000, beyond - 1), 0.8);
  std::filesystem::remove(file);
}

TEST(ClusterModel, BadFilesNameTheField) {
  for (const auto& [text, words] :
       {std::pair{"{", "not JSON at byte 2"},
        std::pair{R"({"call_us": 3, "call_us": 4})", "field \"call_us\" is given twice"},
        std::pair{"{}", "devices_per_node"},
        std::pair{R"({"name": 5, "devices_per_node": 1})", "name: found 5, expected a string"},
        std::pair{R"({"name": [5], "devices_per_node": 1})", "name: found an array, expected a string"},
        std::pair{R"({"devices_per_node": 2.7})", "devices_per_node: found 2.7, expected a whole number"},
        std::pair{R"({"devices_per_node": 1, "call_us": -1})", "call_us"},
        std::pair{R"({"devices_per_node": 1, "call_us": 1, "overlap": 2})", "overlap"},
        std::pair{R"({"devices_per_node": 1, "call_us": 1, "overlap": 1})", "between_nodes"}})
    try {
      Cluster::parse(text, "bad.json");
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("bad.json"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
}

// The files in jobs/topologies/ must be readable and have the intended values.
TEST(ClusterModel, ReadsTheFilesOfJobsTopologies) {
  const std::filesystem::path folder = CONVOY_TOPOLOGIES;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_NO_THROW(Cluster::read(entry.path())) << entry.path();
  const Cluster h200 = Cluster::read(folder / "8xh200-nvlink-8x400g.json");
  EXPECT_NEAR(h200.all_reduce_us(1e9, 9) - h200.all_reduce_us(1e9, 8), 8 * 1e9 / 340 * 1e-3, 100);
  // NCCL's thread blocks occupy multiprocessors on an A100, too, and so slow the computation down.
  EXPECT_EQ(Cluster::read(folder / "4xa100-nvlink-1x200g.json").overlap(50, 1e6, 4), 0.4);
  const Cluster hosts = Cluster::read(folder / "ethernet-10g.json");
  const Network network = make_network("lenet", {8, 3, 32, 32}, 10);
  EXPECT_EQ(estimate_profile(network, Precision::fp32, hosts.device()).backend, kernels::Backend::cpu);
  EXPECT_EQ(estimate_profile(network, Precision::fp32, h200.device()).backend, kernels::Backend::cuda);
}

TEST(Prediction, OverlapByHand) {
  const StepProfile profile = hand_made();
  // Two ranks take 2.007 ms for 20 MB and 3.007 ms for 30 MB. The first bucket starts at 7 ms,
  // while 3 ms of computation are left, and is hidden. The second bucket starts when backward ends
  // at 10 ms, so all of it is exposed. The 40 bytes of the metrics take 7.004 us.
  const std::vector<TimedBucket> buckets{{20e6, 1}, {30e6, 2}};
  const StepPrediction step = predict_step(profile, buckets, cluster(), 2);
  EXPECT_NEAR(step.compute_ms, 12, 1e-9);
  EXPECT_NEAR(step.exposed_comm_ms, 3.007 + 0.007004, 1e-6);
  EXPECT_NEAR(step.communication_ms, 2.007 + 3.007 + 0.007004, 1e-6);
  // A GPU finishes the sum of the metrics before backward ends.
  StepProfile on_gpu = profile;
  on_gpu.backend = kernels::Backend::cuda;
  EXPECT_NEAR(predict_step(on_gpu, buckets, cluster(), 2).exposed_comm_ms, 3.007, 1e-6);
  // With an overlap of 0 nothing is hidden: communication prolongs the step by its whole time.
  const StepPrediction naked = predict_step(profile, buckets, cluster(0), 2);
  EXPECT_NEAR(naked.exposed_comm_ms, naked.communication_ms, 1e-9);
}

// Four buckets are ready when backward ends. They must be summed one after the other, and nothing
// is hidden.
TEST(Prediction, TheNetworkDoesOneBucketAtATime) {
  const std::vector<TimedBucket> buckets(4, {20e6, 2});
  for (const double overlap : {0.0, 0.4, 1.0}) {
    const StepPrediction step = predict_step(hand_made(), buckets, cluster(overlap), 2);
    EXPECT_NEAR(step.exposed_comm_ms, 4 * 2.007 + 0.007004, 1e-6) << overlap;
  }
}

TEST(Prediction, APrecisionWithoutARateSaysWhichHaveOne) {
  const Network network = make_network("lenet", {8, 3, 32, 32}, 10);
  try {
    estimate_profile(network, Precision::bf16, cluster().device());
    FAIL() << "a precision without a rate was estimated";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "--precision bf16: the topology's device.gflops has fp32 alone");
  }
}

// The estimate must count the bytes that a GPU moves. In forward a batch norm with residual and
// ReLU reads x and the residual, and writes y and a mask of one bit per element.
TEST(Prediction, AMaskIsABitAnElement) {
  const Network network = make_network("resnet18", {32, 3, 32, 32}, 10);
  DeviceRates slow = cluster().device();
  slow.gbytes_per_second = 1e-3;  // only bytes take time
  slow.launch_us = 0;
  const double elements = 32.0 * 64 * 8 * 8;
  for (const TimedOperation& operation : estimate_profile(network, Precision::fp32, slow).operations)
    if (operation.layer == "layer1.0.bn2" && operation.kind == "batch_norm_forward") {
      const double bytes = operation.ms * slow.gbytes_per_second * 1e6;
      // The tolerance is for the values per channel, such as mean and scale.
      EXPECT_NEAR(bytes / elements, 3 * 4 + 1.0 / 8, 2e-2);
      return;
    }
  FAIL() << "no such operation";
}

// On a GPU in bf16 and tf32, but not in fp32, a convolution also computes the sums of a batch norm
// that gets two gradients. Then the estimate must leave out the operation that otherwise computes
// them (batch_norm_backward_reduce).
TEST(Prediction, ConvolutionsTakeTheSumsOfGradients) {
  const Network network = make_network("resnet18", {32, 3, 32, 32}, 10);
  DeviceRates device = cluster().device();
  device.backend = kernels::Backend::cuda;
  device.gflops = {{Precision::fp32, 1}, {Precision::tf32, 1}, {Precision::bf16, 1}};
  const auto reduces = [&](Precision precision) {
    return std::ranges::count(estimate_profile(network, precision, device).operations,
                              "batch_norm_backward_reduce", &TimedOperation::kind);
  };
  EXPECT_LT(reduces(Precision::tf32), reduces(Precision::fp32));
  EXPECT_EQ(reduces(Precision::tf32), reduces(Precision::bf16));
}

TEST(Prediction, OneRankIsTheProfileAndMoreRanksAreNeverFaster) {
  const Network network = make_network("resnet18", {32, 3, 32, 32}, 10);
  const Cluster machine = cluster();
  const StepProfile profile = estimate_profile(network, Precision::fp32, machine.device());
  const auto buckets = buckets_of(network, profile, {});
  double bytes = 0;
  for (const TimedBucket& bucket : buckets) bytes += bucket.bytes;
  EXPECT_EQ(bytes, 4.0 * static_cast<double>(network.parameter_count()));
  EXPECT_DOUBLE_EQ(predict_step(profile, buckets, machine, 1).step_ms, profile.ms());
  double last = profile.ms();
  for (const int ranks : {2, 4, 8, 64, 1024}) {
    const StepPrediction step = predict_step(profile, buckets, machine, ranks);
    EXPECT_GE(step.step_ms, last) << ranks;
    EXPECT_LE(step.exposed_comm_ms, step.communication_ms + 1e-9) << ranks;
    last = step.step_ms;
  }
}

TEST(Prediction, BatchesBetweenAndBeyondTheMeasuredOnes) {
  StepProfile small = hand_made(), large = hand_made();
  large.batch = 16;
  for (TimedOperation& operation : large.operations)
    if (operation.per_sample) operation.ms *= 1.5;
  // A batch of 12 is half way between 8 and 16. The time of the optimizer, 2 ms, does not change.
  EXPECT_NEAR(at_batch({large, small}, 12, 0).ms(), 2 + 1.25 * 10, 1e-9);
  EXPECT_NEAR(at_batch({small, large}, 32, 0).ms(), 2 + 30, 1e-9);
  // The launch takes 1 ms of each operation. Only the rest of its time is halved with the batch.
  EXPECT_NEAR(at_batch({small}, 4, 1000).ms(), 2 + 3 * 1 + (10 - 3) / 2.0, 1e-9);
  large.operations.pop_back();
  EXPECT_THROW(at_batch({small, large}, 12, 0), std::runtime_error);
}

// Convolutions compute batch norms only if these are large. So the same node may have another kind
// in the profile of another batch.
TEST(Prediction, BatchesMayDifferInWhatComputesTheirBatchNorms) {
  const DeviceRates device{.backend = kernels::Backend::cuda,
                           .gflops = {{Precision::bf16, 5e5}},
                           .gbytes_per_second = 3000,
                           .launch_us = 2};
  const auto profile = [&](std::int64_t batch) {
    return estimate_profile(make_network({"resnet50", batch, 0, 224, 0}), Precision::bf16, device);
  };
  const StepProfile small = profile(8), large = profile(256);
  EXPECT_FALSE(has_norm_inputs(small));
  EXPECT_TRUE(has_norm_inputs(large));
  const double between = at_batch({small, large}, 128, 2).ms();
  EXPECT_GT(between, small.ms());
  EXPECT_LT(between, large.ms());
}

}  // namespace
}  // namespace convoy::app
