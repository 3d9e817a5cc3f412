// A job that meets a fault; launch_fault_test.cpp starts it under mpirun. Usage: victim SCENARIO
// TIMEOUT_MS.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/buckets.h"
#include "comm/placement/environment.h"
#include "comm/placement/launcher.h"

namespace {

using namespace convoy;

void train(comm::MpiEnvironment& environment, const std::string& scenario) {
  const comm::Communicator& world = environment.world();
  const int victim = scenario.ends_with("0") ? 0 : world.size() - 1;
  const auto collectives = comm::make_mpi_collectives(world);
  std::vector<float> gradients(200'000, 1.0f);
  const std::vector<comm::BucketSegment> segments{{0, 100'000}, {100'000, 100'000}};
  comm::GradientBuckets buckets(*collectives, gradients.data(), segments, {400'000, 400'000});
  for (int step = 0; step < 6; ++step) {
    environment.set_step(step);
    const bool now = step == 3 && world.rank() == victim;
    if (now && scenario.starts_with("kill")) std::raise(SIGKILL);
    if (now && scenario.starts_with("stop")) std::raise(SIGSTOP);
    while (now && scenario.starts_with("absent")) ::usleep(10'000);
    if (now && scenario.starts_with("throw")) throw std::runtime_error("data.h5: cannot read chunk 7");
    for (int bucket = 0; bucket < std::ssize(buckets.buckets()); ++bucket) buckets.start(bucket);
    buckets.wait_all();
    world.all_reduce(1.0, comm::ReduceOp::sum, "loss");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  if (argv[1] == std::string_view("usage")) {
    comm::print_once_before_mpi("unknown flag --modle");
    return 2;
  }
  try {
    comm::MpiEnvironment environment(std::chrono::milliseconds(std::atoi(argv[2])));
    train(environment, argv[1]);
    if (environment.world().rank() == 0) std::printf("finished on %d ranks\n", environment.world().size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "convoy: %s\n", error.what());
    return 1;
  }
  return 0;
}
