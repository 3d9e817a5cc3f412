#include "app/commands/partition_pipeline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/json_text.h"
#include "partition/pipeline/pipeline.h"

namespace convoy::app {

using namespace convoy::partition;

namespace {

double micros(Nanoseconds time) { return static_cast<double>(time) / 1e3; }

nlohmann::json summary(const CostModel& cost, const Pipeline& pipeline, std::int64_t micro_batches) {
  const TaskGraph& graph = cost.graph();
  nlohmann::json stages = nlohmann::json::array();
  for (const PipelineStage& stage : pipeline.stages) {
    nlohmann::json nodes = nlohmann::json::array();
    for (NodeIndex at = stage.first; at <= stage.last; ++at)
      nodes.push_back(graph.id(graph.topological_order()[at]));
    stages.push_back({{"replicas", stage.replicas},
                      {"work_us", micros(stage.work)},
                      {"exchange_us", micros(stage.exchange)},
                      {"receive_us", micros(stage.receive)},
                      {"period_us", micros(stage.period())},
                      {"bytes", stage.bytes},
                      {"nodes", std::move(nodes)}});
  }
  return {{"devices", cost.device_count()},
          {"stages", std::move(stages)},
          {"period_us", micros(pipeline.period)},
          {"fill_us", micros(pipeline.fill)},
          {"micro_batches", micro_batches},
          {"batch_us", micros(pipeline.batch(micro_batches))},
          {"one_device_batch_us", micros(micro_batches * graph.total_time())}};
}

void print(const CostModel& cost, const Pipeline& pipeline, std::int64_t micro_batches) {
  fmt::print("{:>5} {:>6} {:>8} {:>14} {:>14} {:>14} {:>14} {:>16}\n", "stage", "nodes", "replicas",
             "work µs", "exchange µs", "receive µs", "period µs", "bytes a device");
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    fmt::print("{:>5} {:>6} {:>8} {:>13.1f} {:>13.1f} {:>13.1f} {:>13.1f} {:>16}\n", i,
               stage.last - stage.first + 1, stage.replicas, micros(stage.work), micros(stage.exchange),
               micros(stage.receive), micros(stage.period()), stage.bytes);
  }
  const Nanoseconds batch = pipeline.batch(micro_batches), alone = micro_batches * cost.graph().total_time();
  fmt::print("\n{:<26} {:.1f} µs\n{:<26} {:.1f} µs\n{:<26} {:.3f}\n", "steady state, micro-batch",
             micros(pipeline.period), fmt::format("batch of {}", micro_batches), micros(batch),
             "speed-up over one device",
             batch > 0 ? static_cast<double>(alone) / static_cast<double>(batch) : 1.0);
}

}  // namespace

void run_pipeline(const std::string& graph, const CostModel& cost, bool replicate, std::int64_t micro_batches,
                  bool json) {
  const std::optional<Pipeline> pipeline = plan_pipeline(cost, replicate);
  if (!pipeline)
    throw std::runtime_error(
        fmt::format("{}: no pipeline of {} devices keeps to the memory limit of {} bytes", graph,
                    cost.device_count(), cost.machine().device(0).memory_limit));
  if (!json) return print(cost, *pipeline, micro_batches);
  nlohmann::json object = summary(cost, *pipeline, micro_batches);
  object["graph"] = graph;
  fmt::print("{}\n", json_text(object));
}

}  // namespace convoy::app
