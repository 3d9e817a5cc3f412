#include "app/training/rank_setup.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"

namespace convoy::app {

kernels::Backend backend_of(const std::string& backend, const std::string& precision) {
  if (backend == "cuda") kernels::throw_no_backend(kernels::Backend::cuda);
  if (precision != "fp32")
    throw UsageError(fmt::format("--precision {}: the {} backend computes in fp32", precision, backend));
  return backend == "reference" ? kernels::Backend::reference : kernels::Backend::cpu;
}

int use_cores(const comm::Communicator& ranks, std::int64_t threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int count = threads > 0 ? static_cast<int>(threads) : std::max(1, cores / ranks.local_size());
  omp_set_num_threads(count);
  return count;
}

std::vector<RankPlace> places_of(const comm::Communicator& ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  const nlohmann::json mine{{"host", ranks.host_name()}, {"cores", cores}};
  std::vector<RankPlace> places;
  for (const std::string& text : ranks.gather(mine.dump(), 0, "places of the ranks")) {
    const auto place = nlohmann::json::parse(text);
    places.push_back({place["host"], "cpu", place["cores"].get<std::vector<int>>()});
  }
  return places;
}

}  // namespace convoy::app
