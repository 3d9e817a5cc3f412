#include "app/model_parallel/plan_message.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace convoy::app {

using Json = nlohmann::json;

namespace {

Json json_of(const StepPlacement& placement) {
  Json released = Json::array();
  for (const auto& [transfer, time] : placement.times.released)
    released.push_back({transfer.first, transfer.second, time});
  return {{"stages", placement.stages},      {"stage_of", placement.stage_of},
          {"start", placement.times.start},  {"finish", placement.times.finish},
          {"released", std::move(released)}, {"arena_bytes", placement.arena_bytes}};
}

StepPlacement placement_of(const Json& json) {
  StepPlacement placement;
  placement.stages = json.at("stages");
  json.at("stage_of").get_to(placement.stage_of);
  json.at("start").get_to(placement.times.start);
  json.at("finish").get_to(placement.times.finish);
  for (const Json& item : json.at("released"))
    placement.times.released[std::pair(item.at(0).get<int>(), item.at(1).get<int>())] =
        item.at(2).get<std::int64_t>();
  json.at("arena_bytes").get_to(placement.arena_bytes);
  return placement;
}

}  // namespace

std::string write_placement(const StepPlacement& placement) { return json_of(placement).dump(); }
StepPlacement read_placement(const std::string& text) { return placement_of(Json::parse(text)); }

std::string write_plan(const PartitionPlan& plan) {
  Json stages = Json::array();
  for (const StageSummary& stage : plan.stages)
    stages.push_back({stage.operations, stage.parameters, stage.arena_bytes, stage.busy_ms, stage.layers});
  return Json{{"placement", json_of(plan.placement)},
              {"predicted_step_ms", plan.predicted_step_ms},
              {"one_rank_ms", plan.one_rank_ms},
              {"one_rank_bytes", plan.one_rank_bytes},
              {"cut_bytes", plan.cut_bytes},
              {"transfers", plan.transfers},
              {"link_latency_ms", plan.link_latency_ms},
              {"link_bytes_per_ms", plan.link_bytes_per_ms},
              {"summaries", stages}}
      .dump();
}

PartitionPlan read_plan(const std::string& text) {
  const Json json = Json::parse(text);
  PartitionPlan plan;
  plan.placement = placement_of(json.at("placement"));
  plan.predicted_step_ms = json.at("predicted_step_ms");
  plan.one_rank_ms = json.at("one_rank_ms");
  plan.one_rank_bytes = json.at("one_rank_bytes");
  plan.cut_bytes = json.at("cut_bytes");
  plan.transfers = json.at("transfers");
  plan.link_latency_ms = json.at("link_latency_ms");
  plan.link_bytes_per_ms = json.at("link_bytes_per_ms");
  for (const Json& item : json.at("summaries"))
    plan.stages.push_back({item.at(0).get<int>(), item.at(1).get<std::int64_t>(),
                           item.at(2).get<std::int64_t>(), item.at(3).get<double>(),
                           item.at(4).get<std::string>()});
  return plan;
}

}  // namespace convoy::app
