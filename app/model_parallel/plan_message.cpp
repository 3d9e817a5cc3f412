#include "app/model_parallel/plan_message.h"

#include <nlohmann/json.hpp>

namespace convoy::app {

using Json = nlohmann::json;

std::string write_plan(const PartitionPlan& plan) {
  Json released = Json::array(), parts = Json::array();
  for (const auto& [transfer, time] : plan.placement.times.released)
    released.push_back({transfer.first, transfer.second, time});
  for (const PartSummary& part : plan.parts)
    parts.push_back({part.operations, part.parameters, part.arena_bytes, part.busy_ms, part.layers});
  return Json{{"parts", plan.placement.parts},
              {"part_of", plan.placement.part_of},
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
              {"summaries", parts}}
      .dump();
}

PartitionPlan read_plan(const std::string& text) {
  const Json json = Json::parse(text);
  PartitionPlan plan;
  plan.placement.parts = json.at("parts");
  json.at("part_of").get_to(plan.placement.part_of);
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
    plan.parts.push_back({item.at(0).get<int>(), item.at(1).get<std::int64_t>(),
                          item.at(2).get<std::int64_t>(), item.at(3).get<double>(),
                          item.at(4).get<std::string>()});
  return plan;
}

}  // namespace convoy::app
