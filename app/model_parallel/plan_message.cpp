#include "app/model_parallel/plan_message.h"

#include <nlohmann/json.hpp>

namespace convoy::app {

using Json = nlohmann::json;

std::string write_plan(const PartitionPlan& plan) {
  Json released = Json::array(), stages = Json::array();
  for (const auto& [transfer, time] : plan.placement.times.released)
    released.push_back({transfer.first, transfer.second, time});
  for (const StageSummary& stage : plan.stages)
    stages.push_back({stage.operations, stage.parameters, stage.arena_bytes, stage.busy_ms, stage.layers});
  return Json{{"stages", plan.placement.stages},
              {"stage_of", plan.placement.stage_of},
              {"start", plan.placement.times.start},
              {"finish", plan.placement.times.finish},
              {"released", released},
              {"predicted_step_ms", plan.predicted_step_ms},
              {"one_rank_ms", plan.one_rank_ms},
              {"one_rank_bytes", plan.one_rank_bytes},
              {"cut_bytes", plan.cut_bytes},
              {"transfers", plan.transfers},
              {"seconds", plan.seconds},
              {"link_latency_ms", plan.link_latency_ms},
              {"link_bytes_per_ms", plan.link_bytes_per_ms},
              {"summaries", stages}}
      .dump();
}

PartitionPlan read_plan(const std::string& text) {
  const Json json = Json::parse(text);
  PartitionPlan plan;
  plan.placement.stages = json.at("stages");
  json.at("stage_of").get_to(plan.placement.stage_of);
  json.at("start").get_to(plan.placement.times.start);
  json.at("finish").get_to(plan.placement.times.finish);
  for (const Json& item : json.at("released"))
    plan.placement.times.released[std::pair(item.at(0).get<int>(), item.at(1).get<int>())] =
        item.at(2).get<std::int64_t>();
  plan.predicted_step_ms = json.at("predicted_step_ms");
  plan.one_rank_ms = json.at("one_rank_ms");
  plan.one_rank_bytes = json.at("one_rank_bytes");
  plan.cut_bytes = json.at("cut_bytes");
  plan.transfers = json.at("transfers");
  plan.seconds = json.at("seconds");
  plan.link_latency_ms = json.at("link_latency_ms");
  plan.link_bytes_per_ms = json.at("link_bytes_per_ms");
  for (const Json& item : json.at("summaries"))
    plan.stages.push_back({item.at(0).get<int>(), item.at(1).get<std::int64_t>(),
                           item.at(2).get<std::int64_t>(), item.at(3).get<double>(),
                           item.at(4).get<std::string>()});
  return plan;
}

}  // namespace convoy::app
