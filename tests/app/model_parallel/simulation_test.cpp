// Tests the predicted time of a step that is divided into stages, one for each rank:
// - Ranks on one core must divide its time exactly.
// - A busy receiver must not receive, and the sender must wait until the transfer ends.
// - A step must not be shorter than its work or its longest path.
// - Programs that wait for each other must be detected.
#include "app/model_parallel/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace convoy::app {
namespace {

using Action = ProgramStep::Action;

SharedProcessors own_processors(int stages) {
  SharedProcessors own;
  for (int stage = 0; stage < stages; ++stage) own.group_of.push_back(stage), own.memory_of.push_back(0);
  own.processors.assign(own.group_of.size(), 1);
  own.replicas = {1};
  return own;
}

SharedProcessors one_group(int stages, double processors) {
  SharedProcessors shared = own_processors(stages);
  shared.group_of.assign(shared.group_of.size(), 0);
  shared.processors = {processors};
  return shared;
}

// Returns the time of two stages that run one node each, for 30 ms and 10 ms.
double two_stages(const SharedProcessors& processors, double slowdown = 1) {
  StagePrograms programs;
  programs.stages = {{{Action::run, 0}}, {{Action::run, 1}}};
  return simulate_programs(programs, {{{30, slowdown}, {10, slowdown}}, {{}, {}}, {}, processors});
}

TEST(ProgramSimulation, OneCoreDividesItsTime) {
  EXPECT_NEAR(two_stages(own_processors(2)), 30, 1e-6);
  EXPECT_NEAR(two_stages(one_group(2, 1)), 40, 1e-6);
  // The stages share 1.5 cores for 13.3 ms, in which each does 10 ms of work. Then one runs 20 ms
  // alone.
  EXPECT_NEAR(two_stages(one_group(2, 1.5)), 100.0 / 3, 1e-6);
}

TEST(ProgramSimulation, SlowerNextToOthersThanAlone) {
  // Both stages run for 15 ms and do 10 ms of work each. Then one runs 20 ms alone.
  EXPECT_NEAR(two_stages(own_processors(2), 1.5), 15 + 20, 1e-6);
  // The stages take turns on one core for 30 ms and do 10 ms of work each. Then one runs 20 ms
  // alone.
  EXPECT_NEAR(two_stages(one_group(2, 1), 1.5), 30 + 20, 1e-6);
  SharedProcessors hosts = own_processors(2);
  hosts.memory_of = {0, 1}, hosts.replicas = {1, 1};
  EXPECT_NEAR(two_stages(hosts, 1.5), 30, 1e-6);
  // Now, while a host runs a stage, it also runs the same stage of a second replica.
  hosts.replicas = {2, 2};
  EXPECT_NEAR(two_stages(hosts, 1.5), 45, 1e-6);
}

TEST(ProgramSimulation, SlowsDownWithEveryBusyProcessor) {
  const SharedProcessors three = own_processors(3);
  EXPECT_NEAR(three.speed(0, {true, false, false}, 2), 1, 1e-9);
  EXPECT_NEAR(three.speed(0, {true, true, false}, 2), 1 / 1.5, 1e-9);
  EXPECT_NEAR(three.speed(0, {true, true, true}, 2), 1 / 2.0, 1e-9);
  // Now four stages run on two cores. If one stage of each core runs, both cores are already busy.
  SharedProcessors four = own_processors(4);
  four.group_of = {0, 1, 0, 1}, four.processors = {1, 1};
  EXPECT_NEAR(four.speed(0, {true, true, false, false}, 2), 1 / 2.0, 1e-9);
  EXPECT_NEAR(four.speed(0, {true, false, true, false}, 2), 0.5, 1e-9);
  EXPECT_NEAR(four.speed(0, {true, true, true, true}, 2), 0.5 / 2.0, 1e-9);
}

// Cores that no stage can use must not count as idle processors. Two stages can use only two of
// four cores. So if both stages run, each must be slowed down by the full factor of 2.
TEST(ProgramSimulation, SpareCoresAreNotCountedIdle) {
  EXPECT_NEAR(one_group(2, 4).speed(0, {true, true}, 2), 1 / 2.0, 1e-9);
  // A stage that gets less than one core runs at its share of the core, and not faster.
  SharedProcessors halves = own_processors(3);
  halves.processors = {0.5, 0.5, 0.5};
  EXPECT_NEAR(halves.speed(0, {true, false, false}, 2), 0.5, 1e-9);
}

// Returns programs in which stage 0 runs node 0 (5 ms) and sends its tensor. Meanwhile stage 1 runs
// node 1 (8 ms). Then it runs node 2 (2 ms), which reads the tensor.
StagePrograms one_transfer() {
  StagePrograms programs;
  programs.transfers = {{0, 0, 0, 1}};
  programs.stages = {
      {{Action::run, 0}, {Action::send_begin, 0}, {Action::send_finish, 0}, {Action::run, 3}},
      {{Action::receive_begin, 0}, {Action::run, 1}, {Action::receive_finish, 0}, {Action::run, 2}}};
  return programs;
}

double one_transfer_takes(TransferTime transfer, double node_1) {
  return simulate_programs(one_transfer(),
                           {{{5}, {node_1}, {2}, {1}}, {{0.5}, {0.25}}, {transfer}, own_processors(2)});
}

TEST(ProgramSimulation, TransfersInTheBackgroundCostABusyReceiverNothing) {
  EXPECT_NEAR(one_transfer_takes({3, 0}, 8), 8 + 2 + 0.25, 1e-6);
  EXPECT_NEAR(one_transfer_takes({3, 0}, 1), 5 + 3 + 2 + 0.25, 1e-6);
  EXPECT_NEAR(one_transfer_takes({20, 0}, 8), 5 + 20 + 2 + 0.25, 1e-6);
}

TEST(ProgramSimulation, TheReceiversShareWaitsUntilTheReceiverIsFree) {
  EXPECT_NEAR(one_transfer_takes({0, 3}, 8), 8 + 3 + 2 + 0.25, 1e-6);
  EXPECT_NEAR(one_transfer_takes({1, 3}, 1), 5 + 1 + 3 + 2 + 0.25, 1e-6);
}

TEST(ProgramSimulation, NothingMovesBeforeTheReceiverExpectsIt) {
  StagePrograms programs = one_transfer();
  // Stage 1 runs node 1 before it begins to receive. So the transfer, which is offered at 5 ms,
  // must not start before 10 ms.
  std::swap(programs.stages[1][0], programs.stages[1][1]);
  EXPECT_NEAR(simulate_programs(programs, {{{5}, {10}, {2}, {1}}, {{0}, {0}}, {{3, 0}}, own_processors(2)}),
              10 + 3 + 2, 1e-6);
}

TEST(ProgramSimulation, TheSenderWaitsUntilItsTensorIsTaken) {
  // Stage 1 runs node 1 for 8 ms and then receives for 3 ms. Only then may stage 0 run its last
  // node (20 ms).
  EXPECT_NEAR(
      simulate_programs(one_transfer(), {{{5}, {8}, {2}, {20}}, {{0}, {0}}, {{0, 3}}, own_processors(2)}),
      8 + 3 + 20, 1e-6);
}

TEST(ProgramSimulation, TakesATransferThatArrivesWhileItWaitsForAnother) {
  // Stage 1 waits for transfer 1, which stage 0 begins at 10 ms. While it waits, stage 1 must also
  // receive transfer 0, which stage 0 began at 1 ms.
  StagePrograms programs;
  programs.transfers = {{0, 0, 0, 1}, {1, 1, 0, 1}};
  programs.stages = {{{Action::run, 0}, {Action::send_begin, 0}, {Action::run, 1}, {Action::send_begin, 1}},
                     {{Action::receive_begin, 0},
                      {Action::receive_begin, 1},
                      {Action::receive_finish, 1},
                      {Action::receive_finish, 0}}};
  EXPECT_NEAR(simulate_programs(programs, {{{1}, {9}}, {{}, {}}, {{0, 4}, {0, 2}}, own_processors(2)}), 12,
              1e-6);
}

TEST(ProgramSimulation, ALinkCarriesOneTransferAfterTheOtherEachWay) {
  StagePrograms programs;
  programs.transfers = {{0, 0, 0, 1}, {1, 0, 0, 1}, {2, 1, 1, 0}};
  programs.stages = {{{Action::send_begin, 0},
                      {Action::send_begin, 1},
                      {Action::receive_begin, 2},
                      {Action::receive_finish, 2}},
                     {{Action::receive_begin, 0},
                      {Action::receive_begin, 1},
                      {Action::send_begin, 2},
                      {Action::receive_finish, 1},
                      {Action::receive_finish, 0}}};
  const std::vector<TransferTime> transfers{{3, 0, 3}, {4, 0, 4}, {5, 0, 5}};
  EXPECT_NEAR(simulate_programs(programs, {{}, {{}, {}}, transfers, own_processors(2)}), 7, 1e-6);
}

TEST(ProgramSimulation, NamesProgramsThatWaitForEachOther) {
  StagePrograms programs = one_transfer();
  programs.stages[0].erase(programs.stages[0].begin() + 1);  // the tensor is never sent
  EXPECT_THROW(simulate_programs(programs, {{{5}, {8}, {2}, {1}}, {{}, {}}, {{}}, own_processors(2)}),
               std::runtime_error);
}

// The nodes form two chains, which are spread over the stages at random.
TEST(ProgramSimulation, AStepIsNoShorterThanItsLongestPathOrItsWork) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const int stages = 2 + round % 3, nodes = 40;
    StepDependences dependences;
    std::vector<int> stage_of;
    std::vector<Work> works;
    ExpectedTimes times;
    double total = 0;
    for (int node = 0; node < nodes; ++node) {
      stage_of.push_back(static_cast<int>(random() % static_cast<unsigned>(stages)));
      works.push_back({0.1 + static_cast<double>(random() % 100) * 0.01});
      total += works.back().ms;
      times.start.push_back(static_cast<std::int64_t>(random() % 1000));
      times.finish.push_back(times.start.back() + 1);
      dependences.group.push_back(node);
    }
    dependences.groups = nodes;
    double chain[2] = {0, 0};
    for (int node = 0; node < nodes; ++node) {
      chain[node % 2] += works[static_cast<std::size_t>(node)].ms;
      if (node >= 2) dependences.uses.push_back({node - 2, node, node - 2});
    }
    const StagePrograms programs = make_stage_programs(dependences, stage_of, stages, times);
    ProgramCosts costs{
        works, std::vector<Work>(static_cast<std::size_t>(stages)), {}, own_processors(stages)};
    costs.transfers.assign(programs.transfers.size(), {0.05, 0.1});
    const double moving = 0.15 * static_cast<double>(programs.transfers.size());
    const double ms = simulate_programs(programs, costs);
    EXPECT_GE(ms + 1e-6, std::max(chain[0], chain[1]));
    EXPECT_LE(ms, total + moving + 1e-6);
    costs.processors = one_group(stages, 1);
    EXPECT_GE(simulate_programs(programs, costs) + 1e-6, total);
  }
}

}  // namespace
}  // namespace convoy::app
